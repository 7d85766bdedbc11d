"""Paired significance tests."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import ttest_rel

from rankwell import compare, evaluate
from rankwell.errors import DataError, ParameterError


def test_three_queries_counted_by_hand():
    # Differences 3, 1, −1 sum to 3. The eight sign assignments sum to ±5, ±3, ±3 and ±1: six of them reach 3.
    comparison = compare([3.0, 2.0, 0.0], [0.0, 1.0, 1.0])
    assert comparison.exact
    assert comparison.fisher_p == 6 / 8
    assert (comparison.wins, comparison.ties, comparison.losses) == (2, 0, 1)
    assert comparison.difference == pytest.approx(1.0)


def test_exact_p_value_is_the_share_of_sign_assignments():
    differences = np.random.default_rng(1).normal(0.3, 1, size=11)
    observed = abs(differences.sum())
    extreme = sum(
        abs(np.dot(signs, differences)) >= observed - 1e-12 for signs in itertools.product([-1, 1], repeat=11)
    )
    comparison = compare(differences, np.zeros(11))
    assert comparison.exact
    assert comparison.n_resamples == 2**10
    assert comparison.fisher_p == extreme / 2**11


def test_drawn_p_value_is_near_the_exact_one():
    differences = np.random.default_rng(2).normal(0.3, 1, size=15)
    exact = compare(differences, np.zeros(15)).fisher_p
    drawn = compare(differences, np.zeros(15), n_resamples=10_000)
    assert not drawn.exact
    # Five standard errors of a share of 10,000 draws.
    assert drawn.fisher_p == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 10_000))


def test_p_values_of_runs_that_do_not_differ_are_spread_evenly():
    rng = np.random.default_rng(3)
    p_values = [compare(rng.normal(size=200), rng.normal(size=200), n_resamples=999).fisher_p for _ in range(200)]
    # 10% of them below 0.1: 20 expected, standard deviation 4.2.
    assert 6 <= sum(p <= 0.1 for p in p_values) <= 36


@pytest.mark.parametrize("n_queries", [63, 64, 65, 700])
def test_the_seed_decides_and_the_number_of_threads_does_not(n_queries):
    rng = np.random.default_rng(4)
    a, b = rng.normal(0.05, 1, n_queries), np.zeros(n_queries)
    first = compare(a, b, random_state=7).fisher_p
    assert compare(a, b, random_state=8).fisher_p != first
    assert compare(a, b, random_state=7, n_jobs=1).fisher_p == first
    # The normal approximation of the same test, to the noise of 100,000 draws.
    normal = 2 * ndtr(-abs(a.sum()) / np.sqrt((a**2).sum()))
    assert first == pytest.approx(normal, abs=0.02)


def test_t_is_scipys():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=50), rng.normal(0.2, 1, size=50)
    expected = ttest_rel(a, b)
    comparison = compare(a, b)
    assert comparison.t_statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert comparison.t_p == pytest.approx(expected.pvalue, rel=1e-9)


def test_equal_runs():
    comparison = compare([0.5, 0.25], [0.5, 0.25 + 1e-16])
    assert (comparison.fisher_p, comparison.t_p, comparison.ties) == (1.0, 1.0, 2)


def test_one_query_and_a_constant_difference():
    one = compare([1.0], [0.0])
    assert one.fisher_p == 1.0
    assert np.isnan(one.t_p)
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["t_p"] is None
    assert compare([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]).t_p == 0.0


def test_evaluations_are_compared_query_by_query_and_left_out_queries_stay_out():
    labels, group = [1, 0, 0, 0, 0, 1], [2, 2, 2]
    good = evaluate(labels, [2, 1, 1, 2, 1, 2], metrics="mrr,map", group=group)
    bad = evaluate(labels, [1, 2, 1, 2, 1, 2], metrics="mrr,map", group=group)
    comparison = compare(good, bad, metric="mrr")
    assert (comparison.n_queries, comparison.n_left_out) == (2, 1)
    assert (comparison.mean_a, comparison.mean_b, comparison.difference) == (1.0, 0.75, 0.25)
    assert str(comparison).startswith("mrr (burges): 1.0000 - 0.7500 = +0.2500 over 2 queries (1 won, 1 equal, 0 lost)")
    assert comparison.to_dict()["convention"] == "burges"


def test_mistakes():
    labels, scores = [1, 0], [1, 2]
    both = evaluate(labels, scores, metrics="mrr,map")
    with pytest.raises(ParameterError, match=r"both evaluations have \(mrr, map\); none was named"):
        compare(both, both)
    with pytest.raises(ParameterError, match="got 'ndcg'"):
        compare(both, both, metric="ndcg")
    with pytest.raises(DataError, match="under burges and b under letor4"):
        compare(both, evaluate(labels, scores, metrics="mrr", convention="letor4"), metric="mrr")
    with pytest.raises(DataError, match="the same queries"):
        compare(both, evaluate(labels, scores, metrics="mrr", qid=["x", "x"]), metric="mrr")
    with pytest.raises(DataError, match="both be evaluations"):
        compare(both, [1.0], metric="mrr")
    with pytest.raises(DataError, match=r"got shapes \(2,\) and \(3,\)"):
        compare([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="nothing to compare"):
        compare([np.nan], [1.0])
    with pytest.raises(ParameterError, match="n_resamples must be 1 or more"):
        compare([1.0], [2.0], n_resamples=0)
    with pytest.raises(ParameterError, match="random_state must be a whole number of 0 or more, got -1"):
        compare([1.0], [2.0], random_state=-1)
