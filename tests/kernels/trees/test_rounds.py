"""Rounds that are grown together in compiled code are those that are grown one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import INPUTS, LARGE_INPUTS

from rankwell.kernels.trees.contract import BinTree
from rankwell.kernels.trees.cpu import booster as booster_module
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.cpu.column_copies import LEAST_DOCS
from rankwell.kernels.trees.cpu.lambdas import LONGEST_COUNTED
from rankwell.kernels.trees.losses import LOSSES, PAIR_LOSSES, RankingLoss, judged_queries
from rankwell.kernels.trees.sampling import Sampling


def query_problem(made, loss, *, longest=150, weighted=False, seed=0):
    """The problem with queries of 0 to `longest` documents, some of which have no pairs."""
    generator = np.random.default_rng(seed)
    n_docs = len(made.bins)
    starts = np.cumsum(np.concatenate(([0, longest], generator.integers(0, longest, n_docs))))
    query_ptr = np.append(starts[starts < n_docs], n_docs)
    gains = 2.0 ** np.floor(4.9 * generator.random(n_docs) * made.bins[:, 0] / made.bins[:, 0].max()) - 1.0
    gains[query_ptr[1] : query_ptr[2]] = 0.0
    weights = generator.random(n_docs) * (generator.random(n_docs) < 0.9) if weighted else None
    return dataclasses.replace(made.problem(), loss=loss, queries=judged_queries(loss, query_ptr, gains, weights))


def booster_of(problem, n_jobs=2):
    return CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32), n_jobs=n_jobs)


def one_by_one(problem, first, n_rounds):
    booster = booster_of(problem)
    trees = []
    for number in range(first, first + n_rounds):
        tree = booster.boost(number)
        if tree is None:
            break
        trees.append(tree)
    return trees, booster.scores()


def assert_same_trees(own, expected):
    assert len(own) == len(expected)
    for tree, wanted in zip(own, expected, strict=True):
        for name in BinTree.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(tree, name), getattr(wanted, name), err_msg=name)


@pytest.fixture
def rounds_together(monkeypatch):
    """How many rounds were grown by each call of the kernel."""
    calls, grow = [], CpuTreeBooster._grow_rounds

    def counted(booster, first, n_rounds):
        calls.append(n_rounds)
        return grow(booster, first, n_rounds)

    monkeypatch.setattr(CpuTreeBooster, "_grow_rounds", counted)
    return calls


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_rounds_are_those_grown_one_by_one(name, weighted, n_jobs, rounds_together):
    problem = query_problem(LARGE_INPUTS["many tiles"], RankingLoss(LOSSES[name], 30, 1.0, 1), weighted=weighted)
    booster = booster_of(problem, n_jobs)
    trees = [*booster.boost_rounds(3, 4), *booster.boost_rounds(7, 5)]
    # Of so many documents columns are copied between calls, so the first ones grow few.
    assert problem.n_docs >= LEAST_DOCS
    assert rounds_together == [1, 3, 5]
    expected, scores = one_by_one(problem, 3, 9)
    assert_same_trees(trees, expected)
    np.testing.assert_array_equal(booster.scores(), scores)


@pytest.mark.parametrize("name", ["31 leaves", "130 columns"])
def test_of_few_documents_too(name, rounds_together):
    problem = query_problem(INPUTS[name], RankingLoss(LOSSES["lambdarank"], 10, 2.0, 0))
    booster = booster_of(problem)
    trees = booster.boost_rounds(0, 12)
    expected, scores = one_by_one(problem, 0, 12)
    assert rounds_together == [12]
    assert_same_trees(trees, expected)
    np.testing.assert_array_equal(booster.scores(), scores)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_of_long_queries_too(n_jobs, rounds_together):
    loss = RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1)
    problem = query_problem(LARGE_INPUTS["many tiles"], loss, longest=LONGEST_COUNTED + 100)
    assert len(problem.queries.discount) > LONGEST_COUNTED
    trees = booster_of(problem, n_jobs).boost_rounds(0, 3)
    assert sum(rounds_together) == 3
    assert_same_trees(trees, one_by_one(problem, 0, 3)[0])


@pytest.mark.parametrize("sampling", [Sampling(seed=5), Sampling(node_features=0.5, seed=5)], ids=["none", "by leaf"])
def test_features_drawn_for_a_leaf_are_those_of_its_round(sampling, rounds_together):
    problem = query_problem(INPUTS["31 leaves"], RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1))
    problem = dataclasses.replace(problem, sampling=sampling)
    trees = booster_of(problem).boost_rounds(4, 6)
    assert rounds_together == [6]
    assert_same_trees(trees, one_by_one(problem, 4, 6)[0])


def test_rounds_end_where_nothing_can_be_learnt(rounds_together):
    """No query has documents of different gains: all gradients are 0."""
    loss = RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1)
    problem = query_problem(INPUTS["31 leaves"], loss)
    queries = judged_queries(loss, problem.queries.query_ptr, np.ones(problem.n_docs))
    booster = booster_of(dataclasses.replace(problem, queries=queries))
    assert booster.boost_rounds(0, 5) == []
    assert rounds_together == [5]
    assert not booster.scores().any()


def test_rounds_end_where_no_leaf_can_be_cut(rounds_together):
    problem = query_problem(INPUTS["31 leaves"], RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1))
    settings = dataclasses.replace(problem.settings, min_docs_leaf=problem.n_docs)
    assert booster_of(dataclasses.replace(problem, settings=settings)).boost_rounds(0, 5) == []
    assert rounds_together == [5]


def test_trees_of_many_rounds_take_little_memory(monkeypatch, rounds_together):
    problem = query_problem(INPUTS["31 leaves"], RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1))
    booster = booster_of(problem)
    of_one = booster._space.whole.nbytes + booster._space.real.nbytes
    monkeypatch.setattr(booster_module, "_ROUNDS_MEMORY", 3 * of_one)
    trees = booster.boost_rounds(0, 7)
    assert rounds_together == [3, 3, 1]
    assert_same_trees(trees, one_by_one(problem, 0, 7)[0])


@pytest.mark.parametrize(
    ("loss", "changes"),
    [
        (RankingLoss(LOSSES["xendcg"], 30, 1.0, 1, seed=3), {}),
        (RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1, noise=0.3, seed=3), {}),
        (RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1), {"sampling": Sampling(features=0.5, seed=1)}),
    ],
    ids=["xendcg", "noise", "sampling"],
)
def test_what_needs_python_in_between_is_grown_one_by_one(loss, changes, rounds_together):
    problem = query_problem(LARGE_INPUTS["many tiles"], loss)
    problem = dataclasses.replace(problem, **changes)
    trees = booster_of(problem).boost_rounds(0, 3)
    assert rounds_together == []
    assert_same_trees(trees, one_by_one(problem, 0, 3)[0])
