"""A Vespa rank profile, to be put into a schema.

Each feature is a function, so that it can be changed in one place; the score is a ranking expression over them. Trees
are written as Vespa's own importers write them (`if (f < t, ...)`, `if (!(f >= t), ...)` where a missing value goes
left), which is the form that Vespa evaluates fastest. A ranker in two passes becomes a first and a second phase.

Vespa computes in float64, and features are not rounded to float32 there: scores agree to about 1e-6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rankwell.errors import Parameter, ParameterError
from rankwell.kernels.scoring.rules import IN_CATEGORIES, NEARLY_ZERO, VALUE, Operation
from rankwell.printable import printable
from rankwell.scoring.composition import RankerPart
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.engine_features import vespa_feature
from rankwell.scoring.exports.numbers_as_text import float32_text, float64_text
from rankwell.scoring.exports.programs import infix_operations, run_symbolically
from rankwell.scoring.exports.refusal import check_normaliser
from rankwell.scoring.exports.score_writer import ScoreWriter
from rankwell.scoring.exports.tree_sum import without_normaliser
from rankwell.scoring.feature_use import read_features
from rankwell.scoring.inputs import ExpressionInputs, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.tree_builder import float32_above
from rankwell.scoring.trees import TreeInputs

TITLE = "A Vespa rank profile"

_ACTIVATIONS = {"identity": "{}", "sigmoid": "sigmoid({})", "relu": "relu({})", "tanh": "tanh({})", "exp": "exp({})"}
# A reference, or a number: what may be written twice.
_ATOM = re.compile(r"[A-Za-z_]\w*|\d[\d.e+-]*", re.ASCII)


def write_vespa(description: RankerDescription, name: str, features: Mapping[str, str]) -> bytes:
    """The rank profile `name`.

    features : expressions for features, by name, in place of the usual ones
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ParameterError(f"must be a word of letters, digits and _ for Vespa, got {name!r}.", parameter="name")
    writer = _VespaWriter()
    columns = _feature_columns(writer, description, features)
    phases = []
    if description.first_pass is not None:
        part = description.parts[description.first_pass.part]
        (first,) = writer.score(without_normaliser(part.description), writer.part_features(part, columns))
        phases.append(_block("first-phase", _expression(writer.function("first_score", first))))
    (score,) = writer.score(without_normaliser(description.second_pass), columns)
    score = writer.function("score", score)
    if description.first_pass is None:
        phases.append(_block("first-phase", _expression(score)))
    else:
        keep = f"rerank-count: {description.first_pass.keep}"
        phases.append(_block("second-phase", f"{keep}\n{_expression(score)}"))
    return _profile(name, [*writer.blocks(), *phases])


def _feature_columns(writer: _VespaWriter, description: RankerDescription, given: Mapping[str, str]) -> list[str]:
    """A reference to a function for each feature that the ranker reads; nothing for one that is not read."""
    used = set(read_features(description))
    for name in given:
        if name not in description.feature_names:
            raise ParameterError(f"the ranker has no feature {name!r}.", parameter="features")
    columns, unknown = [], []
    for name in description.feature_names:
        expression = given.get(name) or vespa_feature(name)
        if name in used and expression is None:
            unknown.append(name)
        is_read = name in used and expression is not None
        columns.append(writer.function(f"feature_{name}", str(expression)) if is_read else "")
    if unknown:
        listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise ParameterError(
            f"Vespa has no rank feature that is {listed}: give an expression for each (",
            Parameter("features"),
            "), as fieldLength(title) for length.title.",
        )
    return columns


def _profile(name: str, blocks: Sequence[str]) -> bytes:
    inner = "\n".join(blocks).replace("\n", "\n    ")
    head = f"# Written by Rankwell: put it into a schema.\nrank-profile {name} inherits default {{\n"
    return f"{head}    {inner}\n}}\n".encode()


def _block(head: str, body: str) -> str:
    return f"{head} {{\n    " + body.replace("\n", "\n    ") + "\n}"


def _expression(text: str) -> str:
    """A schema's entry for an expression: one of several lines is in braces."""
    return _block("expression", text) if "\n" in text else f"expression: {text}"


class _VespaWriter(ScoreWriter[list[str], list[str]]):
    """Columns and values are texts of expressions; functions are collected."""

    def __init__(self) -> None:
        self._functions: dict[str, str] = {}

    def function(self, wish: str, expression: str) -> str:
        """A reference to a new function with this expression; its name is like `wish`.

        References have no parentheses, and no arguments: Vespa's functions take names and numbers only. Names have a
        beginning that no rank feature of Vespa's has.
        """
        plain = "ranker_" + re.sub(r"\W+", "_", printable(wish), flags=re.ASCII).strip("_")
        number, name = 1, plain
        while name in self._functions:
            number += 1
            name = f"{plain}_{number}"
        self._functions[name] = expression
        return name

    def blocks(self) -> list[str]:
        """All functions."""
        return [_block(f"function {name}()", _expression(text)) for name, text in self._functions.items()]

    def _atom(self, text: str) -> str:
        """The text, or a reference to a function of it: what is written twice is then computed once."""
        return text if _ATOM.fullmatch(text) else self.function("term", text)

    def normalised(self, normaliser: Normaliser, features: list[str]) -> list[str]:
        check_normaliser(TITLE, normaliser)
        if normaliser.name == "none":
            return features
        scales = zip(features, normaliser.arrays["mean"].tolist(), normaliser.arrays["scale"].tolist(), strict=True)
        return [
            feature and self.function(feature.replace("ranker_", "normalised_", 1), _standardised(feature, mean, scale))
            for feature, mean, scale in scales
        ]

    def part_features(self, part: RankerPart, features: list[str]) -> list[str]:
        return [features[feature] for feature in part.features]

    def with_scores(self, columns: list[str], scores: Sequence[list[str] | None]) -> list[str]:
        return [*columns, *("" if score is None else self.function("part_score", score[0]) for score in scores)]

    def linear(self, group: LinearInputs, columns: list[str]) -> list[str]:
        read = [columns[feature] for feature in group.feature]
        return [
            f"if (isNan({x}) == 1, {_number(group.missing[i])}, {_line_text(group, i, x)})" for i, x in enumerate(read)
        ]

    def log_linear(self, group: LogLinearInputs, columns: list[str]) -> list[str]:
        read = [columns[feature] for feature in group.feature]
        return [
            f"if ({x} > (-1.0), {_line_text(group, i, f'log(1 + {x})')}, {_number(group.missing[i])})"
            for i, x in enumerate(read)
        ]

    def trees(self, group: TreeInputs, columns: list[str], *, summed: bool) -> list[str]:
        tested = [self._column(group, c, columns) for c in range(len(group.column_feature))]
        texts = [_tree_text(group, t, tested) for t in range(len(group))]
        return ["\n+ ".join(texts)] if summed and texts else texts

    def _column(self, group: TreeInputs, column: int, columns: list[str]) -> str:
        """What nodes of a column test."""
        x, kind = columns[group.column_feature[column]], group.column_kind[column]
        if kind == VALUE:
            return x
        if kind == IN_CATEGORIES:
            listed = ", ".join(map(str, group.categories_of(column).tolist()))
            return self.function("in_categories", f"if (isNan({x}) == 1, {x}, if (floor({x}) in [{listed}], 1, 0))")
        return self.function("missing_if_zero", f"if (fabs({x}) <= {_number(float(NEARLY_ZERO))}, 0.0 / 0.0, {x})")

    def expressions(self, group: ExpressionInputs, columns: list[str], names: tuple[str, ...]) -> list[str]:
        values = []
        for program, missing in zip(group.programs(names), group.missing.tolist(), strict=True):
            x = self._atom(run_symbolically(program, lambda i: columns[i], _number, self._operations()))
            # The difference of an infinity or a missing value and itself is missing.
            values.append(f"if ({x} - {x} == 0, {x}, {_number(missing)})")
        return values

    def _operations(self) -> dict[Operation, Callable[..., str]]:
        def extreme(name: str) -> Callable[..., str]:
            # A missing value in either is one in the result.
            def write(a: str, b: str) -> str:
                a, b = self._atom(a), self._atom(b)
                return f"if (isNan({a}) == 1, {a}, if (isNan({b}) == 1, {b}, {name}({a}, {b})))"

            return write

        return {
            **infix_operations(comparison="if ({}, 1, 0)"),
            Operation.NOT_EQUAL: lambda a, b: f"if ({a} == {b}, 0, 1)",
            Operation.MINIMUM: extreme("min"),
            Operation.MAXIMUM: extreme("max"),
            Operation.LOG1P: lambda a: f"log(1 + {a})",
            # Above 0 is neither 0 nor missing.
            Operation.IF: lambda condition, a, b: f"if (fabs({condition}) > 0, {a}, {b})",
            Operation.MISSING: lambda a: f"isNan({a})",
        }

    def joined(self, groups: Sequence[list[str]]) -> list[str]:
        return [text for group in groups for text in group]

    def dense(self, layer: Dense, values: list[str]) -> list[str]:
        if len(layer.bias) > 1:
            # Each unit reads them all: they are computed once.
            values = [text if _ATOM.fullmatch(text) else self.function("input", text) for text in values]
        units = [
            _ACTIVATIONS[layer.activation].format(_weighted_sum(weights, values, bias))
            for weights, bias in zip(layer.weights.tolist(), layer.bias.tolist(), strict=True)
        ]
        return [self.function("unit", text) for text in units] if len(units) > 1 else units

    def total(self, values: list[str], *, divisor: int, bias: float) -> list[str]:
        text = "\n+ ".join(values) or "0"
        text = text if divisor == 1 else f"({text}) / {divisor}"
        return [text if bias == 0 else f"{text}\n+ {_number(bias)}"]


def _number(value: float) -> str:
    text = float64_text(value)
    text = text if "." in text or "e" not in text else text.replace("e", ".0e")
    return f"({text})" if text.startswith("-") else text


def _standardised(feature: str, mean: float, scale: float) -> str:
    # The scale of a feature that does not vary is infinite: 0, and missing if it is missing.
    return f"{feature} - {feature}" if np.isinf(scale) else f"({feature} - {_number(mean)}) / {_number(scale)}"


def _line_text(group: LinearInputs | LogLinearInputs, i: int, x: str) -> str:
    scale, offset = float(group.scale[i]), float(group.offset[i])
    text = x if scale == 1 else f"{_number(scale)} * {x}"
    return text if offset == 0 else f"{text} + {_number(offset)}"


def _weighted_sum(weights: Sequence[float], values: Sequence[str], bias: float) -> str:
    terms = [f"{_number(weight)} * ({text})" for weight, text in zip(weights, values, strict=True) if weight]
    return " + ".join([*terms, _number(bias)] if bias or not terms else terms)


def _tree_text(trees: TreeInputs, t: int, tested: Sequence[str]) -> str:
    start, end, first_leaf = int(trees.node_ptr[t]), int(trees.node_ptr[t + 1]), int(trees.leaf_ptr[t])
    leaves = trees.leaf_value[first_leaf : first_leaf + end - start + 1].tolist()
    made = {-1 - leaf: _number(value) for leaf, value in enumerate(leaves)}
    above = float32_above(trees.threshold[start:end])
    # Children come after their parents.
    for node in reversed(range(end - start)):
        x, number = tested[trees.column[start + node]], _number(float(float32_text(above[node])))
        condition = f"!({x} >= {number})" if trees.missing_left[start + node] else f"{x} < {number}"
        children = made.pop(int(trees.left[start + node])), made.pop(int(trees.right[start + node]))
        made[node] = f"if ({condition}, {children[0]}, {children[1]})"
    return made[0 if end > start else -1]
