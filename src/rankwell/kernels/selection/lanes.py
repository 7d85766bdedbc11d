"""Compares 64 numbers at once: the step that finds the few candidates among many documents.

Written as LLVM's generic vector code, which is compiled to the vector instructions of the processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

LANES = 64


@intrinsic
def lanes_above(typing_context: Any, values: Any, place: Any, least: Any) -> Any:
    """A bit for each of the 64 numbers from values[place] on: 1 where it is above `least`; values : float64"""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        vector = ir.VectorType(ir.DoubleType(), LANES)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, arguments[2], ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        above = builder.fcmp_ordered(
            ">", builder.load(pointer, align=8), builder.shuffle_vector(first, undefined, lanes)
        )
        return builder.bitcast(above, ir.IntType(64))

    return types.uint64(values, types.intp, types.float64), generate
