"""Model evaluation by its definitions, one document at a time, in float64: every backend must equal it.

Trees, linear and bucket inputs, and sums are equal bit for bit; logarithms, exponentials and hyperbolic tangents
may differ in the last place between mathematical libraries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankwell.kernels.scoring.rules import (
    EXP,
    IN_CATEGORIES,
    NEARLY_ZERO,
    RELU,
    SIGMOID,
    SUM_RUN,
    TANH,
    ZERO_IS_MISSING,
    Operation,
)


def sum_in_runs(values: Sequence[float] | np.ndarray) -> float:
    """The sum in the order that `SUM_RUN` fixes."""
    total = 0.0
    for first in range(0, len(values), SUM_RUN):
        run = 0.0
        for value in values[first : first + SUM_RUN]:
            run += float(value)
        total += run
    return total


def linear_input(x: float, scale: float, offset: float, missing: float) -> float:
    return missing if math.isnan(x) else scale * x + offset


def log_linear_input(x: float, scale: float, offset: float, missing: float) -> float:
    return scale * math.log1p(x) + offset if x > -1.0 else missing


def bucket_input(x: float, edges: np.ndarray, values: np.ndarray, missing: float) -> float:
    return missing if math.isnan(x) else float(values[sum(1 for edge in edges if x > edge)])


def tested_value(x: float, kind: int, categories: np.ndarray) -> float:
    """The column that a tree's node tests, made from feature value x; NaN is a missing value."""
    if kind == ZERO_IS_MISSING and abs(x) <= NEARLY_ZERO:
        return math.nan
    if kind == IN_CATEGORIES and not math.isnan(x):
        return 1.0 if x >= 0 and int(x) in categories else 0.0
    return x


def reached_leaf(
    columns: Sequence[float],
    column: np.ndarray,
    threshold: np.ndarray,
    missing_left: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
) -> int:
    """The leaf of one tree that a document with these column values reaches."""
    node = 0 if len(column) else -1
    while node >= 0:
        value = columns[column[node]]
        goes_left = bool(missing_left[node]) if math.isnan(value) else value <= threshold[node]
        node = int(left[node] if goes_left else right[node])
    return -1 - node


def run_program(operation: np.ndarray, operand: np.ndarray, constants: np.ndarray, features: np.ndarray) -> float:
    """The value of a parsed expression for one document."""
    stack: list[float] = []
    with np.errstate(all="ignore"):
        for what, which in zip(operation.tolist(), operand.tolist(), strict=True):
            if what == Operation.CONSTANT:
                stack.append(float(constants[which]))
            elif what == Operation.FEATURE:
                stack.append(float(features[which]))
            elif what == Operation.IF:
                otherwise, value, condition = stack.pop(), stack.pop(), stack.pop()
                stack.append(value if condition != 0 and not math.isnan(condition) else otherwise)
            elif what in _OF_ONE:
                stack.append(float(_OF_ONE[what](np.float64(stack.pop()))))
            else:
                second, first = np.float64(stack.pop()), np.float64(stack.pop())
                stack.append(float(_OF_TWO[what](first, second)))
    return stack[0]


_OF_ONE = {
    Operation.NEGATE: np.negative,
    Operation.ABSOLUTE: np.abs,
    Operation.LOG: np.log,
    Operation.LOG1P: np.log1p,
    Operation.EXP: np.exp,
    Operation.SQRT: np.sqrt,
    Operation.MISSING: np.isnan,
}
_OF_TWO = {
    Operation.ADD: np.add,
    Operation.SUBTRACT: np.subtract,
    Operation.MULTIPLY: np.multiply,
    Operation.DIVIDE: np.divide,
    Operation.POWER: np.power,
    Operation.LESS: np.less,
    Operation.LESS_EQUAL: np.less_equal,
    Operation.GREATER: np.greater,
    Operation.GREATER_EQUAL: np.greater_equal,
    Operation.EQUAL: np.equal,
    Operation.NOT_EQUAL: np.not_equal,
    Operation.MINIMUM: np.minimum,
    Operation.MAXIMUM: np.maximum,
}


def dense_layer(values: Sequence[float], weights: np.ndarray, bias: np.ndarray, activation: int) -> list[float]:
    return [
        activate(sum_in_runs([float(w) * value for w, value in zip(row, values, strict=True)]) + float(b), activation)
        for row, b in zip(weights, bias, strict=True)
    ]


def activate(x: float, activation: int) -> float:
    if activation == SIGMOID:
        return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))
    if activation == RELU:
        return max(x, 0.0)
    if activation == TANH:
        return math.tanh(x)
    if activation == EXP:
        return math.exp(x) if x < 709.0 else math.inf
    return x
