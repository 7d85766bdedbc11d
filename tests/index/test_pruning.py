from __future__ import annotations

import pytest

from rankwell.index.search.pruning import SAMPLED, Pruning, choose_pruning, sample_size

WINDOWS = {21_578: 6, 86_312: 22, 172_624: 43, 431_560: 106}


@pytest.mark.parametrize(
    ("k", "n_docs", "matches", "expected"),
    [
        # Few are wanted: the threshold is high soon.
        (10, 21_578, 20_000, Pruning.BOUNDS),
        (10, 431_560, 1_000_000, Pruning.BOUNDS),
        (100, 172_624, 200_000, Pruning.BOUNDS),
        # Many are wanted, of many more.
        (300, 172_624, 200_000, Pruning.ESTIMATE),
        (1_000, 86_312, 60_000, Pruning.ESTIMATE),
        (1_000, 172_624, 200_000, Pruning.ESTIMATE),
        (3_000, 431_560, 12_000, Pruning.ESTIMATE),
        # Many are wanted, and short lists have few more, or fewer.
        (1_000, 172_624, 3_000, Pruning.BOUNDS),
        (1_000, 172_624, 900, Pruning.BOUNDS),
        (1_000, 172_624, 0, Pruning.BOUNDS),
        # Many are wanted of a segment that is too small for a sample.
        (1_000, 21_578, 40_000, Pruning.NONE),
        (3_000, 21_578, 20_000, Pruning.NONE),
        (1_000, 21_578, 6_000, Pruning.BOUNDS),
    ],
)
def test_the_choice_is_what_was_measured_to_be_quickest(k: int, n_docs: int, matches: int, expected: Pruning) -> None:
    assert choose_pruning(k, 0, matches, WINDOWS[n_docs], is_driven=False) is expected


def test_earlier_segments_have_raised_the_threshold() -> None:
    assert choose_pruning(1_000, 0, 50_000, 22, is_driven=False) is Pruning.ESTIMATE
    # 1,000 · ln(2) documents still pass.
    assert choose_pruning(1_000, 50_000, 50_000, 22, is_driven=False) is Pruning.BOUNDS
    assert choose_pruning(1_000, 50_000, 5_000_000, 2_000, is_driven=False) is Pruning.ESTIMATE


def test_lists_are_never_added_if_one_list_makes_the_candidates() -> None:
    assert choose_pruning(3_000, 0, 20_000, 6, is_driven=False) is Pruning.NONE
    assert choose_pruning(3_000, 0, 20_000, 6, is_driven=True) is Pruning.BOUNDS


def test_a_sample_is_one_window_in_sixteen_and_three_standard_deviations() -> None:
    assert SAMPLED == 16
    # 1,600 / 16 = 100 expected, 3 · √100 more, and one
    assert sample_size(1_600) == 131
