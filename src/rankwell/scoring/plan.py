"""A plan: the steps that compute a score, as plain arrays in the dtypes that kernels take.

A description is flattened into a plan once. Each group of inputs and each layer becomes one entry with a *kind* of
`rankwell.kernels.scoring.kinds`; a device is a table from kinds to kernels. The sum of trees, the most common large
model, is one entry that stores only the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.scoring import kinds
from rankwell.kernels.scoring.rules import ACTIVATIONS
from rankwell.parameters import check_whole_number
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense, Mean, Sum
from rankwell.scoring.tree_layout import lay_out, own_array
from rankwell.scoring.trees import TreeInputs


class InputPlan(NamedTuple):
    """A group of inputs: the first of them, how many there are, and the named tuple that the kind's kernel takes."""

    kind: str
    first: int
    n_inputs: int
    arrays: Any


class LayerPlan(NamedTuple):
    """A layer, and the named tuple that the kind's kernel takes."""

    kind: str
    arrays: Any


@dataclass(frozen=True, eq=False)
class Plan:
    """Groups of inputs, then layers; the last of them gives the score, or the only input is the score.

    n_columns : the features and the parts' scores, in this order
    """

    n_columns: int
    inputs: tuple[InputPlan, ...]
    layers: tuple[LayerPlan, ...]

    @cached_property
    def n_inputs(self) -> int:
        return sum(group.n_inputs for group in self.inputs)

    @property
    def entries(self) -> list[InputPlan | LayerPlan]:
        return [*self.inputs, *self.layers]

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        return sum(_nbytes(entry.arrays) for entry in self.entries)

    def first_rounds(self, n_rounds: int | None) -> Plan:
        """The plan for the first `n_rounds` rounds of boosting; None for all."""
        if n_rounds is None:
            return self
        group = self.inputs[0] if self.inputs else None
        if group is None or group.kind != kinds.TREE_SUM:
            raise ParameterError("only a sum of trees has scores after some of its rounds; this ranker is not one.")
        forest: kinds.TreeSum = group.arrays
        check_whole_number("n_rounds", n_rounds)
        most = forest.n_trees // forest.round_size
        if not 0 < n_rounds <= most:
            raise ParameterError(f"must be between 1 and the model's {most}, got {n_rounds}.", parameter="n_rounds")
        shorter = forest._replace(n_trees=n_rounds * forest.round_size)
        return replace(self, inputs=(group._replace(arrays=shorter),))


def make_plan(description: RankerDescription) -> Plan:
    """Flatten a description."""
    layers = tuple(_LAYERS[layer.kind](layer) for layer in description.layers)
    if description.n_rounds is not None:
        forest = _sum_of_trees(description.inputs[0], layers[0])
        return Plan(description.n_columns, (InputPlan(kinds.TREE_SUM, 0, 1, forest),), layers[1:])
    groups, first = [], 0
    for group in description.inputs:
        arrays = _INPUTS[group.kind](group, description.column_names)
        groups.append(InputPlan(group.kind, first, len(group), arrays))
        first += len(group)
    return Plan(description.n_columns, tuple(groups), layers)


def pack_programs(group: ExpressionInputs, feature_names: tuple[str, ...]) -> kinds.ProgramArrays:
    """The group's expressions as programs one after another."""
    programs = group.programs(feature_names)
    return kinds.ProgramArrays(
        program_ptr=np.cumsum([0, *(len(program.operation) for program in programs)], dtype=np.int64),
        operation=np.concatenate([np.empty(0, np.int32), *(program.operation for program in programs)]),
        operand=np.concatenate([np.empty(0, np.int32), *(program.operand for program in programs)]),
        constant_ptr=np.cumsum([0, *(len(program.constants) for program in programs)], dtype=np.int64),
        constants=np.concatenate([np.empty(0), *(program.constants for program in programs)]),
        missing=own_array(group.missing, np.float64),
    )


def _line_arrays(group: LinearInputs | LogLinearInputs, feature_names: tuple[str, ...]) -> kinds.LineArrays:
    return kinds.LineArrays(
        feature=own_array(group.feature, np.int32),
        scale=own_array(group.scale, np.float64),
        offset=own_array(group.offset, np.float64),
        missing=own_array(group.missing, np.float64),
    )


def _bucket_arrays(group: BucketInputs, feature_names: tuple[str, ...]) -> kinds.BucketArrays:
    return kinds.BucketArrays(
        feature=own_array(group.feature, np.int32),
        edge_ptr=own_array(group.edge_ptr, np.int64),
        edges=own_array(group.edges, np.float32),
        values=own_array(group.values, np.float64),
        missing=own_array(group.missing, np.float64),
    )


def _sum_of_trees(trees: InputGroup, layer: LayerPlan) -> kinds.TreeSum:
    assert isinstance(trees, TreeInputs)
    total: kinds.SumArrays = layer.arrays
    return kinds.TreeSum(*lay_out(trees), len(trees), trees.round_size, total.is_mean, total.bias)


def _dense(layer: Dense) -> LayerPlan:
    arrays = own_array(layer.weights, np.float64), own_array(layer.bias, np.float64)
    return LayerPlan(kinds.DENSE, kinds.DenseArrays(*arrays, ACTIVATIONS.index(layer.activation)))


_INPUTS: dict[str, Callable[[Any, tuple[str, ...]], Any]] = {
    LinearInputs.kind: _line_arrays,
    LogLinearInputs.kind: _line_arrays,
    BucketInputs.kind: _bucket_arrays,
    ExpressionInputs.kind: pack_programs,
    TreeInputs.kind: lambda group, feature_names: lay_out(group),
}
_LAYERS: dict[str, Callable[[Any], LayerPlan]] = {
    Dense.kind: _dense,
    Sum.kind: lambda layer: LayerPlan(kinds.SUM, kinds.SumArrays(False, float(layer.bias))),
    Mean.kind: lambda layer: LayerPlan(kinds.SUM, kinds.SumArrays(True, 0.0)),
}


def _nbytes(arrays: Any) -> int:
    return sum(_nbytes(part) if isinstance(part, tuple) else getattr(part, "nbytes", 0) for part in arrays)
