"""Frames of pandas, Polars and Arrow become the same arrays."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from rankwell import DataError, RankingDataset
from rankwell.data.frames import column, columns_of_frame, is_frame

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

COLUMNS = {
    "label": [2, 0, 1, 0],
    "qid": ["b", "a", "b", "a"],
    "length": [1.5, None, 3.5, 4.5],
    "clicks": [1, 2, 3, 4],
    "name": ["w", "x", None, "z"],
}
MAKERS = {
    "pandas": pd.DataFrame,
    "pandas-nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas-arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "arrow-table": pa.table,
    "arrow-batch": pa.record_batch,
    "arrow-chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]),
}


@pytest.fixture(params=list(MAKERS))
def make(request):
    return MAKERS[request.param]


class TestEveryLibrary:
    def test_a_frame_with_labels_and_queries(self, make):
        dataset = RankingDataset.from_frame(make(COLUMNS), comment="name")
        assert dataset.feature_names == ("length", "clicks")
        assert dataset.query_ids.tolist() == ["b", "a"]
        assert dataset.labels.tolist() == [2, 1, 0, 0]
        np.testing.assert_array_equal(
            dataset.features, np.array([[1.5, 1], [3.5, 3], [np.nan, 2], [4.5, 4]], np.float32)
        )
        assert list(dataset.comments) == ["w", "", "x", "z"]
        assert dataset.to_user_order(dataset.labels).tolist() == [2, 0, 1, 0]

    def test_features_alone(self, make):
        dataset = RankingDataset(make({"a": [1, None], "b": [True, None], "c": [0.5, 2.5]}), qid=[1, 2])
        assert dataset.feature_names == ("a", "b", "c")
        np.testing.assert_array_equal(dataset.features, np.array([[1, 1, 0.5], [np.nan, np.nan, 2.5]], np.float32))
        assert dataset.features.dtype == np.float32
        assert dataset.features.flags.c_contiguous

    def test_chosen_features_in_the_order_given(self, make):
        dataset = RankingDataset.from_frame(make(COLUMNS), features=["clicks", "length"])
        assert dataset.feature_names == ("clicks", "length")
        assert dataset.features[:, 0].tolist() == [1, 3, 2, 4]

    def test_without_a_label_column_there_are_no_labels(self, make):
        dataset = RankingDataset.from_frame(make({"qid": [1, 1], "a": [1.0, 2.0]}))
        assert not dataset.has_labels
        assert dataset.feature_names == ("a",)

    def test_other_column_names(self, make):
        dataset = RankingDataset.from_frame(
            make({"grade": [1, 0], "session": [5, 5], "a": [1, 2]}), label="grade", qid="session"
        )
        assert dataset.labels.tolist() == [1, 0]
        assert dataset.feature_names == ("a",)

    def test_text_in_a_feature_column(self, make):
        with pytest.raises(
            DataError, match=r"feature column 'a' must hold numbers, it holds .*name the feature columns"
        ):
            RankingDataset(make({"a": ["x", "y"]}))

    def test_missing_column_lists_the_columns(self, make):
        with pytest.raises(DataError, match=r"there is no column 'qid'. The columns are label, a\."):
            RankingDataset.from_frame(make({"label": [1], "a": [1]}))

    def test_row_without_a_label(self, make):
        with pytest.raises(DataError, match="y must be finite: row 1 is nan"):
            RankingDataset.from_frame(make({"label": [1, None], "qid": [1, 1], "a": [1, 2]}))

    def test_no_rows(self, make):
        dataset = RankingDataset.from_frame(make({"label": np.empty(0), "qid": np.empty(0, int), "a": np.empty(0)}))
        assert (dataset.n_docs, dataset.n_queries, dataset.n_features) == (0, 0, 1)

    def test_recognised(self, make):
        assert is_frame(make({"a": [1]}))


class TestPandas:
    def test_columns_without_text_names(self):
        dataset = RankingDataset(pd.DataFrame(np.eye(3)))
        assert dataset.feature_names == ("0", "1", "2")
        np.testing.assert_array_equal(dataset.features, np.eye(3))

    def test_two_columns_of_one_name(self):
        with pytest.raises(DataError, match="there are 2 columns 'a'"):
            RankingDataset(pd.DataFrame(np.eye(2), columns=["a", "a"]))

    def test_categories_of_numbers(self):
        features, _ = columns_of_frame(pd.DataFrame({"a": pd.Categorical([3, None, 5])}))
        np.testing.assert_array_equal(features[:, 0], np.array([3, np.nan, 5], np.float32))

    def test_subclass(self):
        class Frame(pd.DataFrame):
            pass

        assert RankingDataset(Frame({"a": [1.0]})).feature_names == ("a",)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}),
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]).tz_localize("UTC")}),
        pa.table({"a": pa.array([1], pa.date32())}),
        pl.DataFrame({"a": [1]}).with_columns(pl.col("a").cast(pl.Date)),
        pd.DataFrame({"a": [1j]}),
    ],
)
def test_dates_and_complex_numbers_are_refused(frame):
    with pytest.raises(DataError, match="feature column 'a' must hold numbers"):
        RankingDataset(frame)


def test_overflow_of_float32_is_named():
    with pytest.raises(DataError, match="row 1, feature 0 is inf"):
        RankingDataset(pd.DataFrame({"a": [1.0, 1e300]}))


def test_column_keeps_its_type():
    assert column(pa.table({"qid": [2**60 + 1]}), "qid").tolist() == [2**60 + 1]


def test_arrays_are_not_frames():
    assert not any(is_frame(thing) for thing in (np.eye(2), [[1, 2]], None, pd.Series([1]), pl.Series([1])))
    with pytest.raises(DataError, match="frame must be a pandas or Polars data frame or an Arrow table, got ndarray"):
        RankingDataset.from_frame(np.eye(2))


def test_no_frame_library_is_imported():
    code = (
        "import sys, numpy, rankwell; rankwell.RankingDataset(numpy.eye(2)); "
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    listing = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert listing.strip() == "[]"
