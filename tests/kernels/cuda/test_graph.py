"""Sizes of recorded launches: few of them serve every size, and none is much larger than what was asked for."""

import pytest

from rankwell.kernels.cuda.graph import size_class


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, 32), (32, 32), (33, 64), (256, 256), (257, 288), (1000, 1024), (1025, 1152), (10_000, 10_240)],
)
def test_size_class(size, expected):
    assert size_class(size) == expected


def test_every_size_fits_and_an_eighth_is_wasted_at_most():
    for size in range(1, 20_000):
        assert size_class(size) % 32 == 0
        assert size <= size_class(size) <= max(size * 9 / 8, size + 31)
    assert len({size_class(size) for size in range(1, 2**20)}) < 110
