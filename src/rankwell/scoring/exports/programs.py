"""Parsed expressions in the words of a format: the program of the stack machine, with texts or values on its stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from rankwell.kernels.scoring.rules import Operation
from rankwell.scoring.expression import Expression

Piece = TypeVar("Piece")

_ARGUMENTS = {
    Operation.NEGATE: 1,
    Operation.ABSOLUTE: 1,
    Operation.LOG: 1,
    Operation.LOG1P: 1,
    Operation.EXP: 1,
    Operation.SQRT: 1,
    Operation.MISSING: 1,
    Operation.IF: 3,
}


def run_symbolically(
    program: Expression,
    feature: Callable[[int], Piece],
    constant: Callable[[float], Piece],
    operations: Mapping[Operation, Callable[..., Piece]],
) -> Piece:
    """What the format writes for the whole program, from what it writes for each instruction."""
    stack: list[Piece] = []
    for number, operand in zip(program.operation.tolist(), program.operand.tolist(), strict=True):
        operation = Operation(number)
        if operation == Operation.CONSTANT:
            stack.append(constant(float(program.constants[operand])))
        elif operation == Operation.FEATURE:
            stack.append(feature(operand))
        else:
            first = len(stack) - _ARGUMENTS.get(operation, 2)
            arguments = stack[first:]
            del stack[first:]
            stack.append(operations[operation](*arguments))
    return stack[0]


def infix_operations(comparison: str, helper: str) -> dict[Operation, Callable[..., str]]:
    """Texts in the infix notation that C and Vespa share.

    comparison : what is written around a comparison, {} in place of it, so that it is a number; helper : what the names
    of functions begin with that the format has not, or has with another treatment of missing values
    """

    def between(sign: str) -> Callable[..., str]:
        return lambda a, b: f"({a} {sign} {b})"

    def compared(sign: str) -> Callable[..., str]:
        return lambda a, b: comparison.format(f"{a} {sign} {b}")

    def call(name: str) -> Callable[..., str]:
        return lambda *arguments: f"{name}({', '.join(arguments)})"

    return {
        Operation.ADD: between("+"),
        Operation.SUBTRACT: between("-"),
        Operation.MULTIPLY: between("*"),
        Operation.DIVIDE: between("/"),
        Operation.POWER: call("pow"),
        Operation.NEGATE: lambda a: f"(-{a})",
        Operation.LESS: compared("<"),
        Operation.LESS_EQUAL: compared("<="),
        Operation.GREATER: compared(">"),
        Operation.GREATER_EQUAL: compared(">="),
        Operation.EQUAL: compared("=="),
        Operation.NOT_EQUAL: compared("!="),
        Operation.MINIMUM: call(f"{helper}minimum"),
        Operation.MAXIMUM: call(f"{helper}maximum"),
        Operation.ABSOLUTE: call("fabs"),
        Operation.LOG: call("log"),
        Operation.LOG1P: call(f"{helper}log1p"),
        Operation.EXP: call("exp"),
        Operation.SQRT: call("sqrt"),
        Operation.IF: call(f"{helper}choose"),
        Operation.MISSING: call(f"{helper}is_missing"),
    }
