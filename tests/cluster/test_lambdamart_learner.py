"""LambdaMART's learners in step, as threads: the trees of one process."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest
from tests.cluster.cluster_data import in_parts, make_queries
from tests.cluster.worker_threads import run_workers

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.lambdamart import LambdaMARTLearner
from rankwell.cluster.learner import LearnerPlan
from rankwell.kernels.trees.contract import BinTree
from rankwell.rankers.grown_trees import GrownTree
from rankwell.rankers.lambdamart import LambdaMART
from rankwell.rankers.tree_bins import TreeBins

N_TREES = 8


def grow_together(parts, n_workers, *, told=0, n_threads=1, **parameters):
    """Each worker's trees as thresholds, and its scores; the first `told` are told again."""
    plan = LearnerPlan("lambdamart", {**parameters, "n_rounds": N_TREES})

    def work(exchange):
        learner = LambdaMARTLearner(plan, parts[exchange.number], WorkersAgreement(exchange), exchange, n_threads)
        learner.begin(parameters.get("loss", "lambdarank"), None, [[]])
        trees = learner.boost(0, 0, told or N_TREES)
        if told:
            # As the driver does, which has the first worker's trees.
            everyones = exchange.announce(np.frombuffer(pickle.dumps(trees), np.uint8), 0)
            learner.begin(parameters.get("loss", "lambdarank"), None, [pickle.loads(everyones.tobytes())])
            trees += learner.boost(0, told, N_TREES - told)
        values = TreeBins(learner._binner, parts[exchange.number], (), n_jobs=1).values
        return [GrownTree.from_bins(BinTree(**tree), values, 1.0) for tree in trees], learner.scores(0)

    return run_workers(n_workers, work)


def check_same(results, ranker, dataset):
    expected, trees = ranker.grown_trees().trees, results[0][0]
    assert len(trees) == len(expected) == N_TREES
    for tree, other in zip(trees, expected, strict=True):
        for field in fields(tree):
            np.testing.assert_array_equal(getattr(tree, field.name), getattr(other, field.name), field.name)
    scores = np.concatenate([own for _, own in results])
    np.testing.assert_allclose(scores, ranker.predict(dataset), rtol=1e-5, atol=1e-6)


CASES = {
    "plain": {},
    "all losses draw": {"loss": "xendcg", "query_fraction": 0.7, "document_fraction": 0.8, "feature_fraction": 0.6},
    "noise": {"noise": 0.3, "node_feature_fraction": 0.5},
    "depth, rising": {"max_depth": 3, "increasing": (0,), "loss": "pairwise", "binning": "width"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_workers_grow_the_trees_of_one_process(case, n_workers):
    dataset = make_queries(60, 12, longest=40)
    options = {"n_leaves": 12, **CASES[case]}
    ranker = LambdaMART(n_rounds=N_TREES, n_jobs=1, **options).fit(dataset)
    check_same(grow_together(in_parts(dataset, n_workers), n_workers, **options), ranker, dataset)


@pytest.mark.parametrize("told", [0, 5])
def test_rounds_without_a_cut(told):
    dataset = make_queries(60, 12, longest=40)
    options = {"n_leaves": 12, "document_fraction": 0.1, "min_docs_leaf": 60}
    ranker = LambdaMART(n_rounds=N_TREES, n_jobs=1, **options).fit(dataset)
    assert 1 in ranker.history_["leaves"]
    assert max(ranker.history_["leaves"]) > 1
    check_same(grow_together(in_parts(dataset, 2), 2, told=told, **options), ranker, dataset)


def test_trees_that_are_told_are_replayed():
    dataset = make_queries(60, 12, longest=40)
    ranker = LambdaMART(n_rounds=N_TREES, n_leaves=12, n_jobs=1).fit(dataset)
    check_same(grow_together(in_parts(dataset, 2), 2, told=5, n_leaves=12), ranker, dataset)


def test_several_threads_of_each_worker():
    dataset = make_queries(800, 40, longest=60)
    ranker = LambdaMART(n_rounds=N_TREES, n_leaves=31, n_jobs=2).fit(dataset)
    assert dataset.n_docs * 40 > 2 * 2**18
    check_same(grow_together(in_parts(dataset, 2), 2, n_threads=2, n_leaves=31), ranker, dataset)
