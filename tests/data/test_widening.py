"""Widening: absent last features are zeros, but only where features have no names."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankwell.data.dataset import RankingDataset

X = np.array([[1.0, np.nan], [3.0, 4.0]], dtype=np.float32)


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix])
def test_absent_features_are_zeros(make: type) -> None:
    dataset = RankingDataset(make(X), [1, 0], qid=["b", "a"], comments=["x", "y"])
    wide = dataset.widened(4)
    expected = np.hstack([X, np.zeros((2, 2), dtype=np.float32)])
    assert np.array_equal(wide.dense_features(), expected, equal_nan=True)
    assert wide.is_sparse == dataset.is_sparse
    assert wide.features.dtype == np.float32
    assert wide.labels.tolist() == [1.0, 0.0]
    assert wide.query_ids.tolist() == ["b", "a"]
    assert dataset.n_features == 2


@pytest.mark.parametrize("n_features", [1, 2])
def test_nothing_is_absent_or_taken_away(n_features: int) -> None:
    dataset = RankingDataset(X)
    assert dataset.widened(n_features) is dataset


def test_named_features_are_left_alone() -> None:
    dataset = RankingDataset(X, feature_names=["bm25", "pagerank"])
    assert dataset.widened(4) is dataset
