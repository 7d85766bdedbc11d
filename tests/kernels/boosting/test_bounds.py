"""RankBoost's search by bounds: the same choice as the whole search, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.boosting.boosting_inputs import Problem, make_dataset

from rankwell import make_ranking
from rankwell.data.dataset import RankingDataset
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.bounded_search import find_varying
from rankwell.kernels.boosting.cpu.bounds import best_bounds, choose_groups, joint_histograms, pack_changes
from rankwell.kernels.boosting.cpu.documents import initial_weights
from rankwell.kernels.boosting.cpu.intervals import fill_digits, join_features, write_codes


def booster(problem, **options):
    weights = initial_weights(problem.queries)
    return LevelBooster(problem.interleaved, problem.n_features, problem.n_bins, problem.queries, weights, **options)


def join(number, largest, most_cells, group_ptr, members):
    """`join_features` with room to work."""
    return join_features(number, largest, most_cells, group_ptr, members, np.zeros((3, len(number)), dtype=np.int64))


@pytest.fixture(scope="module")
def learnable():
    """Something to learn, features of every kind, and more of them than one joint histogram holds."""
    return Problem(make_ranking(n_docs=9000, n_queries=150, n_features=60, missing=0.05), n_bins=256)


def exact_largest(problem, pi):
    """Every feature's largest |r|, from its definition."""
    found = []
    for column in problem.rows[problem.queries.rows].T:
        histogram = np.bincount(column, pi, 257)
        found.append(np.abs(np.cumsum(histogram[::-1])).max())
    return np.array(found)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_rounds_as_without_bounds(learnable, n_jobs):
    by_bounds, whole = booster(learnable, bounded=True, n_jobs=n_jobs), booster(learnable, bounded=False)
    ours, theirs = by_bounds.boost(150), whole.boost(150)
    for field in ("feature", "bin", "r", "loss"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    assert by_bounds.n_references < 75


def test_bounds_hold_in_every_round(learnable):
    by_bounds = booster(learnable, bounded=True)
    n_checked = 0
    for _ in range(60):
        before = by_bounds.n_references
        by_bounds.boost(1)
        if by_bounds.n_references > before:
            continue
        exact = exact_largest(learnable, by_bounds.documents.arrays.pi)
        done = by_bounds.bounds.done
        assert (by_bounds.bounds.upper >= exact).all()
        np.testing.assert_array_equal(by_bounds.search.largest[done], exact[done])
        assert exact[done].max() == exact.max()
        n_checked += 1
    assert n_checked > 20


def test_nothing_to_learn_is_searched_whole():
    """Labels that no feature knows of: every feature can win every round, and bounds give up."""
    generator = np.random.default_rng(0)
    X = generator.random((9000, 48), dtype=np.float32)
    problem = Problem(RankingDataset(X, generator.integers(0, 2, 9000), group=[90] * 100), n_bins=64)
    by_bounds = booster(problem, bounded=True)
    np.testing.assert_array_equal(by_bounds.boost(60).r, booster(problem, bounded=False).boost(60).r)
    assert by_bounds.n_references > 5


def test_joint_histograms_are_the_features_own():
    """Digits summed out of joint histograms against each feature counted alone; 498 documents in two parts."""
    generator = np.random.default_rng(1)
    number = np.array([3, 1, 4, 64, 0, 2, 5], dtype=np.int64)
    bins = generator.integers(0, 256, (1, 498, 16), dtype=np.uint8)
    of_bin = np.array([np.arange(256) % max(n, 1) for n in number], dtype=np.uint8)
    group_ptr, members = np.zeros(5, dtype=np.int64), np.zeros(7, dtype=np.int32)
    n_groups = join(number, np.zeros(7, dtype=np.int32), 64, group_ptr, members)
    assert n_groups == 3  # 64 is alone, 5·4·3 = 60 leaves no room for 2
    assert sorted(members[: group_ptr[n_groups]]) == [0, 2, 3, 5, 6]
    digits = np.zeros((8, 256), dtype=np.uint16)
    fill_digits(number, of_bin, group_ptr, members, n_groups, digits)
    words = np.zeros((4, 125), dtype=np.uint64)  # four codes each: the last two are of no document
    for start, end in ((0, 256), (256, 498)):
        write_codes(bins, group_ptr, members, n_groups, digits, words.view(np.uint16), start, end)
    changes = np.zeros(500, dtype=np.int64)
    changes[:498] = generator.integers(0, 2**40, 498)
    for chosen in ([0, 1, 2], [2, 0]):
        sums = np.full((2, 7, 64), -1)
        groups = (np.array(chosen, dtype=np.int32), len(chosen), group_ptr, members)
        for task in range((len(chosen) + 1) // 2 * len(sums)):
            joint_histograms(words, changes, *groups, number, sums, task, np.full((2, 1024), 7))
        counted = [f for g in chosen for f in members[group_ptr[g] : group_ptr[g + 1]]]
        for f in range(7):
            n = number[f] if f in counted else 0
            expected = np.zeros(64, dtype=np.int64)
            np.add.at(expected, of_bin[f][bins[0, :, f]], changes[:498])
            np.testing.assert_array_equal(sums[:, f, :n].sum(axis=0), expected[:n])
            assert (sums[:, f, n:] == -1).all()


def test_features_without_room_are_not_cut():
    number = np.array([5, 4, 3, 2], dtype=np.int64)
    group_ptr, members = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.int32)
    assert join(number, np.zeros(4, dtype=np.int32), 10, group_ptr, members) == 1
    assert number.tolist() == [5, 1, 1, 2]  # 5·4 and 5·3 are too many, 5·2 is not
    assert members[:2].tolist() == [0, 3]


def test_features_of_equal_strength_are_joined():
    """Two intervals each, two features a group: the strongest with the strongest."""
    number, largest = np.full(4, 2, dtype=np.int64), np.array([1, 9, 2, 8], dtype=np.int32)
    group_ptr, members = np.zeros(3, dtype=np.int64), np.zeros(4, dtype=np.int32)
    assert join(number, largest, 4, group_ptr, members) == 2
    assert members.tolist() == [1, 3, 0, 2]


def test_groups_are_chosen_by_what_can_still_win():
    group_ptr, members = np.array([0, 2, 3, 5]), np.array([4, 0, 1, 2, 3], dtype=np.int32)
    upper, done = np.array([5, 7, 9, 1, 2]), np.array([False, False, True, False, False])
    chosen = np.zeros(3, dtype=np.int32)
    assert choose_groups(upper, 5, done, group_ptr, members, 3, chosen) == 2  # feature 2 is done, 3 is too low
    assert chosen[:2].tolist() == [0, 1]
    assert choose_groups(upper, 8, done, group_ptr, members, 3, chosen) == 0


def test_changes_are_packed_with_what_they_sum_to():
    """Three documents: since the reference round +2, +3 and −5; since the round before +3, +1 and −4."""
    values, pi = np.array([7, 4, 1], dtype=np.int64), np.array([4, 3, 5], dtype=np.int32)
    assert pack_changes(pi, np.array([5, 1, 6], dtype=np.int32), values, 0, 3) == (5, 4)
    assert values.tolist() == [2 << 32, 3 << 32, 5]
    assert pi.tolist() == [7, 4, 1]


def test_only_what_differs_within_a_query_varies():
    dataset = make_dataset(0, [4, 3], 4, 2, missing=0.0)
    X = dataset.features.copy()
    X[:, 1] = [7, 7, 7, 7, 9, 9, 9]
    X[:, 2] = 1
    problem = Problem(RankingDataset(X, [0, 1, 0, 1, 0, 0, 1], group=[4, 3]))
    assert find_varying(problem.interleaved, 4, problem.queries).tolist() == [True, False, False, True]


def test_best_bounds_come_first():
    upper = np.array([5, 9, 1, 7, 8, 6])
    done = np.array([False, False, False, True, False, False])
    few, many = np.zeros(2, dtype=np.int32), np.zeros(6, dtype=np.int32)
    assert best_bounds(upper, 5, done, few, 2) == 2
    assert few.tolist() == [1, 4]
    assert best_bounds(upper, 5, done, many, 6) == 4
    assert many[:4].tolist() == [1, 4, 5, 0]
