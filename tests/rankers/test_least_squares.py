"""Least squares against NumPy's solver on the centred system written out."""

import numpy as np
import pytest
from scipy import sparse

from rankwell import DataError, LeastSquares


def test_weights_solve_the_centred_ridge_system():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = rng.integers(0, 3, 60).astype(float)
    ranker = LeastSquares(ridge=0.1, normalize="none").fit(X, y, group=[20, 40])
    centred = np.vstack([X[:20] - X[:20].mean(axis=0, dtype=float), X[20:] - X[20:].mean(axis=0, dtype=float)])
    targets = np.concatenate([y[:20] - y[:20].mean(), y[20:] - y[20:].mean()])
    expected = np.linalg.solve(centred.T @ centred + 0.1 * 60 * np.eye(3), centred.T @ targets)
    np.testing.assert_allclose(ranker.description_.layers[0].weights[0], expected, rtol=1e-9)


def test_labels_linear_in_the_features_are_recovered_whatever_the_query_offset():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 2)).astype(np.float32)
    offset = np.repeat(rng.normal(scale=100, size=10), 10)
    y = X @ np.array([2.0, -3.0]) + offset
    ranker = LeastSquares(ridge=0, normalize="none").fit(X, y, group=[10] * 10)
    np.testing.assert_allclose(ranker.description_.layers[0].weights[0], [2, -3], rtol=1e-5)


def test_constant_and_repeated_features_without_a_ridge_are_harmless():
    X = np.array([[1, 0, 0], [1, 1, 1], [1, 2, 2]], dtype=np.float32)
    scores = LeastSquares(ridge=0, normalize="none").fit(X, [0, 1, 2], group=[3]).predict(X)
    np.testing.assert_allclose(np.diff(scores), [1, 1])


def test_missing_values_count_as_the_mean_under_standard():
    X = np.array([[0.0], [2.0], [np.nan], [1.0]], dtype=np.float32)
    scores = LeastSquares().fit(X[[0, 1, 3]], [0, 2, 1], group=[3]).predict(X)
    assert scores[2] == scores[3]


def test_sparse_features_give_the_dense_answer():
    rng = np.random.default_rng(2)
    X = np.where(rng.random((40, 5)) < 0.6, 0, rng.normal(size=(40, 5))).astype(np.float32)
    y = rng.integers(0, 3, 40)
    dense = LeastSquares(normalize="none").fit(X, y, group=[20, 20]).predict(X)
    from_sparse = LeastSquares(normalize="none").fit(sparse.csr_matrix(X), y, group=[20, 20])
    np.testing.assert_array_equal(from_sparse.predict(sparse.csr_matrix(X)), dense)


def test_by_default_features_count_by_their_place_within_the_query():
    """The second query's values are a thousand times the first's: its range, not its size, tells how good one is."""
    X = np.array([[1.0], [2.0], [3.0], [1000.0], [2000.0], [3000.0]], dtype=np.float32)
    ranker = LeastSquares().fit(X, [0, 1, 2, 0, 1, 2], group=[3, 3])
    scores = ranker.predict(X, group=[3, 3])
    np.testing.assert_allclose(scores[:3], scores[3:], rtol=1e-6)
    # Centred: x is -1/2, 0, 1/2 and y is -1, 0, 1 in both queries, and the ridge 1e-2 counts for each of the six rows.
    np.testing.assert_allclose(ranker.description_.layers[0].weights[0], [2 * 1.0 / (2 * 0.5 + 0.01 * 6)], rtol=1e-6)


@pytest.mark.parametrize("group", [[1, 1, 1, 1], [2, 2]])
def test_data_without_different_labels_in_a_query_is_refused(group):
    with pytest.raises(DataError, match="there are no pairs to learn from"):
        LeastSquares().fit(np.eye(4, dtype=np.float32), [0, 0, 1, 1], group=group)
