"""RankBoost's learners in step, as threads: the rounds of one process, by documents and by features."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cluster.cluster_data import in_parts, make_queries
from tests.cluster.worker_threads import run_workers

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.exchange import DIRECT_BYTES, HEADER
from rankwell.cluster.learner import LearnerPlan
from rankwell.cluster.rankboost import RankBoostLearner
from rankwell.data.dataset import RankingDataset
from rankwell.rankers.rankboost import RankBoost

NONE = (np.zeros(0, np.int32),) * 4


def boost_together(parts, n_workers, division, n_rounds, *, first=0, **parameters):
    """The rounds that each worker returns; of `first`, they are told again in the middle."""
    plan = LearnerPlan("rankboost", parameters)

    def work(exchange):
        learner = RankBoostLearner(plan, parts[exchange.number], WorkersAgreement(exchange), exchange, 1)
        learner.begin(division, *NONE)
        found = learner.boost(first or n_rounds)
        if first:
            halvings = np.full(first, 2, np.int32)
            learner.begin(division, found["feature"], found["bin"], found["r"], halvings)
            later = learner.boost(n_rounds - first)
            found = {name: np.append(found[name], later[name]) for name in ("feature", "bin", "r", "loss")}
        return found, learner.summary()

    return run_workers(n_workers, work)


def check_same(results, ranker):
    whole = ranker.weak_rankers_
    for found, _ in results:
        thresholds = results[0][1]["thresholds"]
        np.testing.assert_array_equal(found["feature"], whole.feature)
        np.testing.assert_array_equal(found["r"], whole.r)
        np.testing.assert_array_equal(thresholds[found["feature"], found["bin"]], whole.threshold)
        assert found["loss"].tolist() == ranker.history_["loss"]


@pytest.mark.parametrize("division", ["documents", "features"])
@pytest.mark.parametrize("n_workers", [1, 2, 3])
@pytest.mark.parametrize("pair_weight", ["queries", "gain", "difference", "ndcg"])
def test_workers_choose_what_one_process_chooses(division, n_workers, pair_weight):
    dataset = make_queries(40, 50, longest=40)
    options = {"pair_weight": pair_weight, "n_bins": 32}
    ranker = RankBoost(n_rounds=70, n_jobs=1, **options).fit(dataset)
    check_same(boost_together(in_parts(dataset, n_workers), n_workers, division, 70, **options), ranker)


@pytest.mark.parametrize("division", ["documents", "features"])
def test_the_search_by_bounds_is_shared(division):
    dataset = make_queries(500, 100, longest=60)
    assert dataset.n_docs > 10_000
    ranker = RankBoost(n_rounds=80, n_jobs=1).fit(dataset)
    check_same(boost_together(in_parts(dataset, 2), 2, division, 80), ranker)


@pytest.mark.parametrize("division", ["documents", "features"])
@pytest.mark.parametrize("pair_weight", ["queries", "ndcg"])
def test_rounds_that_are_told_are_replayed(division, pair_weight):
    dataset = make_queries(30, 50)
    ranker = RankBoost(n_rounds=50, pair_weight=pair_weight, n_jobs=1).fit(dataset)
    results = boost_together(in_parts(dataset, 2), 2, division, 50, first=33, pair_weight=pair_weight)
    check_same(results, ranker)


def test_a_worker_without_pairs_takes_part():
    dataset = make_queries(12, 20)
    alike = RankingDataset(dataset.features[:5], np.ones(5), group=[5])
    ranker = RankBoost(n_rounds=20, n_jobs=1).fit(alike.joined(dataset))
    check_same(boost_together([alike, dataset], 2, "documents", 20), ranker)


def test_weights_of_queries_and_documents_count():
    dataset = make_queries(20, 20)
    generator = np.random.default_rng(1)
    weighted = dataset.replace(
        query_weights=generator.random(dataset.n_queries), document_weights=generator.random(dataset.n_docs)
    )
    ranker = RankBoost(n_rounds=30, n_jobs=1).fit(weighted)
    check_same(boost_together(in_parts(weighted, 3), 3, "documents", 30), ranker)


def test_a_worker_that_comes_later_is_told_what_was_agreed():
    dataset = make_queries(20, 20)
    parts = in_parts(dataset, 2)
    plan = LearnerPlan("rankboost", {"binning": "quantile"})

    def learn(exchange):
        agreement = WorkersAgreement(exchange)
        learner = RankBoostLearner(plan, parts[exchange.number], agreement, exchange, 1)
        sent = exchange.bytes_sent
        again = RankBoostLearner(
            plan, parts[exchange.number], WorkersAgreement(exchange, agreement.answers), exchange, 1
        )
        assert exchange.bytes_sent == sent
        np.testing.assert_array_equal(again._bins, learner._bins)
        np.testing.assert_array_equal(again._queries.query_weight, learner._queries.query_weight)
        return True

    assert run_workers(2, learn) == [True, True]


def sum_bytes(n_bytes, n_workers):
    """What one worker sends to sum an array of this many bytes."""
    if n_bytes <= DIRECT_BYTES:
        return (n_workers - 1) * (HEADER.size + n_bytes)
    return 2 * (n_workers - 1) * (HEADER.size + n_bytes // n_workers)


@pytest.mark.parametrize("n_workers", [2, 4])
def test_bytes_by_documents_are_those_of_the_formula(n_workers):
    """docs/guide/cluster.md, "What is sent"."""
    dataset = make_queries(500, 64, longest=60)
    parts, n_groups = in_parts(dataset, n_workers), 4

    def work(exchange):
        plan = LearnerPlan("rankboost", {})
        learner = RankBoostLearner(plan, parts[exchange.number], WorkersAgreement(exchange), exchange, 1)
        learner.begin("documents", *NONE)
        before, n_exchanges = exchange.bytes_sent, dict(learner.exchanged())
        passes = []
        booster = learner._booster
        take = booster._companions.sum
        booster._companions.sum = lambda values: (passes.append(values.nbytes), take(values))[1]
        learner.boost(40)
        counted = learner.exchanged()
        is_last = exchange.number == n_workers - 1
        header, totals = HEADER.size, counted["totals"]
        expected = sum(sum_bytes(n_bytes, n_workers) for n_bytes in passes)
        expected += totals * (0 if is_last else header + 8 * 1024)
        expected += totals * ((n_workers - 1) * (header + 8) if is_last else 0)
        expected += counted["recentred"] * (n_workers - 1) * (header + 8)
        assert exchange.bytes_sent - before == expected
        histograms = counted["histograms"] * 4 * n_groups * 16 * 256
        candidates = counted["candidates"] * 4 * 256
        joint, moved = counted["interval sums"] * 8, totals * 2 * 8
        assert sum(passes) == histograms + candidates + joint + moved
        assert n_exchanges == {}
        return counted

    results = run_workers(n_workers, work)
    assert all(result == results[0] for result in results)
    assert results[0]["candidates"] > 0


@pytest.mark.parametrize("n_workers", [2, 3])
def test_bytes_by_features_are_those_of_the_formula(n_workers):
    dataset = make_queries(60, 64)
    parts = in_parts(dataset, n_workers)

    def work(exchange):
        plan = LearnerPlan("rankboost", {})
        learner = RankBoostLearner(plan, parts[exchange.number], WorkersAgreement(exchange), exchange, 1)
        learner.begin("features", *NONE)
        before = exchange.bytes_sent
        learner.boost(40)
        counted = learner.exchanged()
        n_docs = learner._companions.n_docs
        rows = 40 * HEADER.size + counted["rows"] * 4 * 256
        bits = counted.get("winners", 0) * (HEADER.size + -(-n_docs // 8))
        assert exchange.bytes_sent - before == (n_workers - 1) * (rows + bits)
        return counted.get("winners", 0)

    assert sum(run_workers(n_workers, work)) == 40
