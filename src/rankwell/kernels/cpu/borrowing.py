"""Arrays that a kernel reads without counting references to them.

Numba counts a reference for every view that a loop takes (``out[row]``, ``values[first:last]``), by an atomic
instruction, and cannot always remove the counting. In loops over documents that is a fifth of the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def borrowed(typing_context: Any, value: Any) -> Any:
    """The same array, or tuple of arrays, whose views are not counted.

    Only for the arguments of a kernel, which its caller keeps alive until the kernel returns; neither they nor views of
    them may be returned.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, value, arguments[0])

    return value(value), generate


def _without_owner(context: Any, builder: ir.IRBuilder, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind.types  # type: ignore[attr-defined]
        for place, part in enumerate(parts):
            own = builder.extract_value(value, place)
            value = builder.insert_value(value, _without_owner(context, builder, part, own), place)
    return value
