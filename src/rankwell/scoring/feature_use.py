"""Which features a description reads, and the same description over another list of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.scoring.rules import Operation
from rankwell.scoring.composition import RankerPart
from rankwell.scoring.expression import parse_expression
from rankwell.scoring.inputs import ExpressionInputs, InputGroup
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.trees import TreeInputs

if TYPE_CHECKING:
    from rankwell.scoring.description import RankerDescription


def read_columns(description: RankerDescription) -> frozenset[int]:
    """The columns (features, then parts) that the description's own inputs read."""
    read: set[int] = set()
    for group in description.inputs:
        read.update(_read_by(group, description.column_names))
    return frozenset(read)


def read_features(description: RankerDescription) -> tuple[str, ...]:
    """The features that are read by inputs, by parts that inputs read, or by the first pass; in their order."""
    columns = description.read_columns
    features = {column for column in columns if column < description.n_features}
    for number in _read_parts(description):
        part = description.parts[number]
        own = set(read_features(part.description))
        names = part.description.feature_names
        features.update(f for f, name in zip(part.features, names, strict=True) if name in own)
    return tuple(description.feature_names[feature] for feature in sorted(features))


def over_features(description: RankerDescription, names: Sequence[str]) -> RankerDescription:
    """The same ranker for data that has the features `names`, which may be more or fewer, in another order.

    Scores are the same, to the bit. `names` must include what the ranker reads (`read_features`). Parts that nothing
    reads are dropped.
    """
    if tuple(names) == description.feature_names:
        return description
    lacking = [name for name in read_features(description) if name not in names]
    if lacking:
        named = ", ".join(map(repr, lacking[:8]))
        raise ParameterError(f"the ranker reads {named}, which the features do not include.")
    place = {name: number for number, name in enumerate(names)}
    # A feature that is not read may be absent: whatever still names it gets the first.
    new = np.array([place.get(name, 0) for name in description.feature_names], np.int32)
    kept = _read_parts(description)
    parts = np.zeros(len(description.parts), np.int32)
    parts[kept] = np.arange(len(names), len(names) + len(kept))
    columns = np.concatenate((new, parts))
    first_pass = description.first_pass
    return replace(
        description,
        feature_names=tuple(names),
        normaliser=_normaliser_over(description, names),
        inputs=tuple(group_over(group, columns) for group in description.inputs),
        parts=tuple(_part_over(description.parts[number], description.feature_names, names) for number in kept),
        first_pass=None if first_pass is None else replace(first_pass, part=kept.index(first_pass.part)),
    )


def _read_parts(description: RankerDescription) -> list[int]:
    """The parts that inputs read, and the one of the first pass."""
    first = None if description.first_pass is None else description.first_pass.part
    columns, n_features = description.read_columns, description.n_features
    return [number for number in range(len(description.parts)) if number == first or n_features + number in columns]


def _read_by(group: InputGroup, names: tuple[str, ...]) -> list[int]:
    if isinstance(group, TreeInputs):
        return np.unique(group.column_feature[np.unique(group.column)]).tolist()
    if not isinstance(group, ExpressionInputs):
        return np.unique(group.feature).tolist()
    programs = [parse_expression(text, names) for text in group.expressions]
    return [int(f) for program in programs for f in program.operand[program.operation == Operation.FEATURE]]


def group_over(group: InputGroup, columns: np.ndarray) -> InputGroup:
    """The same inputs where column c is now column columns[c], int32."""
    if isinstance(group, ExpressionInputs):
        return group  # reads by name
    if isinstance(group, TreeInputs):
        return replace(group, column_feature=columns[group.column_feature])
    return replace(group, feature=columns[group.feature])


def _part_over(part: RankerPart, old: tuple[str, ...], names: Sequence[str]) -> RankerPart:
    """A part that reads the same features where they are now; absent ones, which it does not use, are dropped."""
    there = [(old[f], own) for f, own in zip(part.features, part.description.feature_names, strict=True)]
    kept = [(name, own) for name, own in there if name in names]
    description = over_features(part.description, [own for _, own in kept])
    return RankerPart(part.name, tuple(list(names).index(name) for name, _ in kept), description)


def _normaliser_over(description: RankerDescription, names: Sequence[str]) -> Normaliser:
    normaliser = description.normaliser
    if normaliser.name != "standard":
        return normaliser
    old = {name: number for number, name in enumerate(description.feature_names)}
    arrays = {}
    for array, other in (("mean", 0.0), ("scale", 1.0)):
        known = normaliser.arrays[array]
        arrays[array] = np.array([known[old[name]] if name in old else other for name in names], known.dtype)
    return Normaliser(normaliser.name, arrays)
