"""Whole numbers in as few bits as the largest of them needs.

A *run* is some numbers of one width, 0 to 31 bits. A run of 128 is stored in planes: the lowest 16 bits of all
numbers, then the next 8, 4, 2 and 1, whichever the width consists of (13 = 8 + 4 + 1), so that vectors take it apart
without a shift that differs by lane. In the plane of p bits, number j is in byte j mod 16·p, from bit p·(j div 16·p)
on. Any other run is stored number after number from the lowest bit on; its reader may load up to `PADDING` bytes after
its end. `rankwell.kernels.postings.reference` is the slow definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic

from rankwell.kernels.cpu.bits import load_word
from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel
from rankwell.kernels.postings.rules import BLOCK

_NUMBER, _PLACE = ir.IntType(32), ir.IntType(64)
# Numbers are computed in groups of 16.
_LANES = 16
_N_GROUPS = BLOCK // _LANES
_GROUP = ir.VectorType(_NUMBER, _LANES)
_BYTES, _PAIRS = ir.VectorType(ir.IntType(8), BLOCK), ir.VectorType(ir.IntType(16), BLOCK // 2)


def _data(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any, number: int) -> Any:
    """The pointer to the first element of an array argument."""
    return context.make_array(signature.args[number])(context, builder, arguments[number]).data


def _vector(builder: ir.IRBuilder, data: Any, place: Any) -> Any:
    """A pointer to the 16 numbers of 32 bits from element `place` on."""
    return builder.bitcast(builder.gep(data, [place]), _GROUP.as_pointer())


def _to_all(builder: ir.IRBuilder, value: Any, n_lanes: int = _LANES) -> Any:
    """A vector that has `value` in all lanes."""
    undefined = ir.Constant(ir.VectorType(value.type, n_lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, _NUMBER(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_NUMBER, n_lanes), [0] * n_lanes))


@intrinsic
def _unpack_planes(typing_context: Any, values: Any, place: Any, width: Any, add: Any, out: Any, at: Any) -> Any:
    """out[at + j] = number j of the run of 128 that begins at a byte + add; out : uint32 or int32"""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        source, target = (_data(context, builder, signature, arguments, number) for number in (0, 4))
        _, place, width, add, _, at = arguments
        small = _small_planes(builder, source, place, width)
        groups = [alloca_once(builder, _GROUP) for _ in range(_N_GROUPS)]
        large_bits = _to_all(builder, builder.trunc(builder.and_(width, _PLACE(24)), _NUMBER))
        for number, group in enumerate(groups):
            own = builder.zext(_part(builder, small, number * _LANES, _LANES), _GROUP)
            builder.store(builder.shl(own, large_bits), group)
        with builder.if_then(_has_plane(builder, width, 8)):
            low_bits = builder.and_(width, _PLACE(16))
            _add_plane(builder, source, builder.add(place, builder.shl(low_bits, _PLACE(4))), 8, low_bits, groups)
        with builder.if_then(_has_plane(builder, width, 16)):
            _add_plane(builder, source, place, 16, _PLACE(0), groups)
        for number, group in enumerate(groups):
            pointer = _vector(builder, target, builder.add(at, _PLACE(number * _LANES)))
            builder.store(builder.add(builder.load(group), _to_all(builder, add)), pointer, align=4)
        return context.get_dummy_value()

    return types.none(values, types.intp, types.int64, types.uint32, out, types.intp), generate


def _has_plane(builder: ir.IRBuilder, width: Any, bits: int) -> Any:
    return builder.icmp_unsigned("!=", builder.and_(width, _PLACE(bits)), _PLACE(0))


def _add_plane(builder: ir.IRBuilder, source: Any, place: Any, bits: int, shift: Any, groups: list[Any]) -> None:
    """Add the plane of 8 or 16 bits that begins at a byte to the numbers, from bit `shift` on."""
    kind, by = ir.VectorType(ir.IntType(bits), _LANES), _to_all(builder, builder.trunc(shift, _NUMBER))
    for number, group in enumerate(groups):
        byte = builder.add(place, _PLACE(number * _LANES * bits // 8))
        plane = builder.load(builder.bitcast(builder.gep(source, [byte]), kind.as_pointer()), align=1)
        builder.store(builder.or_(builder.load(group), builder.shl(builder.zext(plane, _GROUP), by)), group)


def _small_planes(builder: ir.IRBuilder, source: Any, place: Any, width: Any) -> Any:
    """The planes of 4, 2 and 1 bits together: 128 bytes."""
    together, next_byte, shift = (alloca_once(builder, kind) for kind in (_BYTES, _PLACE, ir.IntType(16)))
    builder.store(ir.Constant(_BYTES, [0] * BLOCK), together)
    builder.store(builder.add(place, builder.shl(builder.and_(width, _PLACE(24)), _PLACE(4))), next_byte)
    builder.store(ir.IntType(16)(0), shift)
    for bits in (4, 2, 1):
        with builder.if_then(_has_plane(builder, width, bits)):
            kind = ir.VectorType(ir.IntType(8), 16 * bits)
            pointer = builder.bitcast(builder.gep(source, [builder.load(next_byte)]), kind.as_pointer())
            plane = builder.load(pointer, align=1)
            mask = ir.Constant(kind, [(1 << bits) - 1] * (16 * bits))
            parts = [
                builder.and_(builder.lshr(plane, ir.Constant(kind, [low] * (16 * bits))), mask)
                for low in range(0, 8, bits)
            ]
            # No number leaves its byte, so that 16 bits can be shifted at a time; there are no shifts of bytes.
            pairs = builder.bitcast(_joined(builder, parts), _PAIRS)
            shifted = builder.bitcast(builder.shl(pairs, _to_all(builder, builder.load(shift), BLOCK // 2)), _BYTES)
            builder.store(builder.or_(builder.load(together), shifted), together)
            builder.store(builder.add(builder.load(next_byte), _PLACE(16 * bits)), next_byte)
            builder.store(builder.add(builder.load(shift), ir.IntType(16)(bits)), shift)
    return builder.load(together)


def _joined(builder: ir.IRBuilder, parts: list[Any]) -> Any:
    """Vectors one after another; there are 2, 4 or 8."""
    while len(parts) > 1:
        size = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(_NUMBER, size), list(range(size)))
        parts = [builder.shuffle_vector(one, other, order) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _part(builder: ir.IRBuilder, vector: Any, start: int, size: int) -> Any:
    """Elements [start, start + size) of a vector."""
    order = ir.Constant(ir.VectorType(_NUMBER, size), list(range(start, start + size)))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


@intrinsic
def _ascend_narrow(typing_context: Any, values: Any, place: Any, width: Any, base: Any, out: Any, at: Any) -> Any:
    """out[at + j] = base + j + number 0 + … + number j, for runs of 128 with up to 8 bits: sums fit in 16 bits."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        source, target = (_data(context, builder, signature, arguments, number) for number in (0, 4))
        _, place, width, base, _, at = arguments
        first = _to_all(builder, builder.sub(base, _NUMBER(1)))
        for number, sums in enumerate(_narrow_sums(builder, source, place, width)):
            for half in (0, _LANES):
                pointer = _vector(builder, target, builder.add(at, _PLACE(2 * _LANES * number + half)))
                value = builder.add(builder.zext(_part(builder, sums, half, _LANES), _GROUP), first)
                builder.store(value, pointer, align=4)
        return context.get_dummy_value()

    return types.none(values, types.intp, types.int64, types.uint32, out, types.intp), generate


def _narrow_sums(builder: ir.IRBuilder, source: Any, place: Any, width: Any) -> list[Any]:
    """Four vectors of 32 sums, of 16 bits: number 0 + 1, number 0 + number 1 + 2, …"""
    numbers = alloca_once(builder, _BYTES)
    with builder.if_else(_has_plane(builder, width, 8)) as (has_bytes, has_less):
        with has_bytes:
            pointer = builder.bitcast(builder.gep(source, [place]), _BYTES.as_pointer())
            builder.store(builder.load(pointer, align=1), numbers)
        with has_less:
            builder.store(_small_planes(builder, source, place, width), numbers)
    kind = ir.VectorType(ir.IntType(16), 2 * _LANES)
    before, groups = ir.Constant(kind, [0] * 2 * _LANES), []
    for start in range(0, BLOCK, 2 * _LANES):
        own = builder.zext(_part(builder, builder.load(numbers), start, 2 * _LANES), kind)
        sums, before = _sums(builder, builder.add(own, ir.Constant(kind, [1] * 2 * _LANES)), before)
        groups.append(sums)
    return groups


def _sums(builder: ir.IRBuilder, values: Any, before: Any) -> tuple[Any, Any]:
    """Each value plus those in the lanes below it and `before`; and the last of them in all lanes."""
    n_lanes = values.type.count
    zeros, lanes = ir.Constant(values.type, [0] * n_lanes), ir.VectorType(_NUMBER, n_lanes)
    step = 1
    while step < n_lanes:
        # Lane j of the second operand is number n_lanes + j: zeros move in from the left.
        order = [lane if lane < step else n_lanes + lane - step for lane in range(n_lanes)]
        values = builder.add(values, builder.shuffle_vector(zeros, values, ir.Constant(lanes, order)))
        step *= 2
    values = builder.add(values, before)
    return values, builder.shuffle_vector(values, zeros, ir.Constant(lanes, [n_lanes - 1] * n_lanes))


@intrinsic
def _add_up(typing_context: Any, values: Any, at: Any, add: Any) -> Any:
    """values[at + j] = add + values[at] + … + values[at + j], for j < 128; values : uint32 or int32"""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data = _data(context, builder, signature, arguments, 0)
        before = _to_all(builder, arguments[2])
        for number in range(_N_GROUPS):
            pointer = _vector(builder, data, builder.add(arguments[1], _PLACE(number * _LANES)))
            sums, before = _sums(builder, builder.load(pointer, align=4), before)
            builder.store(sums, pointer, align=4)
        return context.get_dummy_value()

    return types.none(values, types.intp, types.uint32), generate


@inlined_kernel
def run_bytes(count, width):
    """How many bytes a run of `count` numbers takes."""
    return (count * width + 7) >> 3


@inlined_kernel
def load_at_bit(values, bit, width):
    """The number of `width` bits that begins at a bit of `values`: one of a run that is not in planes."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    return np.int64(load_word(values, bit >> 3) >> np.uint64(bit & 7) & mask)


@inlined_kernel
def load_number(values, place, width, count, j):
    """Number `j` of the run of `count` numbers that begins at byte `place`."""
    if count != BLOCK:
        return load_at_bit(values, 8 * place + j * width, width)
    number, shift = np.int64(0), np.int64(0)
    if width & 16:
        number = np.int64(values[place + 2 * j]) | np.int64(values[place + 2 * j + 1]) << 8
        place, shift = place + 2 * BLOCK, np.int64(16)
    for bits in (8, 4, 2, 1):
        if width & bits:
            n_bytes = 16 * bits
            number |= (np.int64(values[place + j % n_bytes]) >> bits * (j // n_bytes) & ((1 << bits) - 1)) << shift
            place, shift = place + n_bytes, shift + bits
    return number


@inner_kernel(for_any_constant=True)
def load_run(values, place, width, add, count, out, at):
    """out[at + j] = number j + add, for j < count; out : uint32 or int32, with room for 128 numbers from `at` on.

    What is after `count` is undefined.
    """
    if count == BLOCK:
        _unpack_planes(values, place, np.int64(width), np.uint32(add), out, at)
    else:
        for j in range(count):
            out[at + j] = load_at_bit(values, 8 * place + j * width, width) + add


@inner_kernel(for_any_constant=True)
def load_ascending(values, place, width, base, count, out, at):
    """out[at + j] = base + j + number 0 + … + number j, as `load_run`."""
    if count == BLOCK and width <= 8:
        _ascend_narrow(values, place, np.int64(width), np.uint32(base), out, at)
    elif count == BLOCK:
        _unpack_planes(values, place, np.int64(width), np.uint32(1), out, at)
        _add_up(out, at, np.uint32(base - 1))
    else:
        value = base - 1
        for j in range(count):
            value += load_at_bit(values, 8 * place + j * width, width) + 1
            out[at + j] = value


@intrinsic
def find_number(typing_context: Any, values: Any, at: Any, wanted: Any) -> Any:
    """Which of the 128 numbers from values[at] on is the first that is `wanted`; 128: none. values : uint32

    All are compared at once, which takes less than a bisection's first steps.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data = _data(context, builder, signature, arguments, 0)
        kind = ir.VectorType(_NUMBER, BLOCK)
        undefined = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(undefined, arguments[2], _NUMBER(0))
        to_all = builder.shuffle_vector(first, undefined, ir.Constant(kind, [0] * BLOCK))
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), kind.as_pointer())
        equal = builder.icmp_unsigned("==", builder.load(pointer, align=4), to_all)
        found = builder.cttz(builder.bitcast(equal, ir.IntType(BLOCK)), ir.IntType(1)(0))
        return builder.trunc(found, _PLACE)

    return types.int64(values, types.intp, types.uint32), generate


@inner_kernel(for_any_constant=True)
def width_of(numbers, start, count):
    """The bits that the largest of numbers[start : start + count] needs; none is negative."""
    together = np.int64(0)
    for j in range(count):
        together |= np.int64(numbers[start + j])
    width = 0
    while together >> width:
        width += 1
    return width


@inner_kernel(for_any_constant=True)
def put_run(numbers, start, count, width, target, place):
    """Write numbers[start : start + count] as a run from byte `place` on; returns the place after it."""
    if count != BLOCK:
        return put_numbers(numbers, start, count, width, target, place)
    shift = np.int64(0)
    for bits in (16, 8, 4, 2, 1):
        if width & bits:
            _put_plane(numbers, start, shift, bits, target, place)
            place, shift = place + 16 * bits, shift + bits
    return place


@inner_kernel(for_any_constant=True)
def put_numbers(numbers, start, count, width, target, place):
    """Write a run that is not in planes, number after number; returns the place after it."""
    waiting, n_bits = np.int64(0), 0
    for j in range(count):
        waiting |= np.int64(numbers[start + j]) << n_bits
        n_bits += width
        while n_bits >= 8:
            target[place] = waiting & 255
            place, waiting, n_bits = place + 1, waiting >> 8, n_bits - 8
    if n_bits > 0:
        target[place] = waiting
        place += 1
    return place


@inner_kernel(for_any_constant=True)
def _put_plane(numbers, start, shift, bits, target, place):
    """Write the plane of the `bits` bits of 128 numbers from bit `shift` on."""
    mask = (1 << bits) - 1
    if bits == 16:
        for j in range(BLOCK):
            part = np.int64(numbers[start + j]) >> shift & mask
            target[place + 2 * j] = part & 255
            target[place + 2 * j + 1] = part >> 8
        return
    n_bytes = 16 * bits
    for byte in range(n_bytes):
        together = np.int64(0)
        for j in range(byte, BLOCK, n_bytes):
            together |= (np.int64(numbers[start + j]) >> shift & mask) << bits * (j // n_bytes)
        target[place + byte] = together
