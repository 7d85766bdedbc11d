"""Which rows belong to which query: stably, in the order of first appearance, for ids of any kind."""

import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwell import DataError
from rankwell.data.grouping import group_by_qid, group_by_sizes

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ids_of_any_kind = st.one_of(
    st.lists(st.integers(0, 6), max_size=60),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20),
    st.lists(st.text("ab", max_size=2), max_size=60),
    st.lists(st.sampled_from([0.0, -0.0, 1.5, 1e300]), max_size=60),
    st.lists(st.booleans(), max_size=30),
    st.lists(st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 4)), max_size=30),
)


class TestByQid:
    @settings(deadline=None)
    @given(ids_of_any_kind)
    def test_rows_of_a_query_come_together_stably(self, qid):
        query_ptr, query_ids, doc_idx = group_by_qid(qid, len(qid))
        rows_of = {}
        for row, query_id in enumerate(qid):
            rows_of.setdefault(query_id, []).append(row)
        order = np.arange(len(qid)) if doc_idx is None else doc_idx
        assert query_ids.tolist() == list(rows_of)
        got = [order[start:end].tolist() for start, end in itertools.pairwise(query_ptr)]
        assert got == list(rows_of.values())

    def test_by_hand(self):
        query_ptr, query_ids, doc_idx = group_by_qid(["b", "a", "b", "c", "a"], 5)
        assert query_ids.tolist() == ["b", "a", "c"]
        assert query_ptr.tolist() == [0, 2, 4, 5]
        assert doc_idx.tolist() == [0, 2, 1, 4, 3]

    def test_grouped_rows_stay_where_they_are(self):
        query_ptr, query_ids, doc_idx = group_by_qid([7, 7, 3, 3, 3], 5)
        assert (query_ptr.tolist(), query_ids.tolist(), doc_idx) == ([0, 2, 5], [7, 3], None)

    @pytest.mark.parametrize(
        "qid",
        [
            np.array([2, 1, 2], dtype=np.uint8),
            pd.Series([2, 1, 2], index=[9, 8, 7]),
            pd.Series([2, 1, 2], dtype="Int64"),
            pl.Series([2, 1, 2]),
            pa.array([2, 1, 2]),
            pa.chunked_array([[2], [1, 2]]),
            (2, 1, 2),
        ],
    )
    def test_containers_of_other_libraries(self, qid):
        query_ptr, query_ids, doc_idx = group_by_qid(qid, 3)
        assert (query_ptr.tolist(), query_ids.tolist(), doc_idx.tolist()) == ([0, 2, 3], [2, 1], [0, 2, 1])

    def test_numbers_and_texts_together(self):
        _, query_ids, _ = group_by_qid(np.array([1, "1", 1], dtype=object), 3)
        assert query_ids.tolist() == [1, "1"]

    def test_whole_numbers_beyond_int64_stay_apart(self):
        _, query_ids, _ = group_by_qid([2**63, 2**63 + 1, -1], 3)
        assert query_ids.tolist() == [2**63, 2**63 + 1, -1]

    @pytest.mark.parametrize(
        ("qid", "row"),
        [
            ([1.0, np.nan, 2.0], 1),
            ([1.0, 2.0, np.inf], 2),
            (["a", None, "b"], 1),
            (np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[D]"), 1),
            (pd.Series(["a", "b", None], dtype="string"), 2),
            (pd.Series([None, 1, 2], dtype="Int64"), 0),
            (pa.array([None, "a", "b"]), 0),
            (pl.Series([1, None, 2]), 1),
        ],
    )
    def test_a_row_without_a_query_is_named(self, qid, row):
        with pytest.raises(DataError, match=f"qid must name a query in every row: row {row} is"):
            group_by_qid(qid, 3)

    def test_wrong_length_and_shape(self):
        with pytest.raises(DataError, match=r"one query id per row: 3 rows, got shape \(2,\)"):
            group_by_qid([1, 2], 3)
        with pytest.raises(DataError, match=r"one query id per row: 2 rows, got shape \(2, 1\)"):
            group_by_qid([[1], [2]], 2)

    def test_ids_that_cannot_be_told_apart(self):
        lists = np.empty(2, dtype=object)
        lists[:] = [[1], [2, 3]]
        with pytest.raises(DataError, match="qid must hold hashable ids"):
            group_by_qid(lists, 2)


class TestBySizes:
    @given(st.lists(st.integers(0, 50), max_size=30))
    def test_offsets_are_the_running_sum(self, sizes):
        query_ptr, query_ids = group_by_sizes(sizes, sum(sizes))
        assert query_ptr.tolist() == [sum(sizes[:query]) for query in range(len(sizes) + 1)]
        assert query_ptr.dtype == np.int64
        assert query_ids.tolist() == list(range(len(sizes)))

    def test_none_is_one_query(self):
        query_ptr, query_ids = group_by_sizes(None, 4)
        assert (query_ptr.tolist(), query_ids.tolist()) == ([0, 4], [0])

    @pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
    def test_any_whole_number_type(self, dtype):
        query_ptr, _ = group_by_sizes(np.array([200, 200], dtype=np.int64).astype(dtype), 400)
        assert query_ptr.tolist() == [0, 200, 400]

    def test_wrong_sum(self):
        with pytest.raises(DataError, match="the sizes add up to 5, X has 6 rows"):
            group_by_sizes([2, 3], 6)

    def test_a_sum_that_wraps_around_in_int64_is_still_wrong(self):
        with pytest.raises(DataError, match="the sizes add up to 18446744073709551622, X has 6 rows"):
            group_by_sizes([2**62] * 4 + [6], 6)

    def test_negative_sizes(self):
        with pytest.raises(DataError, match="sizes of 0 or more: query 1 has -1"):
            group_by_sizes([4, -1], 3)

    @pytest.mark.parametrize("sizes", [[1.0, 2.0], 3, ["a"], [[1], [2]], [True, True]])
    def test_not_a_list_of_whole_numbers(self, sizes):
        with pytest.raises(DataError, match="group must be a list of whole numbers"):
            group_by_sizes(sizes, 3)
