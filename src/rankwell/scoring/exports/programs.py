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


def infix_operations(comparison: str) -> dict[Operation, Callable[..., str]]:
    """Texts in the infix notation that C and Vespa share.

    comparison : what is written around a comparison, {} in place of it, so that it is a number
    """

    def between(sign: str) -> Callable[..., str]:
        return lambda a, b: f"({a} {sign} {b})"

    def compared(sign: str) -> Callable[..., str]:
        return lambda a, b: comparison.format(f"{a} {sign} {b}")

    return {
        Operation.ADD: between("+"),
        Operation.SUBTRACT: between("-"),
        Operation.MULTIPLY: between("*"),
        Operation.DIVIDE: between("/"),
        Operation.POWER: lambda a, b: f"pow({a}, {b})",
        Operation.NEGATE: lambda a: f"(-{a})",
        Operation.LESS: compared("<"),
        Operation.LESS_EQUAL: compared("<="),
        Operation.GREATER: compared(">"),
        Operation.GREATER_EQUAL: compared(">="),
        Operation.EQUAL: compared("=="),
        Operation.NOT_EQUAL: compared("!="),
        Operation.ABSOLUTE: lambda a: f"fabs({a})",
        Operation.LOG: lambda a: f"log({a})",
        Operation.EXP: lambda a: f"exp({a})",
        Operation.SQRT: lambda a: f"sqrt({a})",
    }
