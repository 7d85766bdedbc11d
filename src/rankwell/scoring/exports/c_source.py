"""A standalone C file: C99, the standard library alone, no allocation.

Sums run in Rankwell's order. Scores of trees, step functions and linear models have the same bits if the compiler
neither reorders nor contracts floating-point operations; logarithms, exponentials and hyperbolic tangents are the C
library's, and may differ in the last places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.scoring.rules import Operation
from rankwell.printable import printable
from rankwell.scoring.composition import RankerPart
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.c_functions import FUNCTIONS, STRUCTURES
from rankwell.scoring.exports.numbers_as_text import float32_text, float64_text
from rankwell.scoring.exports.programs import infix_operations, run_symbolically
from rankwell.scoring.exports.refusal import cannot_say
from rankwell.scoring.exports.score_writer import ScoreWriter
from rankwell.scoring.inputs import ExpressionInputs, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.trees import TreeInputs

TITLE = "A C file"

# Columns and values are on the stack.
_MOST_VALUES = 2**17
_WIDTH = 110
_OPERATIONS: dict[Operation, Callable[..., str]] = {
    **infix_operations(comparison="(double)({})"),
    Operation.MINIMUM: lambda a, b: f"minimum({a}, {b})",
    Operation.MAXIMUM: lambda a, b: f"maximum({a}, {b})",
    Operation.LOG1P: lambda a: f"log1p({a})",
    Operation.IF: lambda condition, a, b: f"choose({condition}, {a}, {b})",
    Operation.MISSING: lambda a: f"is_missing({a})",
}
_ACTIVATIONS = {"identity": "identity", "sigmoid": "sigmoid", "relu": "relu", "tanh": "tanh", "exp": "exponential"}
_HEAD = """\
/* {title}

   Written by Rankwell. Compile with -O2 -std=c99 -ffp-contract=off and -lm; never with -ffast-math, which ignores
   missing values. Features are float, in this order, NaN where one is missing:

{features} */
#include <math.h>
#include <stddef.h>

#define N_FEATURES {n_features}
"""


def write_c(description: RankerDescription, name: str) -> bytes:
    """The C file; its functions begin with `name`."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ParameterError(f"must be a word of letters, digits and _ for C, got {name!r}.", parameter="name")
    if max(description.n_columns, description.n_inputs) > _MOST_VALUES:
        raise cannot_say(TITLE, f"a ranker of more than {_MOST_VALUES} features or inputs: it keeps them on the stack")
    by_query = description.needs_queries
    writer = _CWriter(by_query)
    call = writer.score(description, _Columns(tuple(range(description.n_features)))).text
    body = "\n".join([*writer.tables, *writer.functions, _public_functions(name, call, by_query)])
    head = _HEAD.format(
        title=f"{name}: scores of documents, the higher the better.",
        features="\n".join(_feature_lines(description.feature_names)),
        n_features=description.n_features,
    )
    structures = [STRUCTURES] if "struct node" in body else []
    functions = [text for function, text in FUNCTIONS.items() if re.search(rf"\b{function}\b", body)]
    return "\n".join([head, *structures, *functions, body]).encode()


def _feature_lines(names: Sequence[str]) -> Iterable[str]:
    for number, name in enumerate(names):
        one_line = " ".join(printable(name).split())
        yield f"   {number}: {one_line.replace('*/', '* /').replace('/*', '/ *')}"


def _public_functions(name: str, call: str, by_query: bool) -> str:
    if by_query:
        return f"""\
/* The scores of one query's documents; its features are compared with those of the query's other documents.
   rows: float [n_documents][N_FEATURES]; scores: double [n_documents] */
void {name}_score_query(const float *rows, size_t n_documents, double *scores)
{{
    double lowest[N_FEATURES], spread[N_FEATURES];
    query_ranges(rows, n_documents, lowest, spread);
    for (size_t d = 0; d < n_documents; d++) {{
        const float *x = rows + d * N_FEATURES;
        scores[d] = {call};
    }}
}}
"""
    return f"""\
/* The score of one document. x: float [N_FEATURES] */
double {name}_score(const float *x)
{{
    return {call};
}}

/* The scores of one query's documents. rows: float [n_documents][N_FEATURES]; scores: double [n_documents] */
void {name}_score_query(const float *rows, size_t n_documents, double *scores)
{{
    for (size_t d = 0; d < n_documents; d++) scores[d] = {name}_score(rows + d * N_FEATURES);
}}
"""


@dataclass(frozen=True)
class _Columns:
    """Columns of the array `text`; before they are normalised, the outermost ranker's features of these numbers."""

    features: tuple[int, ...]
    text: str = ""

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class _Values:
    """`count` numbers from `text` on: a variable, or the call of a function that gives one number."""

    text: str
    count: int


@dataclass
class _Function:
    """A function in the making. n_values : how many inputs are written so far"""

    number: int
    lines: list[str] = field(default_factory=list)
    n_values: int = 0
    n_layers: int = 0


class _CWriter(ScoreWriter[_Columns, _Values]):
    """Each description becomes a function, and its arrays tables."""

    def __init__(self, by_query: bool) -> None:
        self._arguments = "x, lowest, spread" if by_query else "x"
        self._parameters = "const float *x" + (", const double *lowest, const double *spread" if by_query else "")
        self.tables: list[str] = []
        self.functions: list[str] = []
        self._open: list[_Function] = []
        self._n_functions = 0

    def score(self, description: RankerDescription, features: _Columns) -> _Values:
        function = _Function(self._n_functions)
        self._n_functions += 1
        self._open.append(function)
        function.lines.append(f"float columns[{max(1, description.n_columns)}];")
        function.lines.append(f"double values[{max(1, description.n_inputs)}];")
        result = super().score(description, features)
        self._open.pop()
        lines = "".join(f"    {line}\n" for line in [*function.lines, f"return {result.text}[0];"])
        self.functions.append(f"static double score_{function.number}({self._parameters})\n{{\n{lines}}}\n")
        return _Values(f"score_{function.number}({self._arguments})", 1)

    def normalised(self, normaliser: Normaliser, features: _Columns) -> _Columns:
        place = "i"
        if features.features != tuple(range(len(features))):
            place = f"{self._table('int', 'feature', map(str, features.features))}[i]"
        value = self._normalised_value(normaliser, place)
        self._line(f"for (int i = 0; i < {len(features)}; i++) columns[i] = {value};")
        return _Columns(features.features, "columns")

    def _normalised_value(self, normaliser: Normaliser, place: str) -> str:
        """The value of feature number `place` of the document x after the normaliser."""
        x = f"x[{place}]"
        if normaliser.name == "none":
            return x
        if normaliser.name == "standard":
            mean = self._doubles("mean", normaliser.arrays["mean"])
            return f"(float)(((double){x} - {mean}[i]) / {self._doubles('scale', normaliser.arrays['scale'])}[i])"
        lowest, spread = f"lowest[{place}]", f"spread[{place}]"
        if normaliser.name == "query-minmax":
            return f"(float)(((double){x} - {lowest}) / {spread})"
        return f"{x} == {x} ? (float)(((double){x} - {lowest}) / {spread}) : 0.0f"

    def part_features(self, part: RankerPart, features: _Columns) -> _Columns:
        return _Columns(tuple(features.features[feature] for feature in part.features))

    def with_scores(self, columns: _Columns, scores: Sequence[_Values | None]) -> _Columns:
        for place, score in enumerate(scores, start=len(columns)):
            self._line(f"columns[{place}] = {'0.0f' if score is None else f'(float){score.text}'};")
        return columns

    def linear(self, group: LinearInputs, columns: _Columns) -> _Values:
        return self._lines_of("linear_inputs", group)

    def log_linear(self, group: LogLinearInputs, columns: _Columns) -> _Values:
        return self._lines_of("log_linear_inputs", group)

    def _lines_of(self, function: str, group: LinearInputs | LogLinearInputs) -> _Values:
        tables = [self._table("int", "column", map(str, group.feature.tolist()))]
        tables += [self._doubles(name, getattr(group, name)) for name in ("scale", "offset", "missing")]
        return self._inputs(len(group), f"{function}(columns, {len(group)}, {', '.join(tables)}, {{out}});")

    def trees(self, group: TreeInputs, columns: _Columns, *, summed: bool) -> _Values:
        sizes = np.diff(group.node_ptr).tolist()
        starts = zip(group.node_ptr[:-1].tolist(), sizes, group.leaf_ptr[:-1].tolist(), strict=True)
        trees = self._table("struct tree", "trees", (f"{{{first}, {size}, {leaf}}}" for first, size, leaf in starts))
        nodes = self._table("struct node", "nodes", _node_texts(group))
        leaves = self._doubles("leaves", group.leaf_value)
        tests = self._table("struct tested", "tests", _test_texts(group))
        categories = self._table("int", "categories", map(str, group.categories.tolist()))
        arguments = f"columns, {len(group)}, {trees}, {nodes}, {leaves}, {tests}, {categories}"
        return self._inputs(len(group), f"tree_inputs({arguments}, {{out}});")

    def expressions(self, group: ExpressionInputs, columns: _Columns, names: tuple[str, ...]) -> _Values:
        lines = []
        for i, (program, missing) in enumerate(zip(group.programs(names), group.missing.tolist(), strict=True)):
            text = run_symbolically(program, lambda column: f"(double)columns[{column}]", _double, _OPERATIONS)
            lines.append(f"({{out}})[{i}] = finite_or({text}, {_double(missing)});")
        return self._inputs(len(group), "\n    ".join(lines))

    def joined(self, groups: Sequence[_Values]) -> _Values:
        return _Values("values", sum(group.count for group in groups))

    def dense(self, layer: Dense, values: _Values) -> _Values:
        n_out = len(layer.bias)
        weights, bias = self._doubles("weights", layer.weights.ravel()), self._doubles("bias", layer.bias)
        out = self._layer(n_out)
        activation = _ACTIVATIONS[layer.activation]
        self._line(f"dense_layer({values.text}, {values.count}, {weights}, {bias}, {n_out}, {activation}, {out.text});")
        return out

    def total(self, values: _Values, *, divisor: int, bias: float) -> _Values:
        out = self._layer(1)
        divided = "" if divisor == 1 else f" / {divisor}"
        added = "" if bias == 0 else f" + {_double(bias)}"
        self._line(f"{out.text}[0] = sum_in_runs({values.text}, {values.count}){divided}{added};")
        return out

    def _layer(self, n_out: int) -> _Values:
        function = self._open[-1]
        function.n_layers += 1
        self._line(f"double layer_{function.n_layers}[{n_out}];")
        return _Values(f"layer_{function.n_layers}", n_out)

    def _inputs(self, count: int, line: str) -> _Values:
        """Write `count` inputs after those before them; {out} in the line is where they go."""
        function = self._open[-1]
        out = f"values + {function.n_values}" if function.n_values else "values"
        self._line(line.replace("{out}", out))
        function.n_values += count
        return _Values(out, count)

    def _line(self, line: str) -> None:
        self._open[-1].lines.append(line)

    def _doubles(self, name: str, values: np.ndarray) -> str:
        return self._table("double", name, map(_double, values.tolist()))

    def _table(self, kind: str, name: str, items: Iterable[str]) -> str:
        """A new constant array; its name. C has no empty arrays: one of none gets an item that nothing reads."""
        name = f"{name}_{len(self.tables)}"
        listed = list(items) or ["{0}" if kind.startswith("struct") else "0"]
        self.tables.append(f"static const {kind} {name}[{len(listed)}] = {{\n{_wrapped(listed)}\n}};\n")
        return name


def _node_texts(group: TreeInputs) -> Iterable[str]:
    arrays = (group.column, group.left, group.right, group.missing_left)
    for threshold, *numbers in zip(group.threshold, *(array.tolist() for array in arrays), strict=True):
        yield f"{{{_float(threshold)}, {', '.join(map(str, numbers))}}}"


def _test_texts(group: TreeInputs) -> Iterable[str]:
    sizes = np.diff(group.category_ptr).tolist()
    arrays = (group.column_feature.tolist(), group.column_kind.tolist(), group.category_ptr[:-1].tolist(), sizes)
    for numbers in zip(*arrays, strict=True):
        yield f"{{{', '.join(map(str, numbers))}}}"


def _float(value: float) -> str:
    return f"{float32_text(value)}f"


def _double(value: float) -> str:
    if np.isinf(value):
        return "INFINITY"
    text = float64_text(value)
    return f"({text})" if text.startswith("-") else text


def _wrapped(items: Sequence[str]) -> str:
    """Items in lines of at most about `_WIDTH` characters."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])
