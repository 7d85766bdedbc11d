"""Columns that part many documents are copied, and trees are the same with copies as without."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import INPUTS
from tests.kernels.trees.test_growth import assert_same
from tests.kernels.trees.tree_inputs import random_case, random_rules

from rankwell.kernels.disk_arrays import new_disk_array
from rankwell.kernels.trees.columns import COLUMN, arrange_columns
from rankwell.kernels.trees.contract import TreeProblem, TreeSettings
from rankwell.kernels.trees.cpu import column_copies
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.cpu.column_copies import LEAST_DOCS, ColumnCopies
from rankwell.kernels.trees.sampling import Sampling
from rankwell.kernels.trees.slabs import SLAB_BYTES, fill_slabs

N_DOCS, N_FEATURES = 5000, 100


@pytest.fixture
def copies_of_few(monkeypatch):
    """Few documents' columns are copied too."""
    monkeypatch.setattr(column_copies, "LEAST_DOCS", 1)


def wide_problem() -> tuple[np.ndarray, TreeProblem]:
    """Bins of 100 features, a column each, in two slabs of 56 columns; and the problem."""
    bins = np.random.default_rng(0).integers(1, 256, (N_DOCS, N_FEATURES)).astype(np.uint8)
    columns = arrange_columns(np.full(N_FEATURES, 255), np.zeros(N_FEATURES, bool))
    return bins, TreeProblem(fill_slabs(columns, N_DOCS, iter([(0, bins)])), columns, TreeSettings(n_leaves=2))


def test_which_columns_are_copied(copies_of_few):
    """Half of the documents: with it those of its slab that parted a 64th of them, and no others."""
    bins, problem = wide_problem()
    column_of = problem.columns.by_feature[:, COLUMN]
    assert problem.slabs.shape == (2, N_DOCS, SLAB_BYTES)
    copies = ColumnCopies(problem)
    assert copies.copies.shape == (37, N_DOCS)  # 3/8 of 100 features
    copies.count(np.array([7, 8, 9, 70]), np.array([1250, N_DOCS // 64 + 1, N_DOCS // 64 - 1, 1250]))
    copies.fill()
    assert (copies.copy_of == -1).all()
    copies.count(np.array([7]), np.array([1250]))
    copies.fill()
    np.testing.assert_array_equal(np.flatnonzero(copies.copy_of >= 0), np.sort(column_of[[7, 8]]))
    # Codes count from 0, as there are no missing values.
    for feature in (7, 8):
        np.testing.assert_array_equal(copies.copies[copies.copy_of[column_of[feature]]], bins[:, feature] - 1)


def test_there_is_room_for_so_many(copies_of_few):
    _, problem = wide_problem()
    copies = ColumnCopies(problem)
    parted = N_DOCS + np.arange(N_FEATURES)
    copies.count(np.arange(N_FEATURES), parted)
    assert copies.has_room()
    copies.fill()
    assert not copies.has_room()
    assert sorted(copies.copy_of[copies.copy_of >= 0]) == list(range(37))
    before = copies.copy_of.copy()
    copies.count(np.arange(N_FEATURES), parted)
    copies.fill()
    np.testing.assert_array_equal(copies.copy_of, before)


def test_few_documents_and_slabs_on_disk_have_none(tmp_path, monkeypatch):
    _, problem = wide_problem()
    assert problem.n_docs < LEAST_DOCS
    assert not ColumnCopies(problem).has_room()
    monkeypatch.setattr(column_copies, "LEAST_DOCS", 1)
    assert ColumnCopies(problem).has_room()
    on_disk = new_disk_array(problem.slabs.shape, np.uint8, str(tmp_path))
    assert not ColumnCopies(dataclasses.replace(problem, slabs=on_disk)).has_room()


def grown(problem: TreeProblem, case, n_jobs: int) -> tuple[list, CpuTreeBooster]:
    """Six trees of gradients that change from one to the next."""
    booster = CpuTreeBooster(problem, np.zeros(problem.n_docs, np.float32), n_jobs=n_jobs)
    shift = np.random.default_rng(1).normal(size=problem.n_docs).astype(np.float32)
    trees = [
        booster.boost_along(number, case.gradient + np.float32(0.1 * number) * shift, case.hessian)
        for number in range(6)
    ]
    return trees, booster


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", ["leaf by leaf", "symmetric", "rules", "sampling"])
def test_trees_are_the_same_with_copies(kind, n_jobs, monkeypatch):
    case = random_case(21 if kind == "rules" else 2, 6000, 24)
    settings = TreeSettings(n_leaves=8, max_depth=3 if kind == "symmetric" else 0, is_symmetric=kind == "symmetric")
    case = dataclasses.replace(case, settings=settings)
    if kind == "rules":
        case = dataclasses.replace(case, feature_rules=random_rules(case, 3, "all"))
    problem = case.problem()
    if kind == "sampling":
        query_ptr = np.arange(0, problem.n_docs + 1, 20, dtype=np.int64)
        problem = dataclasses.replace(
            problem, query_ptr=query_ptr, sampling=Sampling(queries=0.7, features=0.6, seed=4)
        )
    expected, without = grown(problem, case, n_jobs)
    assert not len(without._copies.copies)
    monkeypatch.setattr(column_copies, "LEAST_DOCS", 1)
    trees, booster = grown(problem, case, n_jobs)
    assert (booster._copies.copy_of >= 0).any()
    for tree, wanted in zip(trees, expected, strict=True):
        assert tree is not None
        assert_same(tree, wanted)
    np.testing.assert_array_equal(booster.scores(), without.scores())


def test_rounds_that_are_grown_together_use_copies(copies_of_few):
    from tests.kernels.trees.test_rounds import assert_same_trees, booster_of, one_by_one, query_problem

    from rankwell.kernels.trees.losses import LOSSES, RankingLoss

    problem = query_problem(INPUTS["130 columns"], RankingLoss(LOSSES["lambdarank"], 30, 1.0, 1))
    booster = booster_of(problem)
    trees = booster.boost_rounds(0, 25)
    assert (booster._copies.copy_of >= 0).any()
    expected, scores = one_by_one(problem, 0, 25)
    assert_same_trees(trees, expected)
    np.testing.assert_array_equal(booster.scores(), scores)
