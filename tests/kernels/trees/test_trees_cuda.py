"""Boosted trees on a CUDA device have the bits of the reference and of the CPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import (
    INPUTS,
    LARGE_INPUTS,
    LARGE_RULED_INPUTS,
    LARGE_SYMMETRIC_INPUTS,
    RULED_INPUTS,
    SYMMETRIC_INPUTS,
    make_edge_queries,
    make_queries,
)

from rankwell.kernels.device_report import report_device
from rankwell.kernels.trees.contract import BinTree
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster, gradient_source
from rankwell.kernels.trees.losses import LOSSES, PAIR_LOSSES, RankingLoss, judged_queries
from rankwell.kernels.trees.reference.growth import grow_tree
from rankwell.kernels.trees.sampling import Sampling

REPORT = report_device("cuda")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not REPORT.usable, reason=REPORT.description)]


SMALL = {**INPUTS, **SYMMETRIC_INPUTS, **RULED_INPUTS}
LARGE = {**LARGE_INPUTS, **LARGE_SYMMETRIC_INPUTS, **LARGE_RULED_INPUTS}


def cuda_booster(problem, **options):
    from rankwell.kernels.trees.cuda.booster import CudaTreeBooster

    return CudaTreeBooster(problem, np.zeros(problem.n_docs, np.float32), **options)


def assert_same_tree(own, expected):
    if expected is None:
        assert own is None
        return
    for name in BinTree.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(own, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("name", SMALL)
def test_a_tree_is_that_of_the_reference(name):
    made = SMALL[name]
    rules = {"feature_rules": made.feature_rules}
    expected = grow_tree(made.bins, made.has_missing, made.gradient, made.hessian, made.settings, **rules)
    booster = cuda_booster(made.problem())
    for _ in range(2):
        assert_same_tree(booster.boost_along(0, made.gradient, made.hessian), None if expected is None else expected[0])
    scores = np.zeros(len(made.bins), np.float32)
    if expected is not None:
        scores += expected[0].leaf_value[expected[1]]
        scores += expected[0].leaf_value[expected[1]]
    np.testing.assert_array_equal(booster.scores(), scores)


@pytest.mark.parametrize("memory", [None, 2], ids=["all slabs on the device", "slabs sent"])
@pytest.mark.parametrize("name", [*LARGE, "130 columns", "31 leaves"])
def test_trees_are_those_of_the_cpu(name, memory):
    made = {**LARGE, **SMALL}[name]
    problem = made.problem()
    cpu = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32))
    if memory is not None:
        if len(problem.slabs) < 3:
            pytest.skip("its slabs fit two places")
        memory *= problem.slabs[0].nbytes
    booster = cuda_booster(problem, **({} if memory is None else {"memory": memory}))
    generator = np.random.default_rng(0)
    for _ in range(3):
        gradient = (made.gradient + 0.2 * generator.standard_normal(problem.n_docs)).astype(np.float32)
        assert_same_tree(booster.boost_along(0, gradient, made.hessian), cpu.boost_along(0, gradient, made.hessian))
        np.testing.assert_array_equal(booster.scores(), cpu.scores())


def query_problem(made, loss, seed=0):
    """The problem with queries of 1 to 200 documents, one of them longer than a block's memory."""
    generator = np.random.default_rng(seed)
    n_docs = len(made.bins)
    starts = np.cumsum(np.concatenate(([0, 1300], generator.integers(0, 200, n_docs))))
    query_ptr = np.append(starts[starts < n_docs], n_docs)
    gains = 2.0 ** np.floor(4.9 * generator.random(n_docs) * made.bins[:, 0] / made.bins[:, 0].max()) - 1.0
    return dataclasses.replace(made.problem(), loss=loss, queries=judged_queries(loss, query_ptr, gains))


def assert_gradients_of_the_cpu(loss, queries, scores, tree):
    import cupy

    from rankwell.kernels.trees.cuda.gradients import QueryGradients

    expected = np.full((2, len(scores)), np.nan, np.float32)
    gradient_source(loss, queries)(scores, tree, *expected)
    placed = {"scores": cupy.asarray(scores)}
    placed |= {name: cupy.full(len(scores), np.nan, dtype=np.float32) for name in ("gradient", "hessian")}
    gradients = QueryGradients(loss, queries, placed)
    # A tree before it leaves nothing behind.
    for number in (tree + 1, tree):
        gradients.launch(number)
    for own, theirs in zip((placed["gradient"], placed["hessian"]), expected, strict=True):
        np.testing.assert_array_equal(own.get().view(np.int32), theirs.view(np.int32))


@pytest.mark.parametrize("name", PAIR_LOSSES)
@pytest.mark.parametrize(
    ("normalize", "truncation", "sigma", "noise"),
    [(1, 30, 1.0, 0.0), (0, 5, 2.0, 0.0), (1, 10_000, 0.5, 0.0), (1, 30, 1.0, 0.3)],
)
def test_gradients_of_pairs_have_the_bits_of_the_cpu(name, normalize, truncation, sigma, noise):
    for number, make in enumerate((make_queries, make_edge_queries)):
        query_ptr, gains, scores = make(truncation)
        loss = RankingLoss(PAIR_LOSSES[name], truncation, sigma, normalize, noise, seed=5)
        weights = None if normalize else np.linspace(0.1, 3.0, len(scores))
        assert_gradients_of_the_cpu(loss, judged_queries(loss, query_ptr, gains, weights), scores, number)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("seed", "tree"), [(0, 0), (7, 3), (2**63 - 1, 1_000_000)])
@pytest.mark.parametrize("make", [make_queries, make_edge_queries])
def test_gradients_of_xendcg_have_the_bits_of_the_cpu(make, seed, tree, is_weighted):
    query_ptr, gains, scores = make(tree)
    loss = RankingLoss(LOSSES["xendcg"], 1, 1.0, 0, seed=seed)
    weights = np.linspace(0.0, 3.0, len(scores)) if is_weighted else None
    assert_gradients_of_the_cpu(loss, judged_queries(loss, query_ptr, gains, weights), scores, tree)


def test_gradients_of_xendcg_for_many_queries():
    generator = np.random.default_rng(0)
    sizes = np.concatenate((generator.integers(0, 250, 4000), [20_000, 3]))
    query_ptr = np.concatenate(([0], np.cumsum(generator.permutation(sizes))))
    n_docs = int(query_ptr[-1])
    gains = 2.0 ** generator.integers(0, 5, n_docs) - 1.0
    scores = (generator.normal(size=n_docs) * generator.choice([1e-39, 0.1, 5.0, 300.0], n_docs)).astype(np.float32)
    loss = RankingLoss(LOSSES["xendcg"], 1, 1.0, 0, seed=11)
    assert_gradients_of_the_cpu(loss, judged_queries(loss, query_ptr, gains), scores, 4)


LOSSES_OF_ROUNDS = [("lambdarank", 0.0), ("map", 0.0), ("lambdarank", 0.3), ("mrr", 0.1), ("xendcg", 0.0)]


@pytest.mark.parametrize(("name", "noise"), LOSSES_OF_ROUNDS)
@pytest.mark.parametrize("of", [name for name in LARGE if name.endswith("many tiles")])
def test_rounds_are_those_of_the_cpu(name, noise, of):
    problem = query_problem(LARGE[of], RankingLoss(LOSSES[name], 30, 1.0, 1, noise, seed=3))
    cpu = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32))
    booster = cuda_booster(problem)
    trees = [booster.boost(0), *booster.boost_rounds(1, 40)]
    assert len(trees) == 41
    for number, tree in enumerate(trees):
        assert_same_tree(tree, cpu.boost(number))
    np.testing.assert_array_equal(booster.scores(), cpu.scores())


@pytest.mark.parametrize(("name", "noise"), [("lambdarank", 0.3), ("xendcg", 0.0)])
def test_what_is_drawn_depends_on_the_tree_alone(monkeypatch, name, noise):
    """20 rounds grown together are 7 and, by another booster, 13 more; the host waits once for each."""
    from rankwell.kernels.trees.cuda.booster import CudaTreeBooster

    waits, grow = [], CudaTreeBooster._boost_together

    def counted(booster, first, n_rounds):
        waits.append(n_rounds)
        return grow(booster, first, n_rounds)

    monkeypatch.setattr(CudaTreeBooster, "_boost_together", counted)
    problem = query_problem(LARGE_INPUTS["many tiles"], RankingLoss(LOSSES[name], 30, 1.0, 1, noise, seed=3))
    whole, first = cuda_booster(problem), cuda_booster(problem)
    trees = whole.boost_rounds(0, 20)
    resumed = [*first.boost_rounds(0, 7)]
    second = CudaTreeBooster(problem, first.scores())
    resumed += second.boost_rounds(7, 13)
    assert waits == [20, 7, 13]
    assert len(trees) == len(resumed) == 20
    for own, expected in zip(resumed, trees, strict=True):
        assert_same_tree(own, expected)
    np.testing.assert_array_equal(second.scores(), whole.scores())


DRAWN = [
    Sampling(queries=0.5, seed=1),
    Sampling(documents=0.3, features=0.5, seed=2),
    Sampling(node_features=0.5, seed=3),
    Sampling(queries=0.8, documents=0.7, features=0.7, node_features=0.7, seed=4),
]


@pytest.mark.parametrize("sampling", DRAWN)
@pytest.mark.parametrize("name", ["many tiles", *(name for name in LARGE if name.endswith("four slabs"))])
def test_random_parts_are_those_of_the_cpu(name, sampling):
    loss = RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1)
    problem = query_problem(LARGE[name], loss)
    problem = dataclasses.replace(problem, query_ptr=problem.queries.query_ptr, sampling=sampling)
    cpu = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32))
    booster = cuda_booster(problem)
    trees, expected = booster.boost_rounds(5, 36), cpu.boost_rounds(5, 36)
    assert len(trees) == len(expected) == 36
    for own, theirs in zip(trees, expected, strict=True):
        assert_same_tree(own, theirs)
    np.testing.assert_array_equal(booster.scores(), cpu.scores())
    if len(problem.slabs) > 3:
        sent = cuda_booster(problem, memory=3 * problem.slabs[0].nbytes)
        for number, tree in enumerate(trees[:3], 5):
            assert_same_tree(sent.boost(number), tree)


@pytest.mark.parametrize("memory", [None, 2], ids=["all slabs on the device", "slabs sent"])
def test_trees_are_grown_after_one_whose_draw_gives_no_cut(memory):
    """With few queries, some draw has no pair at all; the trees after it have some."""
    made = LARGE_INPUTS["many tiles" if memory is None else "four slabs"]
    loss = RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1)
    query_ptr = np.array([0, *range(2, 12, 2), len(made.bins)])
    gains = np.zeros(len(made.bins))
    gains[:10:2] = 1.0
    problem = dataclasses.replace(
        made.problem(),
        loss=loss,
        queries=judged_queries(loss, query_ptr, gains),
        query_ptr=query_ptr,
        sampling=Sampling(queries=0.4, seed=0),
    )
    cpu = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32))
    booster = cuda_booster(problem, **({} if memory is None else {"memory": memory * problem.slabs[0].nbytes}))
    expected, trees = cpu.boost_rounds(0, 64), booster.boost_rounds(0, 64)
    n_leaves = [tree.n_leaves for tree in expected]
    assert len(trees) == len(expected) == 64
    assert 1 in n_leaves[:32]
    assert max(n_leaves[n_leaves.index(1) :]) > 1
    for own, theirs in zip(trees, expected, strict=True):
        assert_same_tree(own, theirs)
    np.testing.assert_array_equal(booster.scores(), cpu.scores())


def test_nothing_is_grown_after_a_tree_without_a_cut():
    """Labels are all equal: no gradient is above 0, nor will be."""
    made, loss = LARGE_INPUTS["many tiles"], RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1)
    query_ptr = np.array([0, 1000, len(made.bins)])
    queries = judged_queries(loss, query_ptr, np.ones(len(made.bins)))
    booster = cuda_booster(dataclasses.replace(made.problem(), loss=loss, queries=queries))
    assert booster.boost_rounds(0, 40) == []
    assert not booster.scores().any()


def test_trees_of_given_gradients_go_on_after_one_without_a_cut():
    made = INPUTS["31 leaves"]
    query_ptr = np.array([0, 300, 600, 900])
    problem = dataclasses.replace(made.problem(), query_ptr=query_ptr, sampling=Sampling(queries=0.3, seed=2))
    cpu, booster = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32)), cuda_booster(problem)
    trees = []
    for number in range(12):
        trees.append(booster.boost_along(number, made.gradient, made.hessian))
        assert_same_tree(trees[-1], cpu.boost_along(number, made.gradient, made.hessian))
    assert {tree.n_leaves == 1 for tree in trees} == {True, False}
    np.testing.assert_array_equal(booster.scores(), cpu.scores())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"query_fraction": 0.7, "feature_fraction": 0.6, "n_seeds": 2},
        {"growth": "symmetric"},
        {"increasing": [0, 3], "decreasing": [1]},
        {"growth": "symmetric", "increasing": [0, 3], "decreasing": [1]},
        {"interaction_groups": [[0, 1, 2, *range(20, 40)], list(range(2, 20))]},
        {"growth": "symmetric", "increasing": [0], "interaction_groups": [[*range(25)], [*range(20, 40)]]},
        {"categorical_features": [0, 1], "category_smoothing": 1.0},
        {"categorical_features": [0, 1], "decreasing": [2], "interaction_groups": [[*range(25)], [1, *range(20, 40)]]},
        {"growth": "symmetric", "max_depth": 5, "n_leaves": "auto", "document_fraction": 0.8},
    ],
)
@pytest.mark.parametrize("loss", [{"loss": "lambdarank"}, {"loss": "lambdarank", "noise": 0.3}, {"loss": "xendcg"}])
def test_a_ranker_is_that_of_the_cpu(loss, options):
    from rankwell import LambdaMART
    from rankwell.data.synthetic import make_ranking

    whole = make_ranking(n_docs=12_000, n_queries=150, n_features=40, missing=0.05)
    if "categorical_features" in options:
        features = whole.features.copy()
        features[:, :2] = np.floor(np.abs(features[:, :2]) % 40)
        whole = whole.replace(features=features)
    train, validation = whole.subset(range(100)), whole.subset(range(100, 150))
    own, expected = (
        LambdaMART(**{"n_rounds": 60, "n_leaves": 15, "device": device, **loss, **options}).fit(
            train, eval_set=validation
        )
        for device in ("cuda", "cpu")
    )
    assert own.state_.keys() == expected.state_.keys()
    for name, array in expected.state_.items():
        np.testing.assert_array_equal(own.state_[name], array, err_msg=name)
    np.testing.assert_array_equal(own.predict(validation), expected.predict(validation))
