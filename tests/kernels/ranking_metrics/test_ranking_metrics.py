"""The metric kernels against their definitions, on generated queries with every combination of rules."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tolerances import TOLERANCES

from rankwell.kernels.cpu.ordering import rank_labels, rank_queries
from rankwell.kernels.ranking_metrics import reference as reference
from rankwell.kernels.ranking_metrics import rules as kinds
from rankwell.kernels.ranking_metrics.judgments import prepare_judgments, stop_probabilities
from rankwell.kernels.ranking_metrics.rankings import evaluate_rankings
from rankwell.kernels.ranking_metrics.rules import Judgments, MetricRules
from rankwell.kernels.threads import kernel_threads

METRICS = [
    *((kind, cutoff) for kind in (kinds.NDCG, kinds.AVERAGE_PRECISION, kinds.RECIPROCAL_RANK) for cutoff in (0, 1, 3)),
    *((kind, cutoff) for kind in (kinds.PRECISION, kinds.RECALL) for cutoff in (1, 3, 40)),
    *((kinds.ERR, cutoff) for cutoff in (0, 1, 3)),
    (kinds.NDCG, 40),
    (kinds.MEAN_NDCG, 0),
    (kinds.PAIRWISE_ACCURACY, 0),
    (kinds.KENDALL_TAU, 0),
]


def discounts_of(query_ptr):
    return 1.0 / np.log2(np.arange(int(np.diff(query_ptr).max(initial=0))) + 2.0)


def evaluate(labels, scores, query_ptr, metrics, rules, highest_grade, depth=0):
    n_docs, n_queries = len(labels), len(query_ptr) - 1
    judgments = Judgments(
        labels=labels,
        gains=np.full(n_docs, np.nan),
        stops=np.full(n_docs, np.nan),
        levels=np.full(n_docs, -7),
        ideal_dcg=np.full(n_docs, np.nan),
        query_ptr=query_ptr,
        n_relevant=np.full(n_queries, -7),
        n_pairs=np.full(n_queries, -7),
        discounts=discounts_of(query_ptr),
    )
    prepare_judgments(judgments, rules.exponential_gain, rules.relevance_level)
    stop_probabilities(labels, highest_grade, judgments.stops)
    codes, cutoffs = np.array(metrics, dtype=np.int64).T.copy()
    values = np.full((len(metrics), n_queries), -7.0)
    # As the second of two rankings it begins with what was found for the first.
    rankings = [np.random.default_rng(n_docs).permutation(scores), scores, scores]
    each = np.full((3, *values.shape), -7.0)
    with kernel_threads(1):
        evaluate_rankings(judgments, rankings, codes, cutoffs, depth, rules, each)
    np.testing.assert_array_equal(each[1], each[2])
    evaluate_rankings(judgments, [scores], codes, cutoffs, depth, rules, values[None])
    np.testing.assert_array_equal(each[1], values)
    return values


def assert_like_the_reference(*case):
    # One thread: hundreds of tiny calls, and waiting for a busy second core would take most of the time.
    with kernel_threads(1):
        _assert_like_the_reference(*case)


def _assert_like_the_reference(labels, scores, query_ptr, rules, metrics=METRICS):
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    query_ptr = np.asarray(query_ptr, dtype=np.int64)
    highest = float(labels.max(initial=0.0))
    fast = evaluate(labels, scores, query_ptr, metrics, rules, highest)
    slow = reference.evaluate_rankings(labels, scores, query_ptr, metrics, discounts_of(query_ptr), rules, highest)
    np.testing.assert_allclose(fast, slow, **TOLERANCES["cpu"]["ranking metrics"])
    # Metrics with a cut-off alone, ranked only as deep as they look.
    shallow = [metric for metric in metrics if 0 < metric[1] <= 3]
    rows = [row for row, metric in enumerate(metrics) if 0 < metric[1] <= 3]
    np.testing.assert_array_equal(evaluate(labels, scores, query_ptr, shallow, rules, highest, 3), fast[rows])


def rules_strategy(ties):
    missing = st.sampled_from([0.0, 1.0, np.nan])
    return st.builds(
        MetricRules,
        exponential_gain=st.booleans(),
        short_list_is_zero=st.booleans(),
        precision_pads=st.booleans(),
        cut_by_reachable=st.booleans(),
        relevance_level=st.sampled_from([1.0, 2.0, -1.0]),
        ties=st.sampled_from(ties),
        ratio_without_relevant=missing,
        average_precision_without_relevant=missing,
        count_without_relevant=st.sampled_from([0.0, np.nan]),
    )


ORDERED_TIES = [kinds.TIES_FILE_ORDER, kinds.TIES_REVERSE_FILE_ORDER, kinds.TIES_LOWEST_LABEL_FIRST]
LABELS = st.one_of(
    st.integers(0, 4).map(float),
    st.sampled_from([-2.0, 0.5, 1e-300, 1e-12, 3.75]),
    st.sampled_from([52.0, 511.0, 512.5, 513.0, 1023.0, 1024.0, 1268.0, 2000.0]),
)
SCORES = st.one_of(
    st.integers(-2, 2).map(float), st.sampled_from([0.0, -0.0, np.inf, -np.inf, 5e-324, 1e300, 1 + 2**-52])
)


def queries(max_docs):
    rows = st.lists(st.tuples(LABELS, SCORES), max_size=max_docs)
    return st.lists(rows, max_size=5)


def flatten(generated):
    rows = [row for query in generated for row in query]
    labels = [label for label, _ in rows]
    scores = [score for _, score in rows]
    return labels, scores, np.cumsum([0, *map(len, generated)])


@settings(deadline=None, max_examples=300)
@given(queries(9), rules_strategy(ORDERED_TIES))
def test_generated_queries(generated, rules):
    assert_like_the_reference(*flatten(generated), rules)


@settings(deadline=None, max_examples=150)
@given(queries(5), rules_strategy([kinds.TIES_AVERAGE]))
def test_generated_queries_with_averaged_ties(generated, rules):
    assert_like_the_reference(*flatten(generated), rules)


PLAIN = MetricRules(True, False, True, False, 1.0, kinds.TIES_FILE_ORDER, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("n_docs", [0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 129])
@pytest.mark.parametrize("n_scores", [1, 3, 10**6])
def test_sizes_around_the_edges_of_runs(n_docs, n_scores):
    rng = np.random.default_rng([n_docs, n_scores])
    labels, scores = rng.integers(0, 5, n_docs), rng.integers(0, n_scores, n_docs)
    metrics = [metric for metric in METRICS if metric[0] != kinds.MEAN_NDCG or n_docs < 50]
    for ties in (kinds.TIES_FILE_ORDER, kinds.TIES_REVERSE_FILE_ORDER):
        assert_like_the_reference(labels, scores, [0, n_docs], PLAIN._replace(ties=ties), metrics)


def test_no_queries():
    assert evaluate(np.empty(0), np.empty(0), np.zeros(1, np.int64), METRICS, PLAIN, 0.0).shape == (len(METRICS), 0)


def test_more_queries_than_blocks_on_any_number_of_threads():
    rng = np.random.default_rng(8)
    sizes = rng.integers(0, 40, 700)
    query_ptr = np.concatenate(([0], np.cumsum(sizes)))
    labels, scores = rng.integers(0, 5, query_ptr[-1]).astype(float), rng.integers(0, 30, query_ptr[-1]).astype(float)
    with kernel_threads(1):
        one = evaluate(labels, scores, query_ptr, METRICS, PLAIN, 4.0)
    with kernel_threads(-1):
        all_of_them = evaluate(labels, scores, query_ptr, METRICS, PLAIN, 4.0)
    assert one.tobytes() == all_of_them.tobytes()
    some = [0, 1, 255, 256, 500, 699]
    for query in some:
        rows = slice(query_ptr[query], query_ptr[query + 1])
        alone = evaluate(labels[rows], scores[rows], np.array([0, sizes[query]]), METRICS, PLAIN, 4.0)
        np.testing.assert_array_equal(alone[:, 0], one[:, query])


@pytest.mark.parametrize("later_first", [False, True])
def test_ranking_is_stable_at_any_depth(later_first):
    rng = np.random.default_rng(9)
    for n_docs, n_different in itertools.product([0, 1, 2, 16, 17, 33, 40, 100], [1, 4, 1000]):
        scores = rng.integers(0, n_different, n_docs).astype(float)
        rows = np.arange(n_docs)[::-1] if later_first else np.arange(n_docs)
        expected = rows[np.argsort(-scores[rows], kind="stable")]
        for depth in {0, 1, 5, 31, 32, 33, n_docs}:
            places = min(depth, n_docs) if depth else n_docs
            order, ranked_end = np.full(n_docs, -1), np.array([-1])
            for is_begun, own in ((False, scores), (True, scores), (True, -scores), (True, scores)):
                rank_queries(own, np.array([0, n_docs]), depth, later_first, False, is_begun, order, ranked_end)
                assert places <= ranked_end[0] <= n_docs
                if own is scores:
                    np.testing.assert_array_equal(order[:places], expected[:places])


@pytest.mark.parametrize("later_first", [False, True])
def test_ranking_goes_on_through_ties(later_first):
    rng = np.random.default_rng(11)
    for n_docs, n_different in itertools.product([1, 2, 16, 40, 100], [1, 4, 1000]):
        scores = rng.integers(0, n_different, n_docs).astype(float)
        rows = np.arange(n_docs)[::-1] if later_first else np.arange(n_docs)
        expected = rows[np.argsort(-scores[rows], kind="stable")]
        for depth in {1, 5, 31, 32, min(n_docs, 32)}:
            last = scores[expected[min(depth, n_docs) - 1]]
            n_ranked = np.count_nonzero(scores >= last)
            order, ranked_end = np.full(n_docs, -1), np.array([-1])
            for is_begun, own in ((False, scores), (True, -scores), (True, scores)):
                rank_queries(own, np.array([0, n_docs]), depth, later_first, True, is_begun, order, ranked_end)
            np.testing.assert_array_equal(order[:n_ranked], expected[:n_ranked])
            assert n_ranked <= ranked_end[0] <= n_docs


@pytest.mark.parametrize(
    "values",
    [[0, 1, 2], [0, 31], [0, 32], [0, 0.5, 1], [-1, 0, 3], [-0.0, 0.0, 5], [7], np.arange(49) / 2, np.arange(32) / 2],
)
def test_ranking_by_label_is_stable_whether_counted_or_sorted(values):
    labels = np.random.default_rng(10).choice(np.array(values, dtype=float), 400)
    order = np.full(400, -1)
    rank_labels(labels, np.array([0, 20, 20, 400]), order)
    expected = [start + np.argsort(-labels[start:end], kind="stable") for start, end in ((0, 20), (20, 400))]
    np.testing.assert_array_equal(order, np.concatenate(expected))
