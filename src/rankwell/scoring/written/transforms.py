"""The inputs of a written description: transforms of features, expressions, constants, and trees of other rankers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from rankwell.errors import ParameterError
from rankwell.scoring.expression import names_in, parse_expression
from rankwell.scoring.feature_use import group_over
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup, LinearInputs, LogLinearInputs
from rankwell.scoring.written.nodes import Node
from rankwell.scoring.written.references import References

TRANSFORMS = ("linear", "log-linear", "bucket", "expression", "constant", "trees")


@dataclass(frozen=True, eq=False)
class WrittenInput:
    """One item of `inputs`: its transform, what was written, and the names of features that it mentions."""

    transform: str
    node: Node
    mentioned: tuple[str, ...]


class WrittenInputs:
    """The items of `inputs`, which become groups once the columns are known."""

    def __init__(self, node: Node, references: References) -> None:
        self._references = references
        self._items = [self._read(item) for item in node.items("inputs")]
        if not self._items:
            raise node.error("there must be at least one input.")

    def mentioned(self) -> list[str]:
        """The names of columns that inputs read, each once, in order."""
        return list(dict.fromkeys(name for item in self._items for name in item.mentioned))

    def groups(self, columns: Sequence[str]) -> tuple[InputGroup, ...]:
        """The inputs over `columns`; neighbours of one transform are one group."""
        place = {name: number for number, name in enumerate(columns)}
        groups: list[InputGroup] = []
        for transform, items in groupby(self._items, key=lambda item: _GROUPED[item.transform]):
            nodes = [item.node for item in items]
            if transform == "trees":
                for node in nodes:
                    groups += self._trees(node, place)
            else:
                groups.append(_MAKERS[transform](nodes, place))
        return tuple(groups)

    def _read(self, node: Node) -> WrittenInput:
        ((transform, inner),) = node.only_entry("an input", TRANSFORMS)
        if transform == "constant":
            inner.finite("a constant")
            return WrittenInput(transform, inner, ())
        if transform == "expression":
            return WrittenInput(transform, inner, tuple(_names_in(_expression_node(inner))))
        if transform == "trees":
            return WrittenInput(transform, inner, self._references.trees(inner)[1])
        feature = inner.mapping(transform, _OPTIONS[transform], _REQUIRED[transform])["feature"]
        return WrittenInput(transform, inner, (feature.text("feature"),))

    def _trees(self, node: Node, place: dict[str, int]) -> list[InputGroup]:
        groups, names = self._references.trees(node)
        lacking = [name for name in names if name not in place]
        if lacking:
            raise node.error(f"the trees read {', '.join(map(repr, lacking[:8]))}, which `features` does not list.")
        columns = np.array([place[name] for name in names], np.int32)
        return [group_over(group, columns) for group in groups]


_OPTIONS = {
    "linear": ("feature", "scale", "offset", "missing"),
    "log-linear": ("feature", "scale", "offset", "missing"),
    "bucket": ("feature", "edges", "values", "missing"),
}
_REQUIRED = {"linear": ("feature",), "log-linear": ("feature",), "bucket": ("feature", "edges", "values")}
# Constants are expressions without a feature.
_GROUPED = {transform: transform for transform in TRANSFORMS} | {"constant": "expression"}


def _feature(node: Node, place: dict[str, int]) -> int:
    feature = node.mapping("an input")["feature"]
    name = feature.text("feature")
    if name not in place:
        raise feature.error(f"there is no feature or ranker {name!r}. Add it to `features`, or correct the name.")
    return place[name]


def _number(node: Node, key: str, default: float) -> float:
    entry = node.mapping("an input").get(key)
    return default if entry is None else entry.finite(key)


def _lines(kind: type[LinearInputs] | type[LogLinearInputs]) -> Callable[[list[Node], dict[str, int]], InputGroup]:
    def make(nodes: list[Node], place: dict[str, int]) -> InputGroup:
        return kind(
            np.array([_feature(node, place) for node in nodes], np.int32),
            np.array([_number(node, "scale", 1.0) for node in nodes]),
            np.array([_number(node, "offset", 0.0) for node in nodes]),
            np.array([_number(node, "missing", 0.0) for node in nodes]),
        )

    return make


def _buckets(nodes: list[Node], place: dict[str, int]) -> InputGroup:
    edges, values = [], []
    for node in nodes:
        entries = node.mapping("bucket")
        own = np.array(entries["edges"].numbers("edges"), np.float32)
        if (np.diff(own) <= 0).any():
            raise entries["edges"].error("edges must ascend (as float32 numbers, which features are).")
        numbers = [item.finite("a value") for item in entries["values"].items("values")]
        if len(numbers) != len(own) + 1:
            raise entries["values"].error(
                f"{len(own)} edges make {len(own) + 1} buckets, but there are {len(numbers)} values."
            )
        edges.append(own)
        values.append(numbers)
    return BucketInputs(
        feature=np.array([_feature(node, place) for node in nodes], np.int32),
        edge_ptr=np.cumsum([0, *map(len, edges)], dtype=np.int64),
        edges=np.concatenate(edges),
        values=np.concatenate([np.asarray(own, float) for own in values]),
        missing=np.array([_number(node, "missing", 0.0) for node in nodes]),
    )


def _expressions(nodes: list[Node], place: dict[str, int]) -> InputGroup:
    texts, missing = [], []
    for node in nodes:
        has_options = isinstance(node.content, dict)
        text_node = _expression_node(node)
        text = text_node.text("an expression")
        try:
            parse_expression(text, list(place))
        except ParameterError as cause:
            raise text_node.error(str(cause)) from cause
        texts.append(text)
        missing.append(_number(node, "missing", 0.0) if has_options else 0.0)
    return ExpressionInputs(tuple(texts), np.array(missing))


def _expression_node(node: Node) -> Node:
    """The text of an expression, which may be written alone or with `missing`."""
    if isinstance(node.content, dict):
        return node.mapping("expression", ("text", "missing"), ("text",))["text"]
    return node


def _names_in(node: Node) -> list[str]:
    try:
        return names_in(node.text("an expression"))
    except ParameterError as cause:
        raise node.error(str(cause)) from cause


_MAKERS = {
    "linear": _lines(LinearInputs),
    "log-linear": _lines(LogLinearInputs),
    "bucket": _buckets,
    "expression": _expressions,
}


def constant_of(expression: str) -> float | None:
    """The number that an expression consists of; None if it is more than a number."""
    text = expression.strip()
    try:
        number = float(text) if not any(letter in text for letter in "_nN") else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
