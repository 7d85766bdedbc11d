"""Products of fixed point as `kernels/lists/fixed_point_format.py` defines them, pipelined."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import MULTIPLIER_BITS

# The low part of a number that is too wide for one multiplier, which takes it as a signed number.
_LOW = MULTIPLIER_BITS - 1


def product(m: Module, left: Any, right: Any, cycles: int, name: str) -> Any:
    """left · right, signed and exact, after `cycles` cycles (`ListNetConfiguration.product_cycles`)."""
    bits = len(left)
    exact = Signal(signed(2 * bits), name=f"{name}_product", reset_less=True)
    if bits <= MULTIPLIER_BITS:
        # The first register is the multiplier's own. Another is half-way to where the product is needed.
        m.d.sync += exact.eq(left.as_signed() * right.as_signed())
        return delayed(m, exact, cycles - 1, f"{name}_product")
    lows = [Cat(value[:_LOW], Const(0, 1)).as_signed() for value in (left, right)]
    highs = [value[_LOW:].as_signed() for value in (left, right)]
    parts = {}
    for part, first, second in (
        ("low", lows[0], lows[1]),
        ("left", highs[0], lows[1]),
        ("right", lows[0], highs[1]),
        ("high", highs[0], highs[1]),
    ):
        parts[part] = Signal(signed(len(first) + len(second)), name=f"{name}_{part}", reset_less=True)
        m.d.sync += parts[part].eq(first * second)
    middle = Signal(signed(len(parts["left"]) + 1), name=f"{name}_middle", reset_less=True)
    ends = Signal(signed(2 * bits), name=f"{name}_ends", reset_less=True)
    m.d.sync += [
        middle.eq(parts["left"] + parts["right"]),
        ends.eq(Cat(parts["low"][: 2 * _LOW], parts["high"])),
        exact.eq(ends + (middle << _LOW)),
    ]
    return exact


def rounded(exact: Any, bits: int) -> Any:
    """(exact + 2^(bits − 2)) >> (bits − 1), saturated: only the square of the lowest number needs it."""
    too_large = exact[2 * bits - 2] & ~exact[2 * bits - 1]
    sum_ = exact[bits - 1 : 2 * bits - 1] + exact[bits - 2]
    return Mux(too_large, (1 << bits - 1) - 1, sum_[:bits])


def multiply(m: Module, left: Any, right: Any, cycles: int, name: str) -> Any:
    """The rounded product, after `cycles` + 1 cycles."""
    value = Signal(len(left), name=name, reset_less=True)
    m.d.sync += value.eq(rounded(product(m, left, right, cycles, name), len(left)))
    return value


def slope_cycles(product_cycles: int) -> int:
    """Cycles of `slope`."""
    return product_cycles + 3


def slope(m: Module, output: Any, cycles: int, name: str) -> Any:
    """a·(1 − a) in the range up to 1/4, for a ≥ 0: (a·2^(bits − 1) − a² + 2^(bits − 4)) >> (bits − 3), saturated."""
    bits = len(output)
    square = product(m, output, output, cycles, f"{name}_square")
    later = delayed(m, output, cycles, f"{name}_output")
    difference = Signal(2 * bits, name=f"{name}_difference", reset_less=True)
    sum_ = Signal(bits + 1, name=f"{name}_sum", reset_less=True)
    value = Signal(bits, name=f"{name}_slope", reset_less=True)
    m.d.sync += [
        difference.eq((later << bits - 1) - square),
        sum_.eq(difference[bits - 3 :] + difference[bits - 4]),
        value.eq(Mux(sum_[bits - 1], (1 << bits - 1) - 1, sum_)),
    ]
    return value
