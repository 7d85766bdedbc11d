"""Weights times values for blocks of 64 documents: a tile of units and documents stays in registers.

The loop that a compiler makes of a dense layer loads and stores the sum of each document for each weight. Here the sums
of a few units and documents stay in registers for a run of inputs, which is what BLAS does; unlike in BLAS, each sum
keeps the order of `SUM_RUN`, so that a document's score has the same bits alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_FLOAT64, _INT32, _INT64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)


def add_run_function(n_units: int, n_lanes: int) -> Any:
    """A compiled ``f(weights, values, out, unit, first, end, lane)``.

    For u = unit, ..., unit + n_units − 1 and l = lane, ..., lane + n_lanes − 1:
    out[u, l] += Σ_{first ≤ i < end} weights[u, i] · values[i, l], the sum from zero and in this order.

    weights : float64 (n_out, n_in); values : float64 (n_in, 64); out : float64 (n_out, 64); C order
    """

    def add_run(
        typing_context: Any, weights: Any, values: Any, out: Any, unit: Any, first: Any, end: Any, lane: Any
    ) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            arrays = [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in range(3)]
            unit, first, end, lane = arguments[3:]
            units = [builder.add(unit, _INT64(u)) for u in range(n_units)]
            # Fewer registers, and of half the width, hold a quarter of the sums.
            at_once = n_lanes if _has_wide_registers(context) else n_lanes // 4
            for part in range(0, n_lanes, at_once):
                _add_tile(builder, arrays, units, first, end, builder.add(lane, _INT64(part)), at_once)
            return context.get_dummy_value()

        return types.none(weights, values, out, *[types.intp] * 4), generate

    return intrinsic(add_run)


def _has_wide_registers(context: Any) -> bool:
    """Whether code is generated for a processor with AVX-512."""
    _, processor, features = context.codegen().magic_tuple()
    return processor == "x86-64-v4" or "+avx512f" in features


def _add_tile(
    builder: ir.IRBuilder, arrays: list[Any], units: list[Any], first: Any, end: Any, lane: Any, n_lanes: int
) -> None:
    """Add the run of inputs to the sums of some units and `n_lanes` documents, one vector of sums a unit."""
    weights, values, out = arrays
    vector = ir.VectorType(_FLOAT64, n_lanes)
    n_in = cgutils.unpack_tuple(builder, weights.shape)[1]
    width = cgutils.unpack_tuple(builder, values.shape)[1]
    rows = [builder.mul(unit, n_in) for unit in units]

    def place(array: Any, row: Any) -> Any:
        offset = builder.add(builder.mul(row, width), lane)
        return builder.bitcast(builder.gep(array.data, [offset]), vector.as_pointer())

    def add_input(i: Any, sums: list[Any]) -> list[Any]:
        inputs = builder.load(place(values, i), align=8)
        factors = [builder.load(builder.gep(weights.data, [builder.add(row, i)])) for row in rows]
        return [
            builder.fadd(total, builder.fmul(_to_all_lanes(builder, factor, vector), inputs))
            for factor, total in zip(factors, sums, strict=True)
        ]

    zero = ir.Constant(vector, [0.0] * n_lanes)
    for unit, total in zip(units, _loop(builder, first, end, [zero] * len(units), add_input), strict=True):
        pointer = place(out, unit)
        builder.store(builder.fadd(builder.load(pointer, align=8), total), pointer, align=8)


def _to_all_lanes(builder: ir.IRBuilder, scalar: Any, vector: ir.VectorType) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, _INT32(0))
    zeros = ir.Constant(ir.VectorType(_INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)


def _loop(
    builder: ir.IRBuilder, first: Any, end: Any, values: list[Any], step: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Values after ``values = step(i, values)`` for first ≤ i < end, in registers."""
    before = builder.basic_block
    body, after = builder.append_basic_block("run"), builder.append_basic_block("run.end")
    builder.cbranch(builder.icmp_signed("<", first, end), body, after)
    builder.position_at_end(body)
    i = builder.phi(_INT64)
    i.add_incoming(first, before)
    current = [builder.phi(value.type) for value in values]
    for phi, value in zip(current, values, strict=True):
        phi.add_incoming(value, before)
    updated = step(i, current)
    following = builder.add(i, _INT64(1))
    i.add_incoming(following, builder.basic_block)
    for phi, value in zip(current, updated, strict=True):
        phi.add_incoming(value, builder.basic_block)
    last = builder.basic_block
    builder.cbranch(builder.icmp_signed("<", following, end), body, after)
    builder.position_at_end(after)
    results = []
    for value, new in zip(values, updated, strict=True):
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        phi.add_incoming(new, last)
        results.append(phi)
    return results
