"""Vector instructions for Numba kernels, where the compiler's vectorisation is not sufficient.

Numba's loops over short rows spend much of their time in the remainder that does not fill a register. The functions
here are written as LLVM vector operations on `LANES` numbers at a time and several rows at once; LLVM translates them
to the instructions of the processor. Sums are always float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 4
# Label levels that `running_totals` distinguishes: one row of totals is one cache line.
TOTALS = 8

_FLOAT32, _FLOAT64 = ir.FloatType(), ir.DoubleType()
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_CONTRACT = ("contract",)


def multiply_rows_function(n_rows: int) -> Any:
    """A compiled ``f(features, row, vector, products, place)``: products[place + r] = x_{row + r}·vector, r < n_rows.

    features : float32 (n_docs, n_features), C order; vector : float64 (n_features,); products : float64
    """

    def multiply(typing_context: Any, features: Any, row: Any, vector: Any, products: Any, place: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            x, v, out = (array_data(context, builder, signature, arguments, k) for k in (0, 2, 3))
            n_features = array_length(context, builder, signature, arguments, 2)
            rows = _row_pointers(builder, x, arguments[1], n_features, n_rows)
            wide = [variable(builder, ir.Constant(ir.VectorType(_FLOAT64, LANES), [0.0] * LANES)) for _ in rows]
            single = [variable(builder, _FLOAT64(0.0)) for _ in rows]

            def step(offset: Any, lanes: int) -> None:
                factor = load_lanes(builder, v, offset, _FLOAT64, lanes)
                for pointer, total in zip(rows, wide if lanes > 1 else single, strict=True):
                    value = _widen(builder, load_lanes(builder, pointer, offset, _FLOAT32, lanes))
                    builder.store(_multiply_add(builder, value, factor, builder.load(total)), total)

            _for_each_lane_group(builder, n_features, step)
            for r in range(n_rows):
                total = builder.fadd(sum_lanes(builder, builder.load(wide[r])), builder.load(single[r]))
                builder.store(total, builder.gep(out, [builder.add(arguments[4], _INT64(r))]))
            return context.get_dummy_value()

        return types.none(features, types.intp, vector, products, types.intp), generate

    return intrinsic(multiply)


def add_rows_function(n_rows: int) -> Any:
    """A compiled ``f(features, row, factors, place, total)``: total += Σ_{r < n_rows} factors[place + r]·x_{row + r}.

    features : float32 (n_docs, n_features), C order; factors, total : float64
    """

    def add(typing_context: Any, features: Any, row: Any, factors: Any, place: Any, total: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            x, u, out = (array_data(context, builder, signature, arguments, k) for k in (0, 2, 4))
            n_features = array_length(context, builder, signature, arguments, 4)
            rows = _row_pointers(builder, x, arguments[1], n_features, n_rows)
            scalars = [builder.load(builder.gep(u, [builder.add(arguments[3], _INT64(r))])) for r in range(n_rows)]
            vectors = [broadcast(builder, scalar, LANES) for scalar in scalars]

            def step(offset: Any, lanes: int) -> None:
                total = load_lanes(builder, out, offset, _FLOAT64, lanes)
                for pointer, factor in zip(rows, vectors if lanes > 1 else scalars, strict=True):
                    value = _widen(builder, load_lanes(builder, pointer, offset, _FLOAT32, lanes))
                    total = _multiply_add(builder, value, factor, total)
                store_lanes(builder, total, out, offset)

            _for_each_lane_group(builder, n_features, step)
            return context.get_dummy_value()

        return types.none(features, types.intp, factors, types.intp, total), generate

    return intrinsic(add)


@intrinsic
def running_totals(typing_context: Any, values: Any, levels: Any, membership: Any, totals: Any) -> Any:
    """totals[p + 1] = totals[p] + values[p]·membership[levels[p]], rows of `TOTALS` numbers; totals[0] = 0.

    values : float64 (n,); levels : int32 (n,); membership : float64 (TOTALS, TOTALS); totals : float64, at least
    (n + 1, TOTALS). The compiler would keep the running row in memory, because other code reads it by index.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        x, level_of, member, out = (array_data(context, builder, signature, arguments, k) for k in range(4))
        zero = ir.Constant(ir.VectorType(_FLOAT64, TOTALS), [0.0] * TOTALS)
        running = variable(builder, zero)
        store_lanes(builder, zero, out, _INT64(0))
        with cgutils.for_range(builder, array_length(context, builder, signature, arguments, 0)) as loop:
            value = broadcast(builder, builder.load(builder.gep(x, [loop.index])), TOTALS)
            level = builder.sext(builder.load(builder.gep(level_of, [loop.index])), _INT64)
            counted = load_lanes(builder, member, builder.mul(level, _INT64(TOTALS)), _FLOAT64, TOTALS)
            total = _multiply_add(builder, value, counted, builder.load(running))
            builder.store(total, running)
            store_lanes(builder, total, out, builder.mul(builder.add(loop.index, _INT64(1)), _INT64(TOTALS)))
        return context.get_dummy_value()

    return types.none(values, levels, membership, totals), generate


def _prefetch_into(level: int) -> Callable[..., Any]:
    """The prefetch of a cache line, for reading, into the cache of a level: 3 is the first, 2 the second."""

    def prefetch(typing_context: Any, array: Any, offset: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            pointer = ir.IntType(8).as_pointer()
            address = builder.bitcast(
                builder.gep(array_data(context, builder, signature, arguments, 0), [arguments[1]]), pointer
            )
            function_type = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], function_type)
            builder.call(function, [address, _INT32(0), _INT32(level), _INT32(1)])
            return context.get_dummy_value()

        return types.none(array, types.intp), generate

    return prefetch


@intrinsic
def prefetch(typing_context: Any, array: Any, offset: Any) -> Any:
    """Prefetch the line of array[offset] into the second-level cache; an address outside the array is harmless."""
    return _prefetch_into(2)(typing_context, array, offset)


@intrinsic
def prefetch_near(typing_context: Any, array: Any, offset: Any) -> Any:
    """As `prefetch`, into the first-level cache."""
    return _prefetch_into(3)(typing_context, array, offset)


def array_data(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any, number: int) -> Any:
    """The pointer to the first element of an array argument."""
    return context.make_array(signature.args[number])(context, builder, arguments[number]).data


def array_length(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any, number: int) -> Any:
    array = context.make_array(signature.args[number])(context, builder, arguments[number])
    return builder.extract_value(array.shape, 0)


def variable(builder: ir.IRBuilder, value: Any) -> Any:
    """A local variable, set to `value` here (each time, if this code is in a loop)."""
    variable = cgutils.alloca_once(builder, value.type)
    builder.store(value, variable)
    return variable


def _row_pointers(builder: ir.IRBuilder, x: Any, row: Any, n_features: Any, n_rows: int) -> list[Any]:
    return [builder.gep(x, [builder.mul(builder.add(row, _INT64(r)), n_features)]) for r in range(n_rows)]


def _for_each_lane_group(builder: ir.IRBuilder, length: Any, step: Callable[[Any, int], None]) -> None:
    """Run `step` on whole groups of LANES numbers, then on the remaining ones."""
    n_groups = builder.udiv(length, _INT64(LANES))
    with cgutils.for_range(builder, n_groups) as loop:
        step(builder.mul(loop.index, _INT64(LANES)), LANES)
    done = builder.mul(n_groups, _INT64(LANES))
    with cgutils.for_range(builder, builder.sub(length, done)) as loop:
        step(builder.add(done, loop.index), 1)


def load_lanes(builder: ir.IRBuilder, pointer: Any, offset: Any, element: Any, lanes: int) -> Any:
    address = builder.gep(pointer, [offset])
    if lanes == 1:
        return builder.load(address)
    address = builder.bitcast(address, ir.VectorType(element, lanes).as_pointer())
    return builder.load(address, align=4 if element in (_FLOAT32, _INT32) else 8)


def store_lanes(builder: ir.IRBuilder, value: Any, pointer: Any, offset: Any) -> None:
    address = builder.bitcast(builder.gep(pointer, [offset]), value.type.as_pointer())
    element = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    builder.store(value, address, align=4 if element in (_FLOAT32, _INT32) else 8)


def _widen(builder: ir.IRBuilder, value: Any) -> Any:
    is_vector = isinstance(value.type, ir.VectorType)
    return builder.fpext(value, ir.VectorType(_FLOAT64, value.type.count) if is_vector else _FLOAT64)


def _multiply_add(builder: ir.IRBuilder, x: Any, y: Any, z: Any) -> Any:
    return builder.fadd(z, builder.fmul(x, y, flags=_CONTRACT), flags=_CONTRACT)


def broadcast(builder: ir.IRBuilder, scalar: Any, lanes: int) -> Any:
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, scalar, _INT32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes))


def sum_lanes(builder: ir.IRBuilder, vector: Any) -> Any:
    """The sum of a vector's lanes, by adding halves."""
    width = vector.type.count
    while width > 1:
        width //= 2
        low, high = (ir.Constant(ir.VectorType(_INT32, width), list(range(k, k + width))) for k in (0, width))
        vector = builder.fadd(builder.shuffle_vector(vector, vector, low), builder.shuffle_vector(vector, vector, high))
    return builder.extract_element(vector, _INT32(0))


def sums_of_lanes(builder: ir.IRBuilder, vectors: Sequence[Any]) -> Any:
    """The sums of several vectors, one after another as the first lanes of one vector.

    Each is added by halves, as `sum_lanes` does, but the halves of two vectors by one instruction. There are at most as
    many vectors as lanes.
    """
    lanes = vectors[0].type.count
    zero = ir.Constant(vectors[0].type, [0.0] * lanes)
    parts, width = list(vectors), lanes
    while width > 1:
        width //= 2
        # A part has the sums of `lanes` / width vectors; here their first halves, and their second ones, of two parts.
        low = [start + lane for start in range(0, 2 * lanes, 2 * width) for lane in range(width)]
        first, second = (
            ir.Constant(ir.VectorType(_INT32, lanes), [lane + begin for lane in low]) for begin in (0, width)
        )
        pairs = zip(parts[::2], [*parts[1::2], zero], strict=False)
        parts = [
            builder.fadd(builder.shuffle_vector(*pair, first), builder.shuffle_vector(*pair, second)) for pair in pairs
        ]
    return parts[0]
