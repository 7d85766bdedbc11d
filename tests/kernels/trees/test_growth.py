"""Trees of the CPU kernels are those of the slow reference, number by number, on any number of threads."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.kernels.trees.tree_inputs import TreeCase, random_case, random_rules

from rankwell.kernels.trees.contract import MOST_LEAVES, BinTree, TreeSettings
from rankwell.kernels.trees.cpu import booster as cpu_booster
from rankwell.kernels.trees.cpu import growth
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.cpu.drawing import counting_documents
from rankwell.kernels.trees.cpu.tree_values import add_tree
from rankwell.kernels.trees.feature_rules import FeatureRules, group_bits
from rankwell.kernels.trees.reference.growth import grow_tree, whole_numbers
from rankwell.kernels.trees.reference.random_gradients import random_units as reference_units
from rankwell.kernels.trees.sampling import NODE_STREAM, Sampling, random_units, stream_seed


def assert_same(found: BinTree, expected: BinTree) -> None:
    for field in fields(BinTree):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        assert ours.dtype == theirs.dtype, field.name
        np.testing.assert_array_equal(ours, theirs, err_msg=field.name)


def check(case: TreeCase, n_jobs: int = 1) -> BinTree | None:
    booster = case.booster(n_jobs)
    found = booster.boost_along(0, case.gradient, case.hessian)
    expected = grow_tree(
        case.bins, case.has_missing, case.gradient, case.hessian, case.settings, feature_rules=case.feature_rules
    )
    if expected is None:
        assert found is None
        assert not booster.scores().any()
        return None
    tree, leaf_of = expected
    assert found is not None
    assert_same(found, tree)
    np.testing.assert_array_equal(booster.scores(), tree.leaf_value[leaf_of])
    scores = np.zeros(len(case.bins))
    add_tree(np.ascontiguousarray(case.bins.T), found, 1.0, scores)
    np.testing.assert_array_equal(scores, booster.scores().astype(np.float64))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_random_trees(seed):
    check(random_case(seed))


def test_some_random_trees_have_cuts_by_missing_values_on_both_sides():
    trees = [grown for seed in range(4) if (grown := check(random_case(seed, 150, 10))) is not None]
    sides = np.concatenate([tree.missing_left for tree in trees])
    assert 0 < sides.mean() < 1


@pytest.mark.parametrize("what", ["directions", "categories", "groups", "all"])
@pytest.mark.parametrize("seed", range(16))
def test_random_trees_with_rules(seed, what):
    case = random_case(seed, 180)
    case = replace(case, feature_rules=random_rules(case, seed, what))
    settings = replace(case.settings, category_smoothing=0.3 * (seed % 4), category_l2=seed % 3, max_category_set=4)
    check(replace(case, settings=settings))


def test_random_trees_do_what_their_rules_are_for():
    """Rules that no cut feels would be tested by nothing."""
    free, bounded, grouped, sets = 0, 0, 0, 0
    for seed in range(16):
        case = random_case(seed, 180)
        counts = [check(case)]
        for what in ("directions", "groups", "categories"):
            counts.append(check(replace(case, feature_rules=random_rules(case, seed, what))))
        plain, *others = counts
        if plain is None:
            continue
        free += 1
        bounded += others[0] is None or others[0].feature.tolist() != plain.feature.tolist()
        grouped += others[1] is None or others[1].feature.tolist() != plain.feature.tolist()
        sets += others[2] is not None and len(others[2].left_bins) > 0
    assert min(bounded, grouped, sets) > free // 4


@pytest.mark.parametrize("what", ["none", "directions", "groups"])
@pytest.mark.parametrize("seed", range(12))
def test_random_symmetric_trees(seed, what):
    case = random_case(seed, 160)
    levels = 1 + seed % 4
    settings = replace(
        case.settings, is_symmetric=True, max_depth=levels, n_leaves=2**levels, min_docs_leaf=1 + seed % 3
    )
    rules = None if what == "none" else random_rules(case, seed, what)
    tree = check(replace(case, settings=settings, feature_rules=rules))
    if tree is not None:
        assert len(set(zip(tree.feature, tree.cut, tree.missing_left, strict=True))) <= levels


def test_missing_values_may_be_all_that_is_above_in_a_rising_feature():
    """Also in a leaf without the feature's highest value: the mirrored cut, with them on the left, is not allowed."""
    bins = np.array([[1, 0], [1, 1], [1, 2], [2, 1], [2, 2], [2, 3]], np.uint8).repeat(10, axis=0)
    gradient = np.array([-1, 1, 1, -9, -9, -9], np.float32).repeat(10)
    rules = FeatureRules(np.array([0, 1], np.int8), np.zeros(2, np.int64), group_bits((), 2))
    hessian = np.ones(60, np.float32)
    tree = check(TreeCase(bins, np.array([2, 3]), gradient, hessian, TreeSettings(n_leaves=3), rules))
    assert tree is not None
    assert (tree.feature.tolist(), tree.cut.tolist(), tree.missing_left.tolist()) == ([0, 1], [1, 2], [1, 0])


@pytest.mark.parametrize("n_categories", [2, 4, 5, 63, 64, 65, 128, 250])
def test_categories_around_a_word_of_bits(n_categories):
    generator = np.random.default_rng(n_categories)
    bins = generator.integers(0, n_categories + 1, (3000, 2)).astype(np.uint8)
    better = np.arange(n_categories + 1) % 3 == 1
    gradient = (generator.normal(size=3000) - 2 * better[bins[:, 0]]).astype(np.float32)
    case = TreeCase(
        bins,
        np.full(2, n_categories),
        gradient,
        np.ones(3000, np.float32),
        TreeSettings(n_leaves=3, category_smoothing=2.0, max_category_set=128),
        FeatureRules(np.zeros(2, np.int8), np.full(2, n_categories), group_bits((), 2)),
    )
    tree = check(case)
    assert tree is not None
    assert tree.feature[0] == 0
    assert tree.cut[0] == -1


@pytest.mark.parametrize("n_features", [7, 8, 9, 63, 64, 65, 130])
def test_sizes_around_a_word_and_a_slab(n_features):
    case = random_case(1, 150, n_features)
    bins = np.random.default_rng(n_features).integers(1, 201, (150, n_features)).astype(np.uint8)
    settings = TreeSettings(n_leaves=3)
    check(replace(case, bins=bins, n_value_bins=np.full(n_features, 200), settings=settings))


@pytest.mark.parametrize("n_docs", [2047, 2048, 2049, 4100])
def test_sizes_around_a_block(n_docs):
    check(replace(random_case(2, n_docs, 3), settings=TreeSettings(n_leaves=4, min_docs_leaf=20)))


def test_one_document_and_constant_features_give_no_tree():
    assert check(random_case(3, 1, 5)) is None
    constant = random_case(4, 50, 3)
    assert check(replace(constant, bins=np.ones((50, 3), np.uint8), n_value_bins=np.ones(3, int))) is None
    assert check(replace(constant, bins=np.zeros((50, 3), np.uint8), n_value_bins=np.zeros(3, int))) is None


@pytest.mark.parametrize("which", ["gradient", "hessian"])
def test_without_gradient_or_hessian_there_is_no_tree(which):
    case = random_case(6, 60, 5)
    assert check(replace(case, **{which: np.zeros(60, np.float32)})) is None


def test_the_first_of_equal_features_is_cut():
    case = random_case(8, 120, 1, most_bins=20)
    twice = replace(case, bins=np.repeat(case.bins, 5, axis=1), n_value_bins=np.repeat(case.n_value_bins, 5))
    tree = check(twice)
    assert tree is not None
    assert not tree.feature.any()


def test_depth_and_leaves_are_limited():
    case = random_case(2, 200, 10)
    wide = check(replace(case, settings=TreeSettings(n_leaves=9, max_depth=0)))
    assert wide is not None
    assert wide.n_leaves == 9
    shallow = check(replace(case, settings=TreeSettings(n_leaves=9, max_depth=2)))
    assert shallow is not None
    assert shallow.n_leaves == 4


def test_leaf_values_are_the_newton_steps():
    case = replace(random_case(2, 200, 10), settings=TreeSettings(n_leaves=2, l2=3.0, learning_rate=0.5))
    tree, leaf_of = grow_tree(case.bins, case.has_missing, case.gradient, case.hessian, case.settings)
    for leaf in range(2):
        own = leaf_of == leaf
        expected = -0.5 * case.gradient[own].sum(dtype=float) / (case.hessian[own].sum(dtype=float) + 3.0)
        assert tree.leaf_value[leaf] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_threads_do_not_matter(seed, is_symmetric, monkeypatch):
    """Many small parts on three threads, as many documents and columns would give; half of the documents count."""
    monkeypatch.setattr(cpu_booster, "_VALUES_FOR_A_TEAM", 0)
    monkeypatch.setattr(cpu_booster, "current_threads", lambda: 3)
    settings = TreeSettings(n_leaves=8, max_depth=3 if is_symmetric else 0, min_docs_leaf=20, is_symmetric=is_symmetric)
    case = replace(random_case(seed, 20_000, 6), settings=settings)
    assert len(case.bins) // 2 > 2 * growth.DOCS_PER_PART
    problem = replace(case.problem(), query_ptr=np.array([0, 20_000]), sampling=Sampling(documents=0.5))
    several = CpuTreeBooster(problem, np.zeros(20_000, np.float32))
    monkeypatch.undo()
    assert several._n_workers == 3
    shared = several.boost_along(0, case.gradient, case.hessian)
    single = CpuTreeBooster(problem, np.zeros(20_000, np.float32), n_jobs=1)
    tree = single.boost_along(0, case.gradient, case.hessian)
    assert_same(shared, tree)
    np.testing.assert_array_equal(single.scores(), several.scores())
    everything = np.zeros(20_000)
    add_tree(np.ascontiguousarray(case.bins.T), tree, 1.0, everything)
    np.testing.assert_array_equal(single.scores(), everything.astype(np.float32))


@pytest.mark.parametrize(
    "shares", [(0.5, 1, 1, 1), (1, 0.6, 1, 1), (1, 1, 0.3, 1), (1, 1, 1, 0.4), (0.7, 0.7, 0.7, 0.7)]
)
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_random_parts_of_the_data(shares, is_symmetric):
    case = random_case(2, 200, 12)
    if is_symmetric:
        case = replace(case, settings=replace(case.settings, is_symmetric=True, max_depth=3, n_leaves=8))
    query_ptr = np.array([0, 3, 3, 50, 90, 120, 121, 170, 200])
    sampling = Sampling(*shares, seed=5)
    booster = CpuTreeBooster(
        replace(case.problem(), query_ptr=query_ptr, sampling=sampling), np.zeros(200, np.float32), n_jobs=1
    )
    varying = np.flatnonzero(booster._problem.columns.by_feature[:, 0] >= 0)
    trees = []
    for number in range(4):
        before = booster.scores().copy()
        found = booster.boost_along(number, case.gradient, case.hessian)
        of_tree = sampling.allowed_features(number, varying, 12).astype(bool)

        def allowed(leaf, number=number, of_tree=of_tree):
            units = random_units(stream_seed(5, NODE_STREAM), number * 2 * MOST_LEAVES + leaf, 12)
            return of_tree & (units < sampling.node_features)

        counts = sampling.counting_documents(number, query_ptr)
        np.testing.assert_array_equal(counting_documents(sampling, number, query_ptr), counts)
        expected = grow_tree(
            case.bins, case.has_missing, case.gradient, case.hessian, case.settings, counts=counts, allowed=allowed
        )
        if expected is None:
            assert_same(found, BinTree.of_one_leaf(200))
            np.testing.assert_array_equal(booster.scores(), before)
            continue
        tree, leaf_of = expected
        assert_same(found, tree)
        np.testing.assert_array_equal(booster.scores(), before + tree.leaf_value[leaf_of])
        trees.append(found)
    assert len({tuple(tree.leaf_value) for tree in trees}) > 1


def test_shares_are_what_they_say():
    query_ptr = np.arange(0, 20_001, 10)
    for sampling in (Sampling(queries=0.3), Sampling(documents=0.3)):
        counts = sampling.counting_documents(0, query_ptr)
        assert counts.mean() == pytest.approx(0.3, abs=0.04)
        whole_queries = np.isin(counts.reshape(-1, 10).sum(axis=1), (0, 10)).all()
        assert whole_queries == (sampling.queries < 1)
    assert Sampling(features=0.25).allowed_features(1, np.arange(2, 42), 50).sum() == 10
    np.testing.assert_array_equal(random_units(7, 3, 5), reference_units(7, 3, range(5)))


def test_whole_numbers_never_overflow():
    generator = np.random.default_rng(0)
    for scale in (1e-30, 1.0, 1e30):
        gradient = (scale * generator.normal(size=500)).astype(np.float32)
        numbers = whole_numbers(gradient, np.abs(gradient))
        assert 2**29 < np.abs(numbers.gradient).sum() < 2**31
        assert 2**30 < numbers.hessian.sum() < 2**32
        np.testing.assert_allclose(
            np.ldexp(numbers.gradient.astype(float), -numbers.gradient_exponent), gradient, atol=scale * 1e-6
        )
