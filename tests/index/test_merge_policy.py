from __future__ import annotations

import random

import pytest

from rankwell.index.merging.merge_policy import MOST_SEGMENTS, cheapest_run, choose_merge


def simulate(sizes: list[int]) -> tuple[int, int]:
    """Segments added one after the other: the most there were after merging, and all documents that merges wrote."""
    segments: list[int] = []
    most = written = 0
    for size in sizes:
        segments.append(size)
        while (run := choose_merge(segments, segments)) is not None:
            start, stop = run
            assert stop - start >= 2
            merged = sum(segments[start:stop])
            written += merged
            segments[start:stop] = [merged]
        most = max(most, len(segments))
    assert sum(segments) == sum(sizes)
    return most, written


def test_six_of_one_size_become_one() -> None:
    assert choose_merge([1] * 5, [1] * 5) is None
    assert choose_merge([1] * 6, [1] * 6) == (0, 6)
    # 36 // 6 // 6 = 1: two levels above 5, one above 6.
    assert choose_merge([36, 6, 5, 5, 5], [36, 6, 5, 5, 5]) is None
    assert choose_merge([36, 1, 1, 1, 1, 1, 1], [36, 1, 1, 1, 1, 1, 1]) == (1, 7)


def test_smaller_ones_between_them_come_along() -> None:
    sizes = [100, 6, 7, 1, 8, 9, 10, 2, 11, 300]
    assert choose_merge(sizes, sizes) == (1, 9)


def test_too_many_of_different_sizes_merge_the_cheapest_run() -> None:
    # Documents for each segment saved: (8+1)/1 = 9, (1+5)/1 = 6, (5+90)/1 = 95, (8+1+5)/2 = 7, ...
    assert cheapest_run([8, 1, 5, 90]) == (1, 3)
    assert choose_merge([8, 1, 5, 90], [8, 1, 5, 90], most=3) == (1, 3)
    assert choose_merge([8, 1, 5, 90], [8, 1, 5, 90], most=4) is None


def test_a_segment_with_most_documents_deleted_is_rewritten_alone() -> None:
    assert choose_merge([50, 4], [100, 10]) == (1, 2)
    assert choose_merge([50, 5], [100, 10]) is None


@pytest.mark.parametrize(
    ("sizes", "times"),
    [
        ([1] * 3000, 6),
        ([random.Random(1).randint(1, 1000) for _ in range(500)], 5),
        ([int(random.Random(n).paretovariate(0.8)) for n in range(500)], 6),
        ([2**n for n in range(40)], 2),
        ([2**n for n in reversed(range(40))], 6),
    ],
)
def test_segments_stay_few_and_documents_are_rewritten_seldom(sizes: list[int], times: float) -> None:
    most, written = simulate(sizes)
    assert most <= MOST_SEGMENTS
    assert written <= times * sum(sizes)
