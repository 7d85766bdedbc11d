"""An ONNX model: features in, float32 (n_docs, n_features), NaN where one is missing; scores out, float64 (n_docs,).

Normaliser, inputs and layers are part of the graph, in float64. A normaliser that works by query takes the rows of one
call as the documents of one query. Trees are a TreeEnsembleRegressor, whose results are float32: scores agree to 1e-6
of the largest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.scoring.rules import IN_CATEGORIES, NEARLY_ZERO, VALUE, Operation
from rankwell.scoring.composition import RankerPart
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.onnx_operators import (
    IR_VERSION,
    OPERATOR_SET,
    TREE_OPERATOR_SET,
    TREES_DOMAIN,
    OnnxGraph,
)
from rankwell.scoring.exports.onnx_trees import tree_attributes
from rankwell.scoring.exports.programs import run_symbolically
from rankwell.scoring.exports.score_writer import ScoreWriter
from rankwell.scoring.inputs import ExpressionInputs, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.trees import TreeInputs
from rankwell.version import __version__

TITLE = "ONNX"

FEATURES, SCORES = "features", "scores"
_ACTIVATIONS = {"sigmoid": "Sigmoid", "relu": "Relu", "tanh": "Tanh", "exp": "Exp"}


def write_onnx(description: RankerDescription, name: str) -> bytes:
    """The model as the bytes of an .onnx file."""
    try:
        from onnx import TensorProto, helper
    except ImportError as cause:
        raise ParameterError("ONNX needs the package onnx: pip install 'rankwell[onnx]'.") from cause
    graph = OnnxGraph()
    score = _OnnxWriter(graph).score(description, FEATURES)
    graph.apply("Reshape", score, graph.constant([-1], np.int64), output=SCORES)
    rows = helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, ["n_docs", description.n_features])
    scores = helper.make_tensor_value_info(SCORES, TensorProto.DOUBLE, ["n_docs"])
    model = helper.make_model(
        helper.make_graph(graph.nodes, name, [rows], [scores], initializer=graph.initialisers),
        producer_name="rankwell",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPERATOR_SET), helper.make_opsetid(TREES_DOMAIN, TREE_OPERATOR_SET)],
    )
    by_query = "one query" if description.needs_queries else "any rows"
    properties = {"feature_names": json.dumps(description.feature_names), "rows_of_a_call": by_query}
    helper.set_model_props(model, properties)
    return bytes(model.SerializeToString())


class _OnnxWriter(ScoreWriter[str, str]):
    """Columns are a float32 matrix, values a float64 matrix, both (n_docs, n)."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph

    def normalised(self, normaliser: Normaliser, features: str) -> str:
        graph = self._graph
        if normaliser.name == "none":
            return features
        x = graph.float64(features)
        if normaliser.name == "standard":
            shifted = graph.apply("Sub", x, graph.constant(normaliser.arrays["mean"]))
            return graph.float32(graph.apply("Div", shifted, graph.constant(normaliser.arrays["scale"])))
        return graph.float32(self._of_query(x, fill_missing=normaliser.name == "letor"))

    def _of_query(self, x: str, *, fill_missing: bool) -> str:
        """(x − lowest) / (highest − lowest) over all rows; 0 where they are equal."""
        graph = self._graph
        infinity = graph.constant(np.inf)
        low, high = (
            graph.apply(operator, graph.where_missing(x, graph.constant(outside), x), axes=[0], keepdims=1)
            for operator, outside in (("ReduceMin", np.inf), ("ReduceMax", -np.inf))
        )
        # Minus infinity where all values are missing: not above 0 either.
        spread = graph.apply("Sub", high, low)
        divisor = graph.apply("Where", graph.apply("Greater", spread, graph.constant(0.0)), spread, infinity)
        low = graph.apply("Where", graph.apply("IsInf", low), graph.constant(0.0), low)
        values = graph.where_missing(x, low, x) if fill_missing else x
        return graph.apply("Div", graph.apply("Sub", values, low), divisor)

    def part_features(self, part: RankerPart, features: str) -> str:
        return self._graph.columns(features, part.features)

    def with_scores(self, columns: str, scores: Sequence[str | None]) -> str:
        graph = self._graph
        first = graph.columns(columns, [0]) if None in scores else ""
        zeros = graph.apply("Sub", first, first) if first else ""
        own = [zeros if score is None else graph.float32(score) for score in scores]
        return graph.apply("Concat", columns, *own, axis=1)

    def linear(self, group: LinearInputs, columns: str) -> str:
        return self._lines(group, self._read(columns, group.feature))

    def _read(self, columns: str, numbers: np.ndarray) -> str:
        return self._graph.float64(self._graph.columns(columns, numbers))

    def _lines(self, group: LinearInputs | LogLinearInputs, x: str) -> str:
        """scale · x + offset; missing where x is."""
        graph = self._graph
        scaled = graph.apply("Mul", x, graph.constant(group.scale))
        line = graph.apply("Add", scaled, graph.constant(group.offset))
        return graph.where_missing(x, graph.constant(group.missing), line)

    def log_linear(self, group: LogLinearInputs, columns: str) -> str:
        graph = self._graph
        more = graph.apply("Add", self._read(columns, group.feature), graph.constant(1.0))
        # The logarithm of a number that is not above 0 is replaced by a missing value before the line is.
        above = graph.apply("Greater", more, graph.constant(0.0))
        logarithm = graph.apply("Log", graph.apply("Where", above, more, graph.constant(np.nan)))
        return self._lines(group, logarithm)

    def trees(self, group: TreeInputs, columns: str, *, summed: bool) -> str:
        matrix, place = self._tested_columns(group, columns)
        attributes = tree_attributes(group, place, summed=summed)
        found = self._graph.apply(
            "TreeEnsembleRegressor", self._graph.float64(matrix), domain=TREES_DOMAIN, **attributes
        )
        return self._graph.float64(found)

    def _tested_columns(self, group: TreeInputs, columns: str) -> tuple[str, np.ndarray]:
        """A matrix that has all columns of the trees, and where each is in it."""
        graph = self._graph
        plain = group.column_kind == VALUE
        if plain.all():
            return columns, group.column_feature
        made = [self._tested(group, c, columns) for c in range(len(group.column_feature))]
        return graph.apply("Concat", *made, axis=1), np.arange(len(made))

    def _tested(self, group: TreeInputs, column: int, columns: str) -> str:
        graph = self._graph
        x, kind = graph.columns(columns, [int(group.column_feature[column])]), group.column_kind[column]
        if kind == VALUE:
            return x
        missing = graph.constant(np.nan, np.float32)
        if kind == IN_CATEGORIES:
            # A value below 0 is in no set.
            categories = group.categories_of(column).clip(min=0).astype(np.float32)
            is_one = graph.apply("Equal", graph.apply("Floor", x), graph.constant(categories[None], np.float32))
            counted = graph.float32(graph.sum_of_columns(graph.float64(is_one)))
            return graph.where_missing(x, missing, counted)
        near_zero = graph.apply("LessOrEqual", graph.apply("Abs", x), graph.constant(NEARLY_ZERO, np.float32))
        return graph.apply("Where", near_zero, missing, x)

    def expressions(self, group: ExpressionInputs, columns: str, names: tuple[str, ...]) -> str:
        return self.joined(
            [
                self._finite_or(
                    run_symbolically(
                        program,
                        lambda number: self._read(columns, np.array([number])),
                        lambda value: self._graph.constant([[value]]),
                        self._operations(),
                    ),
                    missing,
                    columns,
                )
                for program, missing in zip(group.programs(names), group.missing.tolist(), strict=True)
            ]
        )

    def _finite_or(self, value: str, missing: float, columns: str) -> str:
        """The value where it is finite, for every row: an expression of constants alone has only one."""
        graph = self._graph
        zero = graph.apply("Sub", value, value)
        finite = graph.apply("Equal", zero, graph.constant(0.0))
        chosen = graph.apply("Where", finite, value, graph.constant([[missing]]))
        rows = graph.apply("Slice", graph.apply("Shape", columns), *(graph.constant([n], np.int64) for n in (0, 1)))
        one = graph.constant([1], np.int64)
        return graph.apply("Expand", chosen, graph.apply("Concat", rows, one, axis=0))

    def _operations(self) -> dict[Operation, Callable[..., str]]:
        graph = self._graph

        def operator(name: str) -> Callable[..., str]:
            return lambda *values: graph.apply(name, *values)

        def comparison(name: str) -> Callable[..., str]:
            return lambda a, b: graph.float64(graph.apply(name, a, b))

        def extreme(name: str) -> Callable[..., str]:
            # A missing value in either is one in the result, whatever the runtime's own rule is.
            def apply(a: str, b: str) -> str:
                return graph.where_missing(a, a, graph.where_missing(b, b, graph.apply(name, a, b)))

            return apply

        def choose(condition: str, value: str, otherwise: str) -> str:
            # Above 0 is neither 0 nor missing.
            holds = graph.apply("Greater", graph.apply("Abs", condition), graph.constant(0.0))
            return graph.apply("Where", holds, value, otherwise)

        one = graph.constant(1.0)
        return {
            Operation.ADD: operator("Add"),
            Operation.SUBTRACT: operator("Sub"),
            Operation.MULTIPLY: operator("Mul"),
            Operation.DIVIDE: operator("Div"),
            Operation.POWER: operator("Pow"),
            Operation.NEGATE: operator("Neg"),
            Operation.LESS: comparison("Less"),
            Operation.LESS_EQUAL: comparison("LessOrEqual"),
            Operation.GREATER: comparison("Greater"),
            Operation.GREATER_EQUAL: comparison("GreaterOrEqual"),
            Operation.EQUAL: comparison("Equal"),
            Operation.NOT_EQUAL: lambda a, b: graph.float64(graph.apply("Not", graph.apply("Equal", a, b))),
            Operation.MINIMUM: extreme("Min"),
            Operation.MAXIMUM: extreme("Max"),
            Operation.ABSOLUTE: operator("Abs"),
            Operation.LOG: operator("Log"),
            Operation.LOG1P: lambda a: graph.apply("Log", graph.apply("Add", a, one)),
            Operation.EXP: operator("Exp"),
            Operation.SQRT: operator("Sqrt"),
            Operation.IF: choose,
            Operation.MISSING: lambda a: graph.float64(graph.apply("IsNaN", a)),
        }

    def joined(self, groups: Sequence[str]) -> str:
        return groups[0] if len(groups) == 1 else self._graph.apply("Concat", *groups, axis=1)

    def dense(self, layer: Dense, values: str) -> str:
        graph = self._graph
        product = graph.apply("MatMul", values, graph.constant(layer.weights.T))
        sums = graph.apply("Add", product, graph.constant(layer.bias))
        return sums if layer.activation == "identity" else graph.apply(_ACTIVATIONS[layer.activation], sums)

    def total(self, values: str, *, divisor: int, bias: float) -> str:
        graph = self._graph
        found = graph.sum_of_columns(values)
        found = found if divisor == 1 else graph.apply("Div", found, graph.constant(float(divisor)))
        return found if bias == 0 else graph.apply("Add", found, graph.constant(bias))
