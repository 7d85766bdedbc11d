"""Decimal numbers in text against Python's own rounding."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwell.kernels.letor_text import decimal_numbers


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


def read_number(token: str) -> tuple[float, int]:
    return decimal_numbers.read_number(np.frombuffer(token.encode() + b"\n", dtype=np.uint8), 0)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite)
@example(0.0)
@example(-0.0)
@example(9007199254740993.0)
@example(1.7976931348623157e308)
@example(2.2250738585072014e-308)
def test_the_shortest_form_of_a_float64_is_read_bit_for_bit(number: float) -> None:
    value, position = read_number(repr(number))
    if 2.3e-308 < abs(number) < 8e307 or number == 0:
        assert position == len(repr(number))
    if position >= 0:
        assert bits(value) == bits(number)


@given(
    st.integers(0, 10**25),
    st.integers(0, 30),
    st.integers(-400, 400) | st.none(),
    st.sampled_from(["", "+", "-"]),
    st.sampled_from(["e", "E"]),
)
@example(2**53 + 1, 0, None, "", "e")
@example(10**19, 0, None, "", "e")
@example(18446744073709551616, 0, None, "", "e")
@example(0, 30, 400, "-", "E")
def test_numbers_are_rounded_as_python_rounds_them(
    digits: int, n_decimals: int, exponent: int | None, sign: str, letter: str
) -> None:
    written = str(digits).rjust(n_decimals + 1, "0")
    token = sign + written[: len(written) - n_decimals] + "." + written[len(written) - n_decimals :]
    if exponent is not None:
        token += f"{letter}{exponent}"
    value, position = read_number(token)
    if position >= 0:
        assert position == len(token)
        assert bits(value) == bits(float(token))


@given(st.integers(2**53, 2**54 - 1), st.integers(-40, 40), st.integers(-1, 1))
def test_numbers_at_the_middle_of_two_float64_are_right_or_left_alone(half: int, power: int, step: int) -> None:
    # An odd 54-bit integer times a power of two is exactly between two float64 numbers.
    middle = Fraction(half | 1) * Fraction(2) ** power
    scale = 10**60
    digits = int(middle * scale) + step
    token = f"{digits}e-60"
    value, position = read_number(token)
    if position >= 0:
        assert bits(value) == bits(float(token))


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("5", 5.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("+1.25", 1.25),
        ("-0", -0.0),
        ("1e2", 100.0),
        ("1E+2", 100.0),
        ("007", 7.0),
    ],
)
def test_forms_of_a_number(token: str, value: float) -> None:
    assert read_number(token)[1] == len(token)
    assert bits(read_number(token)[0]) == bits(value)


@pytest.mark.parametrize(
    "token", ["", "+", "-", ".", "e5", "1e", "1e+", "abc", "inf", "na", "nul", "-null", "--1", "1e999999", "\x00"]
)
def test_what_is_not_a_number_is_not_read(token: str) -> None:
    assert read_number(token)[1] == -1


@pytest.mark.parametrize("token", ["1_000", "1x", "nanx", "nullx", "1.2.3", "1e5.0", "0x10"])
def test_a_number_ends_where_its_form_ends(token: str) -> None:
    assert 0 < read_number(token)[1] < len(token)


def test_nan_keeps_its_sign() -> None:
    assert bits(read_number("nan")[0]) == bits(float("nan"))
    assert bits(read_number("-NaN")[0]) == bits(float("-nan"))


@pytest.mark.parametrize("token", ["NULL", "null", "Null"])
def test_null_is_a_missing_value(token: str) -> None:
    value, end = read_number(token)
    assert end == len(token)
    assert np.isnan(value)
