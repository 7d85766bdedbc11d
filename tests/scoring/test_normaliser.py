"""Normalisers, each against its formula written out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from rankwell import DataError, ParameterError, RankingDataset
from rankwell.scoring.normaliser import NORMALISERS, fit_normaliser

NAN = np.nan


def normalise(name, rows, group):
    dataset = RankingDataset(np.array(rows, dtype=np.float32), group=group)
    return fit_normaliser(name, dataset).apply(dataset)


def test_none_returns_the_features_themselves():
    dataset = RankingDataset(np.ones((3, 2), dtype=np.float32))
    assert fit_normaliser("none", dataset).apply(dataset) is dataset.features


def test_standard_subtracts_the_mean_and_divides_by_the_deviation():
    # mean (1 + 3) / 2 = 2, deviation sqrt(((1-2)^2 + (3-2)^2) / 2) = 1; the missing value is left out of both
    np.testing.assert_array_equal(normalise("standard", [[1], [3], [NAN]], [3]), [[-1], [1], [NAN]])


def test_standard_makes_a_constant_feature_zero():
    np.testing.assert_array_equal(normalise("standard", [[0.1], [0.1], [0.1]], [3]), [[0], [0], [0]])


def test_standard_uses_the_training_data_at_prediction():
    train = RankingDataset(np.array([[0.0], [2.0]], dtype=np.float32))
    later = RankingDataset(np.array([[5.0]], dtype=np.float32))
    # mean 1, deviation 1
    np.testing.assert_array_equal(fit_normaliser("standard", train).apply(later), [[4.0]])


def test_query_minmax_scales_each_query_apart_and_keeps_missing_values():
    rows = [[1], [3], [NAN], [10], [30], [20]]
    np.testing.assert_array_equal(normalise("query-minmax", rows, [3, 3]), [[0], [1], [NAN], [0], [1], [0.5]])


def test_letor_gives_a_missing_value_the_query_minimum():
    rows = [[1], [3], [NAN], [NAN], [NAN]]
    np.testing.assert_array_equal(normalise("letor", rows, [3, 2]), [[0], [1], [0], [0], [0]])


@pytest.mark.parametrize("name", ["query-minmax", "letor"])
def test_a_feature_constant_in_a_query_becomes_zero_and_empty_queries_are_harmless(name):
    np.testing.assert_array_equal(normalise(name, [[7], [7], [8]], [0, 2, 0, 1, 0]), [[0], [0], [0]])


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.floats(-(2.0**100), 2.0**100, width=32) | st.just(NAN),
    )
)
def test_query_minmax_lies_between_zero_and_one(rows):
    normalised = normalise("query-minmax", rows, [len(rows)])
    there = ~np.isnan(rows)
    assert (np.isnan(normalised) == ~there).all()
    assert (normalised[there] >= 0).all()
    assert (normalised[there] <= 1).all()


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ParameterError, match=r"normalize must be one of 'auto', 'none', 'standard'.*got 'zscore'"):
        fit_normaliser("zscore", RankingDataset(np.ones((1, 1))))


@pytest.mark.parametrize("name", [name for name in NORMALISERS if name != "none"])
def test_sparse_features_are_not_filled_silently(name):
    with pytest.raises(DataError, match="would fill a sparse matrix"):
        fit_normaliser(name, RankingDataset(sparse.csr_matrix(np.eye(3))))


def test_auto_takes_what_suits_the_data():
    X = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)
    assert fit_normaliser("auto", RankingDataset(X, group=[2, 1])).name == "query-minmax"
    assert fit_normaliser("auto", RankingDataset(X)).name == "standard"
    assert fit_normaliser("auto", RankingDataset(sparse.csr_matrix(X), group=[2, 1])).name == "none"
