"""Loops over documents and bins as vector instructions: the compiler does not vectorise them by itself.

Nothing here is fused or reordered: each lane's result is that of the same operations one after another (`rules`), and
sums over lanes are taken in a fixed order. So neither the processor's registers nor its instructions matter.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankwell.kernels.cpu.vectors import array_data, broadcast, load_lanes, store_lanes, sums_of_lanes, variable

# Documents of a query side by side (float32), and bins (float64). Arrays have as much padding at the end.
LANES = 16
GAIN_LANES = 8
# Rows of pairs worked on together.
PAIR_ROWS = 4
N_ROW_SUMS = 3
# What is left of an objective in `any_reaches`, whose rounding errors are below 2^-20 of it.
NEARLY = 1.0 - 2.0**-18
# The place of distance 0 in `pair_rows`'s table of distances: a row and a column of its block of lanes.
FIRST_DISTANCE = 32

_F32, _F64, _I1, _I32, _I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(1), ir.IntType(32), ir.IntType(64)


def _constant(kind: Any, lanes: int, value: float) -> Any:
    return ir.Constant(ir.VectorType(kind, lanes), [value] * lanes)


def _positive_part(builder: ir.IRBuilder, value: Any) -> Any:
    zero = ir.Constant(value.type, [0.0] * value.type.count)
    return builder.select(builder.fcmp_ordered(">", value, zero), value, zero)


def _bits_of(builder: ir.IRBuilder, value: Any) -> tuple[Any, Any]:
    """The bits of floating-point numbers, and those that are their signs."""
    size = 32 if value.type.element == _F32 else 64
    bits = ir.VectorType(ir.IntType(size), value.type.count)
    return builder.bitcast(value, bits), ir.Constant(bits, [1 << (size - 1)] * bits.count)


def _size_of(builder: ir.IRBuilder, value: Any) -> Any:
    bits, signs = _bits_of(builder, value)
    return builder.bitcast(builder.and_(bits, builder.not_(signs)), value.type)


def _with_sign_of(builder: ir.IRBuilder, size: Any, value: Any) -> Any:
    """`size`, which is not negative, with the sign of `value`."""
    bits, signs = _bits_of(builder, value)
    signed = builder.or_(_bits_of(builder, size)[0], builder.and_(bits, signs))
    return builder.bitcast(signed, size.type)


def _largest(builder: ir.IRBuilder, vector: Any) -> Any:
    width = vector.type.count
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_I32, width), list(range(k, k + width))))
            for k in (0, width)
        )
        vector = builder.select(builder.fcmp_ordered(">", low, high), low, high)
    return builder.extract_element(vector, _I32(0))


@intrinsic
def pair_rows(
    typing_context: Any,
    table: Any,
    by_distance: Any,
    gradient: Any,
    hessian: Any,
    first: Any,
    limit: Any,
    n_docs: Any,
    slope: Any,
    floor: Any,
    flat: Any,
    sums: Any,
) -> Any:
    """Pairs of the documents at places first, ..., first + 3 (below `limit`) with those at the places after each.

    With E = e^(σ·(score − best score)), gain G, and the weights X of a row and Y of a column, the pair of the places
    i < j has e = E_j·(1/E_i) = e^(−σ·(s_i − s_j)), the weight w = |G_i − G_j|·(max(X_i − Y_j, 0) + D[j − i]) / t, where
    t = slope·max(s_i − s_j, 0) + floor, and, where the document at i has the larger gain,
    λ = w·e / (1 + e), else λ = w / (1 + e); both have the Hessian w·e / (1 + e)².

    table : float32 (6, n), s, E, G, X, Y and 1/E by place, n at least n_docs + 20, E not 0 anywhere
    by_distance : float32, D[d] at place `FIRST_DISTANCE` + d, for d from −`FIRST_DISTANCE` to n_docs + 15
    gradient, hessian : float32 (n,), to which each column's part is added, rows in ascending order
    flat : int64, 1 if a difference of gains counts as 1
    sums : float32 (3, n), written at the rows' places: gradient, Hessian and Σλ of each; lane j sums the places j,
        j + 16, ..., then lanes are added in halves. They are not added to `gradient`: the next rows would have to wait
        for them
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        def rows_of(number: int, n_rows: int) -> list[Any]:
            array = context.make_array(signature.args[number])(context, builder, arguments[number])
            length = builder.extract_value(array.shape, 1)
            return [builder.gep(array.data, [builder.mul(length, _I64(row))]) for row in range(n_rows)]

        distances, lam, hes = (array_data(context, builder, signature, arguments, k) for k in range(1, 4))
        first_place, last_place, end, slope_of, floor_of, is_flat = arguments[4:10]
        fields, out = rows_of(0, 6), rows_of(10, N_ROW_SUMS)
        one, zero = _constant(_F32, LANES, 1.0), _constant(_F32, LANES, 0.0)
        slopes, floors = broadcast(builder, slope_of, LANES), broadcast(builder, floor_of, LANES)
        counts_one = builder.icmp_signed("!=", is_flat, _I64(0))
        lane_numbers = ir.Constant(ir.VectorType(_I32, LANES), list(range(LANES)))
        ends = broadcast(builder, builder.trunc(end, _I32), LANES)
        rows = []
        for k in range(PAIR_ROWS):
            place = builder.add(first_place, _I64(k))
            s, gain, x, inverse = (builder.load(builder.gep(fields[field], [place])) for field in (0, 2, 3, 5))
            # No place is after that of a row beyond the limit.
            own = builder.select(
                builder.icmp_signed("<", place, last_place), builder.trunc(place, _I32), _I32(2**31 - 1)
            )
            of_row = [broadcast(builder, value, LANES) for value in (s, inverse, gain, x, own)]
            from_row = builder.gep(distances, [builder.sub(_I64(FIRST_DISTANCE), place)])
            rows.append((*of_row, from_row))
        totals = [variable(builder, zero) for _ in range(N_ROW_SUMS * PAIR_ROWS)]
        start = builder.and_(builder.add(first_place, _I64(1)), _I64(-LANES))
        with cgutils.for_range_slice(builder, start, end, _I64(LANES), _I64) as (j, _):
            column_s, column_e, column_gain, _, y = (load_lanes(builder, field, j, _F32, LANES) for field in fields[:5])
            column_gradient, column_hessian = (load_lanes(builder, array, j, _F32, LANES) for array in (lam, hes))
            numbers = builder.add(broadcast(builder, builder.trunc(j, _I32), LANES), lane_numbers)
            is_document = builder.icmp_signed("<", numbers, ends)
            for k, (row_s, row_inverse, row_gain, x, own, from_row) in enumerate(rows):
                difference = builder.fsub(row_gain, column_gain)
                gap = _positive_part(builder, builder.fsub(x, y))
                gap = builder.fadd(gap, load_lanes(builder, from_row, j, _F32, LANES))
                is_pair = builder.and_(builder.icmp_signed(">", numbers, own), is_document)
                gap = builder.select(is_pair, gap, zero)
                size = _size_of(builder, difference)
                unit = builder.select(builder.fcmp_ordered(">", size, zero), one, zero)
                size = builder.select(counts_one, unit, size)
                e = builder.fmul(column_e, row_inverse)
                # Of a pair it is not below 0; of others it must only not make `t` 0.
                distance = _size_of(builder, builder.fsub(row_s, column_s))
                t = builder.fadd(builder.fmul(slopes, distance), floors)
                inverse = builder.fdiv(one, builder.fmul(t, builder.fadd(one, e)))
                w = builder.fmul(builder.fmul(size, gap), inverse)
                is_better = builder.fcmp_ordered(">", difference, zero)
                we = builder.fmul(w, e)
                value = builder.select(is_better, we, w)
                curvature = builder.fmul(we, builder.fmul(t, inverse))
                signed = _with_sign_of(builder, value, difference)
                column_gradient = builder.fadd(column_gradient, signed)
                column_hessian = builder.fadd(column_hessian, curvature)
                for number, part in enumerate((builder.fneg(signed), curvature, value)):
                    total = totals[number * PAIR_ROWS + k]
                    builder.store(builder.fadd(builder.load(total), part), total)
            store_lanes(builder, column_gradient, lam, j)
            store_lanes(builder, column_hessian, hes, j)
        of_rows = sums_of_lanes(builder, [builder.load(total) for total in totals])
        for number, row_sums in enumerate(out):
            own = ir.Constant(ir.VectorType(_I32, PAIR_ROWS), list(range(number * PAIR_ROWS, (number + 1) * PAIR_ROWS)))
            store_lanes(builder, builder.shuffle_vector(of_rows, of_rows, own), row_sums, first_place)
        return context.get_dummy_value()

    numbers = (types.int64,) * 3 + (types.float32, types.float32, types.int64)
    return types.none(table, by_distance, gradient, hessian, *numbers, sums), generate


@intrinsic
def rank_places(typing_context: Any, scores: Any, n_padded: Any, places: Any) -> Any:
    """places[i] = how many documents rank before document i: higher scores, and equal ones earlier in the file.

    Of two finite numbers, or one and an infinity, the smaller one less the larger one has the sign bit, and no other
    difference has it, if none is −0. To count bits takes half as long as to compare.

    scores : float32 without −0; −inf from the last document to `n_padded`, a multiple of `LANES`
    places : int32, written
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data, out = (array_data(context, builder, signature, arguments, k) for k in (0, 2))
        counts = ir.VectorType(_I32, LANES)
        sign_place = ir.Constant(counts, [31] * LANES)

        def is_below(one: Any, other: Any) -> Any:
            return builder.lshr(builder.bitcast(builder.fsub(one, other), counts), sign_place)

        def other(place: Any) -> Any:
            return broadcast(builder, builder.load(builder.gep(data, [place])), LANES)

        with cgutils.for_range_slice(builder, _I64(0), arguments[1], _I64(LANES), _I64) as (i, _):
            own = load_lanes(builder, data, i, _F32, LANES)
            # All that are before in the file, less those of them that are below.
            count = variable(builder, broadcast(builder, builder.trunc(i, _I32), LANES))
            with cgutils.for_range_slice(builder, _I64(0), i, _I64(1), _I64) as (j, _):
                builder.store(builder.sub(builder.load(count), is_below(other(j), own)), count)
            for k in range(LANES):
                value = other(builder.add(i, _I64(k)))
                later = ir.Constant(ir.VectorType(_I1, LANES), [int(lane > k) for lane in range(LANES)])
                equal = builder.zext(builder.and_(builder.fcmp_ordered("==", value, own), later), counts)
                builder.store(builder.add(builder.load(count), builder.or_(is_below(own, value), equal)), count)
            with cgutils.for_range_slice(builder, builder.add(i, _I64(LANES)), arguments[1], _I64(1), _I64) as (j, _):
                builder.store(builder.add(builder.load(count), is_below(own, other(j))), count)
            store_lanes(builder, builder.load(count), out, i)
        return context.get_dummy_value()

    return types.none(scores, types.int64, places), generate


@intrinsic
def any_reaches(
    typing_context: Any,
    sums: Any,
    first_place: Any,
    n_codes: Any,
    carried: Any,
    total: Any,
    l2: Any,
    smallest: Any,
    needed: Any,
) -> Any:
    """Whether a cut after one of the codes might have an objective of `needed` for both sides together, l1 being 0.

    In float32, whose rounding errors are far below the share of `needed` that is left out (`NEARLY`): some that do not
    reach it pass, none that does is missed. Whole numbers are subtracted before they are rounded.

    sums : int64, from `first_place` on the packed sum of each code, in 16-fold many places
    carried : int64, added to all sums; total : int64, the leaf's packed sum
    l2 : float64; smallest : int64, the least Hessian of a side; needed : float64
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data = builder.gep(array_data(context, builder, signature, arguments, 0), [arguments[1]])
        _, _, size, before, whole, penalty, least, enough = arguments
        half = LANES // 2
        integers, floats = ir.VectorType(_I32, LANES), ir.VectorType(_F32, LANES)
        zeros, upper = ir.Constant(ir.VectorType(_I64, half), [0] * half), [32] * half

        def pick(first: Any, second: Any, places: list[int]) -> Any:
            return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_I32, len(places)), places))

        def prefix(vector: Any) -> Any:
            for step in (1, 2, 4):
                vector = builder.add(vector, pick(zeros, vector, list(range(half - step, 2 * half - step))))
            return vector

        def last(vector: Any) -> Any:
            return pick(vector, vector, [half - 1] * half)

        def real(vector: Any, is_signed: bool) -> Any:
            return builder.sitofp(vector, floats) if is_signed else builder.uitofp(vector, floats)

        def of_all(value: Any) -> Any:
            return broadcast(builder, value, LANES)

        whole_g = of_all(builder.trunc(builder.ashr(whole, _I64(32)), _I32))
        whole_h = of_all(builder.trunc(whole, _I32))
        least_h, added = of_all(builder.trunc(least, _I32)), of_all(builder.fptrunc(penalty, _F32))
        bound = of_all(builder.fptrunc(builder.fmul(enough, _F64(NEARLY)), _F32))
        lanes = ir.Constant(integers, list(range(LANES)))
        # The cut after the last code is none.
        n_cuts = of_all(builder.trunc(builder.sub(size, _I64(1)), _I32))
        carry = variable(builder, broadcast(builder, before, half))
        reached = variable(builder, ir.Constant(ir.VectorType(_I1, LANES), [0] * LANES))
        with cgutils.for_range_slice(builder, _I64(0), size, _I64(LANES), _I64) as (place, _):
            parts = []
            for number in range(2):
                own = prefix(load_lanes(builder, data, builder.add(place, _I64(number * half)), _I64, half))
                earlier = builder.load(carry)
                parts.append(builder.add(own, earlier))
                builder.store(builder.add(last(own), earlier), carry)
            narrow = ir.VectorType(_I32, half)
            high = [builder.trunc(builder.ashr(part, ir.Constant(part.type, upper)), narrow) for part in parts]
            low = [builder.trunc(part, narrow) for part in parts]
            g1, h1 = (pick(first, second, list(range(LANES))) for first, second in (high, low))
            g2, h2 = builder.sub(whole_g, g1), builder.sub(whole_h, h1)
            t1, t2 = real(g1, is_signed=True), real(g2, is_signed=True)
            a, b = (builder.fadd(real(h, is_signed=False), added) for h in (h1, h2))
            top = builder.fadd(builder.fmul(builder.fmul(t1, t1), b), builder.fmul(builder.fmul(t2, t2), a))
            is_enough = builder.fcmp_ordered(">=", top, builder.fmul(bound, builder.fmul(a, b)))
            is_allowed = builder.and_(
                builder.icmp_unsigned(">=", h1, least_h), builder.icmp_unsigned(">=", h2, least_h)
            )
            is_cut = builder.icmp_signed("<", builder.add(of_all(builder.trunc(place, _I32)), lanes), n_cuts)
            found = builder.and_(builder.and_(is_enough, is_allowed), is_cut)
            builder.store(builder.or_(builder.load(reached), found), reached)
        flags = builder.bitcast(builder.load(reached), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", flags, ir.IntType(LANES)(0))

    numbers = (types.int64,) * 4 + (types.float64, types.int64, types.float64)
    return types.boolean(sums, *numbers), generate


@intrinsic
def cut_gains(
    typing_context: Any,
    running: Any,
    first_place: Any,
    n_padded: Any,
    gradient: Any,
    hessian: Any,
    l1: Any,
    l2: Any,
    smallest: Any,
    parent: Any,
    to_beat: Any,
    is_reached: Any,
    gains: Any,
) -> Any:
    """The gain of the cut after each code (`rules`), 0 where it is not allowed; returns the largest.

    If certainly none of them reaches `to_beat`, `gains` is not written and 0 is returned: most features end there,
    without a division; unless `is_reached` says that one nearly certainly does.

    running : int64, from `first_place` on the packed sums of the codes up to each, `n_padded` of them (a multiple of
        `GAIN_LANES`)
    gradient, hessian : float64, of the leaf; smallest : float64, the least Hessian; parent : float64, its objective
    gains : float64, written
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data, out = (array_data(context, builder, signature, arguments, k) for k in (0, 11))
        sums = builder.gep(data, [arguments[1]])
        whole_g, whole_h, first, second, least, before, least_gain = (
            broadcast(builder, argument, GAIN_LANES) for argument in arguments[3:10]
        )
        zero = _constant(_F64, GAIN_LANES, 0.0)
        upper = ir.Constant(ir.VectorType(_I64, GAIN_LANES), [32] * GAIN_LANES)
        narrow, wide = ir.VectorType(_I32, GAIN_LANES), ir.VectorType(_F64, GAIN_LANES)

        def square(gradient_sum: Any) -> Any:
            t = _positive_part(builder, builder.fsub(_size_of(builder, gradient_sum), first))
            return builder.fmul(t, t)

        def quotient(b: Any) -> tuple[Any, Any, Any]:
            """The objective of both sides as numerator and denominator, and whether the cut is allowed."""
            packed = load_lanes(builder, sums, b, _I64, GAIN_LANES)
            g1 = builder.sitofp(builder.trunc(builder.ashr(packed, upper), narrow), wide)
            h1 = builder.uitofp(builder.trunc(packed, narrow), wide)
            g2, h2 = builder.fsub(whole_g, g1), builder.fsub(whole_h, h1)
            a, c = builder.fadd(h1, second), builder.fadd(h2, second)
            top = builder.fadd(builder.fmul(square(g1), c), builder.fmul(square(g2), a))
            is_allowed = builder.and_(builder.fcmp_ordered(">=", h1, least), builder.fcmp_ordered(">=", h2, least))
            return top, builder.fmul(a, c), is_allowed

        # Rounding errors are below 2^-48 of the objective: whatever could reach `to_beat` reaches this.
        needed = builder.fmul(builder.fadd(least_gain, before), _constant(_F64, GAIN_LANES, 1.0 - 2.0**-48))
        reached = variable(builder, broadcast(builder, arguments[10], GAIN_LANES))
        with (
            builder.if_then(builder.not_(arguments[10])),
            cgutils.for_range_slice(builder, _I64(0), arguments[2], _I64(GAIN_LANES), _I64) as (b, _),
        ):
            top, bottom, is_allowed = quotient(b)
            reaches = builder.and_(is_allowed, builder.fcmp_ordered(">=", top, builder.fmul(needed, bottom)))
            builder.store(builder.or_(builder.load(reached), reaches), reached)
        largest = variable(builder, zero)
        flags = builder.bitcast(builder.load(reached), ir.IntType(GAIN_LANES))
        with (
            builder.if_then(builder.icmp_unsigned("!=", flags, ir.IntType(GAIN_LANES)(0))),
            cgutils.for_range_slice(builder, _I64(0), arguments[2], _I64(GAIN_LANES), _I64) as (b, _),
        ):
            top, bottom, is_allowed = quotient(b)
            gain = builder.fsub(builder.fdiv(top, bottom), before)
            gain = _positive_part(builder, builder.select(is_allowed, gain, zero))
            store_lanes(builder, gain, out, b)
            best = builder.load(largest)
            builder.store(builder.select(builder.fcmp_ordered(">", gain, best), gain, best), largest)
        return _largest(builder, builder.load(largest))

    numbers = (types.int64,) * 2 + (types.float64,) * 7
    return types.float64(running, *numbers, types.boolean, gains), generate
