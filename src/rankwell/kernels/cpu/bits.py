"""Bits of whole numbers, where Numba has no operator for them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic


@intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """The index of the lowest bit that is 1; `bits`, a uint64, must not be 0."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate
