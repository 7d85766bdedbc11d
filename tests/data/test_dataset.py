"""RankingDataset: what goes in, what is kept, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankwell import DataError, RankingDataset

LARGEST = np.finfo(np.float32).max


@st.composite
def collections(draw):
    """Features with missing values, labels, and query ids in any order."""
    n_docs = draw(st.integers(0, 30))
    qid = draw(st.lists(st.integers(0, 5), min_size=n_docs, max_size=n_docs))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    features = generator.standard_normal((n_docs, draw(st.integers(0, 4)))).astype(np.float32)
    features[generator.random(features.shape) < 0.2] = np.nan
    return features, generator.integers(0, 3, n_docs).astype(float), qid


class TestOrder:
    @settings(deadline=None)
    @given(collections())
    def test_rows_keep_their_labels_and_come_back(self, collection):
        features, labels, qid = collection
        weights = np.arange(len(labels), dtype=float)
        names = [f"d{row}" for row in range(len(labels))]
        dataset = RankingDataset(features, labels, qid=qid, document_weights=weights, comments=names)
        rows = dataset.document_weights.astype(int)  # the user's row of each row
        np.testing.assert_array_equal(dataset.features, features[rows])
        np.testing.assert_array_equal(dataset.labels, labels[rows])
        assert list(dataset.comments) == [names[row] for row in rows]
        assert dataset.qid_of_rows().tolist() == [qid[row] for row in rows]
        np.testing.assert_array_equal(dataset.to_user_order(dataset.features), features)
        np.testing.assert_array_equal(dataset.to_user_order(dataset.labels), labels)
        assert [row for part in dataset.queries() for row in range(part.start, part.stop)] == list(range(len(labels)))
        assert dataset.query_sizes.tolist() == [qid.count(query_id) for query_id in dataset.query_ids]

    @settings(deadline=None)
    @given(collections(), st.data())
    def test_a_subset_holds_its_queries_in_the_order_given(self, collection, data):
        features, labels, qid = collection
        whole = RankingDataset(features, labels, qid=qid, query_weights=np.arange(len(set(qid)), dtype=float))
        numbers = st.integers(0, whole.n_queries - 1) if whole.n_queries else st.nothing()
        chosen = data.draw(st.lists(numbers, max_size=8)) if whole.n_queries else []
        part = whole.subset(chosen)
        assert part.query_ids.tolist() == [whole.query_ids[query] for query in chosen]
        assert part.query_weights.tolist() == chosen
        slices = list(whole.queries())
        for query, rows in zip(chosen, part.queries(), strict=True):
            np.testing.assert_array_equal(part.features[rows], whole.features[slices[query]])
            np.testing.assert_array_equal(part.labels[rows], whole.labels[slices[query]])

    def test_by_hand(self):
        dataset = RankingDataset([[1], [2], [3]], [0, 1, 2], qid=["b", "a", "b"])
        assert dataset.features[:, 0].tolist() == [1, 3, 2]
        assert dataset.labels.tolist() == [0, 2, 1]
        assert dataset.query_ptr.tolist() == [0, 2, 3]
        assert dataset.query_of_rows().tolist() == [0, 0, 1]
        assert dataset.to_user_order(np.array([10, 30, 20])).tolist() == [10, 20, 30]

    def test_user_order_needs_one_value_a_row(self):
        with pytest.raises(DataError, match="one value per row: 2 rows, 3 values"):
            RankingDataset(np.eye(2)).to_user_order(np.zeros(3))


class TestShapes:
    def test_without_qid_or_group_all_rows_are_one_query(self):
        dataset = RankingDataset(np.ones((3, 2)))
        assert (dataset.n_docs, dataset.n_features, dataset.n_queries, len(dataset)) == (3, 2, 1, 3)

    def test_empty_queries_and_queries_of_one(self):
        dataset = RankingDataset(np.arange(3.0).reshape(3, 1), [1, 2, 3], group=[0, 1, 0, 2, 0])
        assert dataset.query_sizes.tolist() == [0, 1, 0, 2, 0]
        assert [(rows.start, rows.stop) for rows in dataset.queries()] == [(0, 0), (0, 1), (1, 1), (1, 3), (3, 3)]
        assert dataset.query_of_rows().tolist() == [1, 3, 3]
        assert dataset.subset([0, 3]).query_sizes.tolist() == [0, 2]

    def test_no_documents_at_all(self):
        dataset = RankingDataset(np.empty((0, 4)), [], qid=[], comments=[])
        assert (dataset.n_docs, dataset.n_features, dataset.n_queries) == (0, 4, 0)
        assert list(dataset.comments) == []

    def test_labels_and_query_sizes_have_no_cap(self):
        labels = np.arange(100_000, dtype=float) * 1e9 - 5
        dataset = RankingDataset(np.zeros((100_000, 1)), labels)
        np.testing.assert_array_equal(dataset.labels, labels)
        assert dataset.labels.dtype == np.float64

    def test_repr(self):
        assert repr(RankingDataset(np.eye(3))) == "RankingDataset(3 documents, 1 queries, 3 features)"
        assert repr(RankingDataset(sparse.eye(3))) == "RankingDataset(3 documents, 1 queries, 3 features, sparse)"


class TestFeatures:
    def test_a_float32_array_is_not_copied(self):
        features = np.zeros((4, 2), dtype=np.float32)
        assert RankingDataset(features, group=[2, 2]).features is features
        assert RankingDataset(features, qid=[1, 1, 2, 2]).features is features

    @pytest.mark.parametrize("convert", [np.asfortranarray, np.int8, lambda X: X[::-1], lambda X: X.tolist()])
    def test_everything_else_becomes_one(self, convert):
        given = np.arange(6.0).reshape(3, 2)
        features = RankingDataset(convert(given)).features
        assert (features.dtype, features.flags.c_contiguous, type(features)) == (np.float32, True, np.ndarray)
        np.testing.assert_array_equal(features, np.asarray(convert(given)))

    def test_missing_values_stay(self):
        features = RankingDataset([[1, None], [np.nan, LARGEST]]).features
        np.testing.assert_array_equal(features, np.array([[1, np.nan], [np.nan, LARGEST]], dtype=np.float32))

    def test_what_a_mask_hides_is_missing(self):
        features = RankingDataset(np.ma.masked_greater(np.array([[1.0, 5.0]]), 3)).features
        np.testing.assert_array_equal(features, np.array([[1, np.nan]], dtype=np.float32))

    def test_the_largest_values_that_cancel_or_add_up_beyond_float32_are_fine(self):
        features = np.array([[LARGEST, LARGEST], [-LARGEST, np.nan]], dtype=np.float32)
        np.testing.assert_array_equal(RankingDataset(features).features, features)

    @pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
    @pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array])
    def test_the_first_infinity_is_named(self, value, as_given):
        features = np.ones((5, 3))
        features[2, 0] = np.nan
        features[3, 1] = value
        features[4, 2] = np.inf
        with pytest.raises(DataError, match=rf"row 3, feature 1 is {value}\. Clip the value".replace("+", r"\+")):
            RankingDataset(as_given(features))

    def test_infinity_far_down(self, monkeypatch):
        monkeypatch.setattr("rankwell.data.validation._VALUES_CHECKED", 8)
        features = np.full((1000, 3), np.nan, dtype=np.float32)
        features[997, 2] = np.inf
        with pytest.raises(DataError, match="row 997, feature 2 is inf"):
            RankingDataset(features)

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (np.ones(3), r"X must have two dimensions \(documents, features\), got shape \(3,\)"),
            (None, "X must have two dimensions"),
            ([[1, 2], [3]], "X must hold numbers"),
            ([["a"]], "X must hold numbers: .*Encode text columns"),
            (np.ones((2, 2)) * 1j, "X must hold numbers, it holds complex128"),
            (sparse.csr_matrix(np.eye(2) * 1j), "X must hold numbers, it holds complex128"),
            (np.array([["2020-01-01"]], dtype="datetime64[D]"), "X must hold numbers, it holds datetime64"),
        ],
    )
    def test_not_a_table_of_numbers(self, features, message):
        with pytest.raises(DataError, match=message):
            RankingDataset(features)


class TestSparse:
    @pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
    def test_is_kept_sparse_and_grouped(self, form):
        dense = np.array([[1, 0, 2], [0, 0, 0], [0, 3, np.nan]])
        dataset = RankingDataset(form(dense), [1, 2, 3], qid=["a", "b", "a"])
        assert dataset.is_sparse
        assert dataset.features.format == "csr"
        assert dataset.features.dtype == np.float32
        np.testing.assert_array_equal(dataset.dense_features(), dense[[0, 2, 1]].astype(np.float32))
        np.testing.assert_array_equal(dataset.subset([1]).dense_features(), [[0, 0, 0]])

    def test_duplicate_entries_are_added_up_and_the_users_matrix_is_not_changed(self):
        twice = sparse.csr_matrix((np.array([1, 2], np.float32), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
        dataset = RankingDataset(twice)
        assert dataset.features.nnz == 1
        np.testing.assert_array_equal(dataset.dense_features(), [[0, 3, 0]])
        assert twice.nnz == 2


class TestSubset:
    whole = RankingDataset(np.arange(6.0).reshape(6, 1), range(6), qid=list("aabbbc"))

    def test_mask_and_numbers_from_the_end(self):
        assert self.whole.subset([True, False, True]).query_ids.tolist() == ["a", "c"]
        assert self.whole.subset(np.array([-1, 0])).query_ids.tolist() == ["c", "a"]
        assert self.whole.subset(range(2)).n_docs == 5
        assert self.whole.subset([]).n_docs == 0

    def test_carries_everything_along(self):
        whole = RankingDataset(
            np.eye(3),
            qid=[1, 2, 2],
            query_weights=[5, 6],
            document_weights=[1, 2, 3],
            comments=["x", "y", "z"],
            feature_names=["p", "q", "r"],
        )
        part = whole.subset([1])
        assert not part.has_labels
        assert part.query_weights.tolist() == [6]
        assert part.document_weights.tolist() == [2, 3]
        assert list(part.comments) == ["y", "z"]
        assert part.feature_names == ("p", "q", "r")

    @pytest.mark.parametrize(
        ("queries", "message"),
        [
            ([3], "queries must be from 0 to 2, got 3"),
            ([0, -4], "queries must be from 0 to 2, got -4"),
            ([True], "one value per query: 3 queries, 1 values"),
            ([0.5], "whole numbers or a mask, got float64"),
            (1, "whole numbers or a mask"),
            (["a"], "whole numbers or a mask"),
        ],
    )
    def test_mistakes(self, queries, message):
        with pytest.raises(DataError, match=message):
            self.whole.subset(queries)


class TestReplace:
    def test_other_features_and_weights(self):
        whole = RankingDataset(np.eye(3), [1, 2, 3], qid=[1, 2, 1], feature_names=["a", "b", "c"])
        changed = whole.replace(features=np.ones((3, 2), dtype=np.float32), document_weights=[7, 8, 9])
        assert changed.features.shape == (3, 2)
        assert changed.feature_names is None
        assert changed.document_weights.tolist() == [7, 9, 8]  # weights come in the user's order
        assert whole.document_weights is None
        assert whole.features.shape == (3, 3)
        assert changed.labels is whole.labels

    def test_weights_are_checked(self):
        with pytest.raises(DataError, match=r"query_weights must have shape \(1,\), got \(2,\)"):
            RankingDataset(np.eye(2)).replace(query_weights=[1, 2])


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"y": [1]}, r"y must have one number per row: 2 rows, got shape \(1,\)"),
            ({"y": [[1], [2]]}, r"y must have one number per row: 2 rows, got shape \(2, 1\)"),
            ({"y": [1, np.nan]}, "y must be finite: row 1 is nan. Leave out rows without a judgment"),
            ({"y": [np.inf, 1]}, "y must be finite: row 0 is inf"),
            ({"y": ["good", "bad"]}, "y must hold numbers"),
            ({"y": [1j, 2]}, "y must hold numbers, it holds complex128"),
            ({"y": np.ma.masked_greater([1.0, 5.0], 3)}, "y must be finite: row 1 is nan"),
            ({"qid": [1, 2], "group": [1, 1]}, "qid and group both say which rows belong to a query"),
            ({"group": [3]}, "the sizes add up to 3, X has 2 rows"),
            ({"query_weights": [1, 2]}, r"query_weights must have shape \(1,\), got \(2,\)"),
            ({"document_weights": [1, -1]}, "document_weights must be finite and not negative: number 1 is -1"),
            ({"document_weights": [np.nan, 1]}, "document_weights must be finite and not negative: number 0 is nan"),
            ({"document_weights": ["a", "b"]}, "document_weights must hold numbers"),
            ({"comments": ["one"]}, "comments must have one text per row: 2 rows, 1 comments"),
            ({"comments": ["one", 2]}, "comments must be texts: row 1 is 2, of type int"),
            ({"feature_names": ["a"]}, "one name per feature: 3 features, 1 names"),
            ({"feature_names": ["a", "b", "a"]}, "feature_names must differ: 'a' appears more than once"),
        ],
    )
    def test_each_says_what_is_wrong(self, options, message):
        with pytest.raises(DataError, match=message):
            RankingDataset(np.ones((2, 3)), **options)

    def test_comments_may_come_one_at_a_time(self):
        dataset = RankingDataset(np.ones((2, 1)), comments=(text for text in ("é", "")))
        assert list(dataset.comments) == ["é", ""]


def test_joined_datasets_keep_queries_weights_and_ids() -> None:
    first = RankingDataset(np.eye(3), [1, 0, 2], qid=[7, 5, 7], feature_names=["a", "b", "c"])
    second = RankingDataset(np.ones((2, 3)), [0, 1], qid=[7, 7], query_weights=[3.0])
    whole = first.joined(second)
    assert whole.query_ids.tolist() == [7, 5, 7]
    assert whole.query_sizes.tolist() == [2, 1, 2]
    assert whole.labels.tolist() == [1, 2, 0, 0, 1]
    assert whole.query_weights.tolist() == [1, 1, 3]
    assert whole.feature_names == ("a", "b", "c")
    rows = [np.eye(3)[0], np.eye(3)[2], np.eye(3)[1], np.ones(3), np.ones(3)]
    np.testing.assert_array_equal(whole.features, rows)
    both = RankingDataset(sparse.csr_matrix(np.eye(3)), [1, 0, 2]).joined(second)
    assert both.is_sparse
    assert both.n_docs == 5
    with pytest.raises(DataError, match="3 and 2 features"):
        first.joined(RankingDataset(np.ones((1, 2)), [1]))
