"""Expressions on the CPU: a stack machine that processes 64 documents at a time."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.scoring.kinds import LANES
from rankwell.kernels.scoring.rules import LARGEST_STACK, Operation

# Numba supports plain integers, not enumerations.
_CONSTANT, _FEATURE = int(Operation.CONSTANT), int(Operation.FEATURE)
_ADD, _SUBTRACT, _MULTIPLY = int(Operation.ADD), int(Operation.SUBTRACT), int(Operation.MULTIPLY)
_DIVIDE, _POWER, _NEGATE = int(Operation.DIVIDE), int(Operation.POWER), int(Operation.NEGATE)
_LESS, _LESS_EQUAL, _GREATER = int(Operation.LESS), int(Operation.LESS_EQUAL), int(Operation.GREATER)
_GREATER_EQUAL, _EQUAL, _NOT_EQUAL = int(Operation.GREATER_EQUAL), int(Operation.EQUAL), int(Operation.NOT_EQUAL)
_MINIMUM, _ABSOLUTE, _LOG = int(Operation.MINIMUM), int(Operation.ABSOLUTE), int(Operation.LOG)
_LOG1P, _EXP, _SQRT = int(Operation.LOG1P), int(Operation.EXP), int(Operation.SQRT)
_IF, _MISSING = int(Operation.IF), int(Operation.MISSING)


@kernel(error_model="numpy")
def _of_one(operation, x):
    if operation == _NEGATE:
        return -x
    if operation == _ABSOLUTE:
        return abs(x)
    if operation == _LOG:
        return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
    if operation == _LOG1P:
        return math.log1p(x) if x > -1.0 else (-math.inf if x == -1.0 else math.nan)
    if operation == _EXP:
        return math.exp(x)
    if operation == _SQRT:
        return math.sqrt(x) if x >= 0.0 else math.nan
    return 1.0 if math.isnan(x) else 0.0


@kernel(error_model="numpy")
def _of_two(operation, x, y):
    if operation == _ADD:
        return x + y
    if operation == _SUBTRACT:
        return x - y
    if operation == _MULTIPLY:
        return x * y
    if operation == _DIVIDE:
        return x / y
    if operation == _POWER:
        return x**y
    if operation == _LESS:
        return 1.0 if x < y else 0.0
    if operation == _LESS_EQUAL:
        return 1.0 if x <= y else 0.0
    if operation == _GREATER:
        return 1.0 if x > y else 0.0
    if operation == _GREATER_EQUAL:
        return 1.0 if x >= y else 0.0
    if operation == _EQUAL:
        return 1.0 if x == y else 0.0
    if operation == _NOT_EQUAL:
        return 1.0 if x != y else 0.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    return min(x, y) if operation == _MINIMUM else max(x, y)


@kernel(error_model="numpy")
def _run(operation, operand, constants, rows, start, n_docs, stack):
    """Run one program for up to 64 documents; the result is in stack[0]."""
    top = -1
    for place in range(len(operation)):
        what = operation[place]
        if what <= _FEATURE:
            top += 1
            for lane in range(LANES):
                if what == _CONSTANT:
                    stack[top, lane] = constants[operand[place]]
                else:
                    stack[top, lane] = rows[start + min(lane, n_docs - 1), operand[place]]
        elif what == _IF:
            top -= 2
            for lane in range(LANES):
                condition = stack[top, lane]
                holds = condition != 0.0 and not math.isnan(condition)
                stack[top, lane] = stack[top + 1, lane] if holds else stack[top + 2, lane]
        elif what == _NEGATE or what >= _ABSOLUTE:
            for lane in range(LANES):
                stack[top, lane] = _of_one(what, stack[top, lane])
        else:
            top -= 1
            for lane in range(LANES):
                stack[top, lane] = _of_two(what, stack[top, lane], stack[top + 1, lane])


@kernel
def expression_inputs(rows, programs, first_input, out):
    """out[b, first_input + i, lane] = the value of program i, or missing[i] where it is not finite.

    rows : float32 (n_docs, n_features); programs : `ProgramArrays`; out : float64 (n_blocks, n_inputs, 64)
    """
    stack = np.empty((LARGEST_STACK, LANES))
    for block in range(out.shape[0]):
        start = block * LANES
        for i in range(len(programs.missing)):
            part = slice(programs.program_ptr[i], programs.program_ptr[i + 1])
            own = programs.constants[programs.constant_ptr[i] : programs.constant_ptr[i + 1]]
            n_docs = min(LANES, len(rows) - start)
            _run(programs.operation[part], programs.operand[part], own, rows, start, n_docs, stack)
            to = out[block, first_input + i]
            for lane in range(LANES):
                value = stack[0, lane]
                to[lane] = value if math.isfinite(value) else programs.missing[i]
