"""Expressions on the CPU: a stack machine that processes 64 documents at a time."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.elementary_functions import exp64, log1p64, log64
from rankwell.kernels.scoring.kinds import LANES
from rankwell.kernels.scoring.rules import LARGEST_STACK, Operation

# Numba supports plain integers, not enumerations.
_CONSTANT, _FEATURE = int(Operation.CONSTANT), int(Operation.FEATURE)
_ADD, _SUBTRACT, _MULTIPLY = int(Operation.ADD), int(Operation.SUBTRACT), int(Operation.MULTIPLY)
_DIVIDE, _POWER, _NEGATE = int(Operation.DIVIDE), int(Operation.POWER), int(Operation.NEGATE)
_LESS, _LESS_EQUAL, _GREATER = int(Operation.LESS), int(Operation.LESS_EQUAL), int(Operation.GREATER)
_GREATER_EQUAL, _EQUAL, _NOT_EQUAL = int(Operation.GREATER_EQUAL), int(Operation.EQUAL), int(Operation.NOT_EQUAL)
_MINIMUM, _MAXIMUM = int(Operation.MINIMUM), int(Operation.MAXIMUM)
_ABSOLUTE, _LOG = int(Operation.ABSOLUTE), int(Operation.LOG)
_LOG1P, _EXP, _SQRT = int(Operation.LOG1P), int(Operation.EXP), int(Operation.SQRT)
_IF, _MISSING = int(Operation.IF), int(Operation.MISSING)


@inner_kernel(error_model="numpy")
def _of_one(operation, values):
    """values[lane] = operation(values[lane]). A loop for each operation, so that each is vectorised."""
    if operation == _LOG1P:
        for lane in range(LANES):
            x = values[lane]
            values[lane] = log1p64(x) if x >= -1.0 else math.nan
    elif operation == _LOG:
        for lane in range(LANES):
            x = values[lane]
            values[lane] = log64(x) if x >= 0.0 else math.nan
    elif operation == _EXP:
        for lane in range(LANES):
            values[lane] = exp64(values[lane])
    elif operation == _SQRT:
        for lane in range(LANES):
            x = values[lane]
            values[lane] = math.sqrt(x) if x >= 0.0 else math.nan
    elif operation == _NEGATE:
        for lane in range(LANES):
            values[lane] = -values[lane]
    elif operation == _ABSOLUTE:
        for lane in range(LANES):
            values[lane] = abs(values[lane])
    else:
        for lane in range(LANES):
            values[lane] = 1.0 if math.isnan(values[lane]) else 0.0


@inner_kernel(error_model="numpy")
def _of_two(operation, values, others):
    """values[lane] = operation(values[lane], others[lane])."""
    if operation == _ADD:
        for lane in range(LANES):
            values[lane] += others[lane]
    elif operation == _SUBTRACT:
        for lane in range(LANES):
            values[lane] -= others[lane]
    elif operation == _MULTIPLY:
        for lane in range(LANES):
            values[lane] *= others[lane]
    elif operation == _DIVIDE:
        for lane in range(LANES):
            values[lane] /= others[lane]
    elif operation == _POWER:
        for lane in range(LANES):
            values[lane] **= others[lane]
    elif operation in (_MINIMUM, _MAXIMUM):
        for lane in range(LANES):
            x, y = values[lane], others[lane]
            takes_other = y < x if operation == _MINIMUM else y > x
            chosen = y if takes_other else x
            values[lane] = math.nan if math.isnan(y) else chosen
    else:
        for lane in range(LANES):
            values[lane] = 1.0 if _compared(operation, values[lane], others[lane]) else 0.0


@inner_kernel
def _compared(operation, x, y):
    if operation == _LESS:
        return x < y
    if operation == _LESS_EQUAL:
        return x <= y
    if operation == _GREATER:
        return x > y
    if operation == _GREATER_EQUAL:
        return x >= y
    return x == y if operation == _EQUAL else x != y


@inner_kernel(error_model="numpy")
def _run(operation, operand, constants, rows, start, n_docs, stack):
    """Run one program for up to 64 documents; the result is in stack[0]."""
    top = -1
    for place in range(len(operation)):
        what = operation[place]
        if what == _CONSTANT:
            top += 1
            constant = constants[operand[place]]
            for lane in range(LANES):
                stack[top, lane] = constant
        elif what == _FEATURE:
            top += 1
            feature = operand[place]
            for lane in range(n_docs):
                stack[top, lane] = rows[start + lane, feature]
            for lane in range(n_docs, LANES):
                stack[top, lane] = stack[top, n_docs - 1]
        elif what == _IF:
            top -= 2
            for lane in range(LANES):
                condition = stack[top, lane]
                holds = condition != 0.0 and not math.isnan(condition)
                stack[top, lane] = stack[top + 1, lane] if holds else stack[top + 2, lane]
        elif what == _NEGATE or what >= _ABSOLUTE:
            _of_one(what, stack[top])
        else:
            top -= 1
            _of_two(what, stack[top], stack[top + 1])


@kernel
def expression_inputs(rows, programs, first_input, out):
    """out[b, first_input + i, lane] = the value of program i, or missing[i] where it is not finite.

    rows : float32 (n_docs, n_features); programs : `ProgramArrays`; out : float64 (n_blocks, n_inputs, 64)
    """
    stack = np.empty((LARGEST_STACK, LANES))
    _run_all(rows, programs, first_input, stack, out)


@inner_kernel(allocates=False)
def _run_all(rows, programs, first_input, stack, out):
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
