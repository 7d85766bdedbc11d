"""Which features stay on a device and which pass through it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.errors import DeviceError
from rankwell.kernels.boosting.bin_placement import place_bins


def test_what_fits_stays():
    placement = place_bins(7, 100, 700)
    assert placement.resident == (range(7),)
    assert placement.streamed == ()
    assert placement.share == 1.0


def test_what_does_not_fit_passes_through_in_blocks():
    """Memory for 12 columns: two blocks of 12 // 4, a column, and 5 that stay."""
    placement = place_bins(13, 100, 1200)
    assert placement.resident == (range(5),)
    assert placement.streamed == (range(5, 8), range(8, 11), range(11, 13))
    assert placement.share == 5 / 13


def test_three_columns_are_enough():
    placement = place_bins(5, 100, 300)
    assert placement.resident == ()
    assert placement.streamed == tuple(range(f, f + 1) for f in range(5))
    assert placement.share == 0.0
    with pytest.raises(DeviceError, match=r"three feature columns take 300 bytes, 299 are free"):
        place_bins(5, 100, 299)


def test_several_arrays_need_a_column_too():
    assert place_bins(7, 100, 800, largest_array=399).resident == (range(3), range(3, 6), range(6, 7))
    placement = place_bins(7, 100, 700, largest_array=399)
    assert placement.resident == (range(3), range(3, 4))
    assert placement.streamed == tuple(range(f, f + 1) for f in range(4, 7))


def test_blocks_are_not_longer_than_they_need_be():
    """A quarter of the memory is more than 256 MiB."""
    mebibyte = 2**20
    placement = place_bins(10_000, mebibyte, 4000 * mebibyte)
    assert placement.n_resident == 4000 - 2 * 256 - 1
    assert set(map(len, placement.streamed[:-1])) == {256}


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 2000), st.none() | st.integers(1, 500))
def test_every_feature_has_one_place_and_memory_is_not_exceeded(n_features, column_bytes, memory, largest_array):
    try:
        placement = place_bins(n_features, column_bytes, memory, largest_array)
    except DeviceError:
        assert memory < (min(n_features, 2) + 1) * column_bytes
        return
    parts = placement.resident + placement.streamed
    assert [feature for part in parts for feature in part] == list(range(n_features))
    staged = 2 * len(placement.streamed[0]) if placement.streamed else 0
    column = bool(placement.streamed) or len(placement.resident) > 1
    assert (placement.n_resident + staged + column) * column_bytes <= memory
    if largest_array is not None:
        assert all(len(part) * column_bytes <= max(largest_array, column_bytes) for part in parts)
