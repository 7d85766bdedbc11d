"""Borrowed arrays: the same numbers, and no reference counting in loops over their views."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numba import njit

from rankwell.kernels.cpu.borrowing import borrowed


class Pair(NamedTuple):
    rows: np.ndarray
    factors: np.ndarray


@njit
def total_of(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total


def weighted(pair, out):
    """Views in branches of a loop, which the compiler does not free from counting by itself."""
    for row in range(len(out)):
        own = pair.rows[row]
        if own[0] > 0.0:
            own = own[1:]
        out[row] = total_of(own) * pair.factors[row]


weighted_loop = njit(weighted)


@njit
def uncounted(pair, out):
    weighted_loop(borrowed(pair), borrowed(out))


def make_pair():
    rng = np.random.default_rng(0)
    return Pair(rng.normal(size=(50, 4)), rng.normal(size=50))


def n_counting_calls(function, *arguments):
    """Calls that count references, in the function's own code as opposed to its entry point for Python."""
    function(*arguments)
    (code,) = function.inspect_llvm().values()
    (own,) = [part for part in code.split("define ")[1:] if "@_ZN" in part[:60] and "cpython" not in part[:60]]
    return own.count("@NRT_incref") + own.count("@NRT_decref")


def test_a_borrowed_tuple_has_the_same_numbers():
    pair = make_pair()
    expected, found = np.empty(50), np.empty(50)
    weighted(pair, expected)
    uncounted(pair, found)
    assert (found == expected).all()


def test_the_arrays_have_the_references_they_had():
    pair, out = make_pair(), np.empty(50)
    before = [sys.getrefcount(array) for array in (*pair, out)]
    for _ in range(3):
        uncounted(pair, out)
    assert [sys.getrefcount(array) for array in (*pair, out)] == before


def test_views_of_borrowed_arrays_are_not_counted():
    rows = make_pair().rows

    @njit
    def longest(rows, lengths):
        kept = rows[0, : lengths[0]]
        for row in range(len(rows)):
            view = rows[row, : lengths[row]]
            if len(view) > len(kept):
                kept = view
        return total_of(kept)

    @njit
    def longest_borrowed(owned, lengths):
        rows = borrowed(owned)
        kept = rows[0, : lengths[0]]
        for row in range(len(rows)):
            view = rows[row, : lengths[row]]
            if len(view) > len(kept):
                kept = view
        return total_of(kept)

    lengths = np.arange(50) % 4
    assert longest(rows, lengths) == longest_borrowed(rows, lengths)
    assert n_counting_calls(longest, rows, lengths) > 0
    assert n_counting_calls(longest_borrowed, rows, lengths) == 0
