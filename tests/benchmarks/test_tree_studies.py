"""What chooses the form and the setting of trees has not seen the fold's test part."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks.letor_folds import joined, synthetic_fold
from benchmarks.tree_studies import choosing_figures, choosing_splits

from rankwell.data.folds import FoldData
from rankwell.data.synthetic import make_ranking


def test_what_chooses_for_a_fold_was_neither_learnt_nor_judged_on_its_test_part():
    whole = make_ranking("mq2008", scale=0.05)
    parts = [whole.subset(queries) for queries in np.array_split(np.arange(whole.n_queries), 5)]
    folds = [FoldData(f"Fold{i}", joined(parts[:3]), parts[3], part) for i, part in enumerate(parts)]
    splits = choosing_splits(folds)
    assert sorted(splits) == [(one, other) for one, other in sorted(permutations(range(5), 2)) if one < other]
    for (one, other), split in splits.items():
        assert split.validation is parts[one]
        assert split.test is parts[other]
        learnt = [part for number, part in enumerate(parts) if number not in (one, other)]
        np.testing.assert_array_equal(split.train.features, np.concatenate([part.features for part in learnt]))


def test_the_figure_of_a_setting_is_the_mean_of_the_other_parts():
    # A figure says what it is of: 100 · the setting + 10 · the part that it is judged on + the part left out besides.
    tried = {
        (one, other): np.array([[100 * s + 10 * one + other, 100 * s + 10 * other + one] for s in range(2)])
        for one in range(3)
        for other in range(one + 1, 3)
    }
    expected = [
        [(10 + 20) / 2, 100 + (10 + 20) / 2],
        [(0 + 20) / 2 + 1, 100 + (0 + 20) / 2 + 1],
        [(0 + 10) / 2 + 2, 100 + (0 + 10) / 2 + 2],
    ]
    np.testing.assert_allclose(choosing_figures(3, tried), expected)


def test_a_collection_without_folds_chooses_on_its_validation_part():
    fold = synthetic_fold(0.05)
    splits = choosing_splits([fold])
    assert list(splits.values()) == [fold]
    figures = {pair: np.array([[0.4, 0.9], [0.5, 0.1]]) for pair in splits}
    np.testing.assert_array_equal(choosing_figures(1, figures), [[0.4, 0.5]])
