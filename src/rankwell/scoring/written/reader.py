"""Ranker descriptions that people write: YAML to `RankerDescription`.

    features: [bm25.title, static.clicks]         the columns of the data; by default the names that the file mentions
    normaliser: {standard: {mean: [...], scale: [...]}}                 or none, query-minmax, letor
    rankers:                                      other rankers: their scores are columns under these names
      learned: {file: learned.rank}
    first-pass: {ranker: cheap, keep: 100}        score only the best of a query by one of the rankers
    inputs:
      - linear: {feature: bm25.title, scale: 2, offset: 1, missing: 0}
      - log-linear: {feature: static.clicks}
      - bucket: {feature: static.age, edges: [1, 7, 30], values: [3, 2, 1, 0], missing: 0}
      - expression: learned * (1 + 0.1 * log1p(static.clicks))
      - constant: 3
      - trees: {file: model.txt}                  one input per tree
    layers:                                       by default the only input, or the sum of all
      - dense: {weights: [[1, 0.5]], bias: [0], activation: relu}
      - sum: {bias: 0}

Everything is checked, and every error names file, line and column.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rankwell.errors import RankwellError
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.scoring.description import RankerDescription, check_description
from rankwell.scoring.layers import ACTIVATIONS, Dense, Layer, Mean, Sum
from rankwell.scoring.normaliser import NORMALISERS, Normaliser
from rankwell.scoring.written.nodes import Node, parse_nodes
from rankwell.scoring.written.references import References
from rankwell.scoring.written.transforms import WrittenInputs

logger = logging.getLogger("rankwell")

_KEYS = ("features", "normaliser", "rankers", "first-pass", "inputs", "layers")


def read_description(path: str | os.PathLike[str]) -> RankerDescription:
    """The ranker description in the YAML file at `path`; files that it refers to are found relative to its folder.

    Raises
    ------
    FileFormatError
        Names line and column of what is wrong.
    """
    path = Path(path)
    return parse_description(path.read_bytes(), path.parent, str(path))


def parse_description(content: bytes, folder: Path, name: str) -> RankerDescription:
    """The description in `content`, the bytes of a YAML file called `name` in `folder`."""
    root = parse_nodes(content, name)
    entries = root.mapping("a ranker description", _KEYS, ("inputs",))
    references = References(folder)
    rankers = _rankers(entries.get("rankers"), references)
    inputs = WrittenInputs(entries["inputs"], references)
    features = _features(entries.get("features"), rankers, inputs)
    parts = tuple(_part(ranker, *found, features) for ranker, found in rankers.items())
    columns = (*features, *(part.name for part in parts))
    groups = inputs.groups(columns)
    description = RankerDescription(
        feature_names=features,
        normaliser=_normaliser(entries.get("normaliser"), len(features)),
        inputs=groups,
        layers=_layers(entries.get("layers"), sum(len(group) for group in groups)),
        parts=parts,
        first_pass=_first_pass(entries.get("first-pass"), [part.name for part in parts]),
    )
    try:
        check_description(description)
    except RankwellError as cause:
        raise root.error(str(cause)) from cause
    first = [] if description.first_pass is None else [parts[description.first_pass.part].name]
    _warn_of_unread(rankers, {*inputs.mentioned(), *first})
    return description


_Ranker = tuple[Node, RankerDescription, tuple[str, ...]]


def _rankers(node: Node | None, references: References) -> dict[str, _Ranker]:
    """By name: the node, the description, and the features that it reads here."""
    found: dict[str, _Ranker] = {}
    if node is None:
        return found
    for name, entry in node.mapping("rankers").items():
        if "/" in name:
            raise entry.error(f"the name of a ranker may not contain '/', got {name!r}.")
        keys = entry.mapping(f"the ranker {name!r}", ("file", "part", "features"), ("file",))
        description, features = references.ranker(keys)
        if description.first_pass is not None:
            raise entry.error(f"the ranker {name!r} ranks in two passes, so it cannot be a part of another ranker.")
        found[name] = entry, description, features
    return found


def _warn_of_unread(rankers: dict[str, _Ranker], read: set[str]) -> None:
    """Warn of rankers that the score does not depend on: a description of a ranker file may have such, too."""
    for name, (node, *_) in rankers.items():
        if name not in read:
            logger.warning(
                "%s, line %d, column %d: no input and no first pass reads the ranker %r, so that it has no effect. "
                "Name it in an input, or leave it out.",
                node.path,
                node.line,
                node.column,
                name,
            )


def _features(node: Node | None, rankers: dict[str, _Ranker], inputs: WrittenInputs) -> tuple[str, ...]:
    """The features that are listed; without a list those of the rankers, then those that inputs mention."""
    if node is not None:
        listed = node.texts("features")
        for item, name in zip(node.items("features"), listed, strict=True):
            if listed.count(name) > 1 or name in rankers:
                raise item.error(f"the name {name!r} is given twice: features and rankers have different names.")
        return tuple(listed)
    names = dict.fromkeys(name for _, _, features in rankers.values() for name in features)
    for name, (entry, *_) in rankers.items():
        if name in names:
            raise entry.error(f"{name!r} is also a feature of one of the rankers. Give the ranker another name.")
    names |= dict.fromkeys(name for name in inputs.mentioned() if name not in rankers)
    return tuple(names)


def _part(
    name: str, node: Node, description: RankerDescription, names: Sequence[str], features: tuple[str, ...]
) -> RankerPart:
    place = {feature: number for number, feature in enumerate(features)}
    lacking = [feature for feature in names if feature not in place]
    if lacking:
        raise node.error(
            f"the ranker {name!r} reads {', '.join(map(repr, lacking[:8]))}, which `features` does not list. List all "
            "its features, or say what its columns are called here: features: [...]."
        )
    return RankerPart(name, tuple(place[feature] for feature in names), description)


def _normaliser(node: Node | None, n_features: int) -> Normaliser:
    if node is None:
        return Normaliser("none")
    if isinstance(node.content, str):
        name = node.choice("normaliser", NORMALISERS)
        if name == "standard":
            raise node.error("the standard normaliser needs numbers: standard: {mean: [...], scale: [...]}.")
        return Normaliser(name)
    inner = node.mapping("normaliser", ("standard",), ("standard",))["standard"]
    arrays = {}
    for key, numbers in inner.mapping("standard", ("mean", "scale"), ("mean", "scale")).items():
        read = _mean if key == "mean" else _scale
        arrays[key] = np.array([read(number) for number in numbers.items(key)])
        if len(arrays[key]) != n_features:
            raise numbers.error(f"{key} must have a number for each of {n_features} features, got {len(arrays[key])}.")
    return Normaliser("standard", arrays)


def _mean(node: Node) -> float:
    return node.finite("a number of mean")


def _scale(node: Node) -> float:
    scale = node.number("a number of scale")
    if not scale > 0.0:
        raise node.error(
            f"a number of scale must be above 0, .inf for a feature that does not vary, got {node.content}."
        )
    return scale


def _first_pass(node: Node | None, rankers: list[str]) -> FirstPass | None:
    if node is None:
        return None
    entries = node.mapping("first-pass", ("ranker", "keep"), ("ranker", "keep"))
    if not rankers:
        raise node.error("first-pass names one of the rankers, and there are none: write them under rankers.")
    name = entries["ranker"].choice("the ranker of first-pass", rankers)
    return FirstPass(rankers.index(name), entries["keep"].whole_number("keep", 1))


def _layers(node: Node | None, width: int) -> tuple[Layer, ...]:
    if node is None:
        return () if width == 1 else (Sum(),)
    layers: list[Layer] = []
    for item in node.items("layers"):
        layer = _layer(item)
        if isinstance(layer, Dense):
            if layer.weights.shape[1] != width:
                raise item.error(f"each row of weights must have {width} numbers, got {layer.weights.shape[1]}.")
            width = len(layer.bias)
        elif isinstance(layer, Mean) and width == 0:
            raise item.error("the mean of no inputs does not exist.")
        else:
            width = 1
        layers.append(layer)
    if width != 1:
        raise node.error(f"the last layer must give one score, it gives {width}.")
    return tuple(layers)


def _layer(node: Node) -> Layer:
    kinds = ("dense", "sum", "mean")
    if isinstance(node.content, str):
        kind, options = node.choice("a layer", kinds), Node(node.path, node.line, node.column, {})
    else:
        ((kind, options),) = node.only_entry("a layer", kinds)
        options = options if options.content else Node(options.path, options.line, options.column, {})
    if kind == "mean":
        options.mapping("mean", ())
        return Mean()
    if kind == "sum":
        entries = options.mapping("sum", ("bias",))
        return Sum(entries["bias"].finite("bias") if "bias" in entries else 0.0)
    return _dense(options)


def _dense(node: Node) -> Dense:
    entries = node.mapping("dense", ("weights", "bias", "activation"), ("weights",))
    rows = [row.numbers("a row of weights") for row in entries["weights"].items("weights")]
    if not rows or len({len(row) for row in rows}) != 1:
        raise entries["weights"].error("weights must be one or more rows of equal length.")
    bias = entries["bias"].numbers("bias") if "bias" in entries else [0.0] * len(rows)
    if len(bias) != len(rows):
        raise entries["bias"].error(f"bias must have a number per row of weights, {len(rows)}, got {len(bias)}.")
    activation = entries["activation"].choice("activation", ACTIVATIONS) if "activation" in entries else "identity"
    return Dense(np.array(rows), np.array(bias), activation)
