"""Words of 64 bits, where Numba has no operator for them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def load_word(typing_context: Any, values: Any, place: Any) -> Any:
    """The little-endian uint64 of the eight bytes from `place` on, aligned or not; values : uint8"""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.bitcast(builder.gep(data, [arguments[1]]), _WORD.as_pointer()), align=1)

    return types.uint64(values, types.intp), generate


@intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """The index of the lowest bit that is 1; `bits`, a uint64, must not be 0."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate
