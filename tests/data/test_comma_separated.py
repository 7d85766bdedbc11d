"""CSV: columns by their names, missing values, fields that are no numbers."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import read, write
from rankwell.errors import DataError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def read_text(folder: Path, text: str, **options: object) -> RankingDataset:
    (folder / "data.csv").write_text(text, encoding="utf-8", newline="")
    return read(folder / "data.csv", **options)  # type: ignore[arg-type]


def test_a_file(tmp_path: Path) -> None:
    text = 'a,qid,label,comment,b\n1.5,x,2,"one, ""two""",3\n, y,0,,-1e-3\n'
    data = read_text(tmp_path, text)
    np.testing.assert_array_equal(data.features, np.array([[1.5, 3], [np.nan, -0.001]], dtype=np.float32))
    assert data.feature_names == ("a", "b")
    assert data.query_ids.tolist() == ["x", " y"]
    assert data.labels.tolist() == [2, 0]
    assert list(data.comments or []) == ['one, "two"', ""]


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "NA", "null", " ", "None"])
def test_missing_values(tmp_path: Path, missing: str) -> None:
    data = read_text(tmp_path, f"qid,a,b\n1,{missing},+2\n1, 3 ,4\n")
    np.testing.assert_array_equal(data.features, np.array([[np.nan, 2], [3, 4]], dtype=np.float32))
    assert not data.has_labels


def test_integers_that_turn_into_fractions_late(tmp_path: Path) -> None:
    rows = "".join(f"{row // 100},{row % 5},1\n" for row in range(200_000))
    data = read_text(tmp_path, "qid,label,a\n" + rows + "2001,0.5,0.25\n")
    assert data.n_docs == 200_001
    assert data.features[-1, 0] == 0.25
    assert data.labels[-1] == 0.5
    assert data.query_ids.dtype == np.int64


def test_a_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    data = read_text(tmp_path, "\ufeffqid,label,a\r\n1,2,3\r\n")
    assert (data.query_ids.tolist(), data.labels.tolist(), data.features.tolist()) == ([1], [2], [[3]])


def test_line_breaks_in_comments_come_back(tmp_path: Path) -> None:
    dataset = RankingDataset([[1], [2]], [1, 2], qid=[1, 1], comments=["a\nb", 'c"\r\n,d'])
    write(dataset, tmp_path / "data.csv")
    assert list(read(tmp_path / "data.csv").comments or []) == ["a\nb", 'c"\r\n,d']


def test_other_programs_can_read_what_is_written(tmp_path: Path) -> None:
    dataset = RankingDataset([[0.1, np.nan]], [2], qid=["q"], comments=["a,b"], feature_names=["x", "y"])
    write(dataset, tmp_path / "data.csv")
    content = (tmp_path / "data.csv").read_bytes()
    assert content == b'"label","qid","x","y","comment"\n2,"q",0.1,nan,"a,b"\n'
    assert pd.read_csv(io.BytesIO(content))["x"].tolist() == [0.1]
    assert pl.read_csv(content)["comment"].to_list() == ["a,b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,label,a\n1,1,1\n1,1,x\n", r"row 2 behind the header, column 'a': expected a number.*found 'x'"),
        ("qid,label,a\n1,,1\n", r"row 1 behind the header, column 'label': expected a finite number, found ''"),
        ("qid,label,a\n1,1,inf\n", r"column 'a': expected a number that float32 can hold, or nothing, found 'inf'"),
        ("qid,label,a\n1,1,1e39\n", r"column 'a'.*found '1e39'"),
        ("qid,label,a\n,1,1\n", r"column 'qid': expected a query id, found ''"),
        ("qid,label,a\n1,1,1_000\n", r"found '1_000'"),
        ("qid,label,a\n1,1\n", r"Expected 3 columns, got 2"),
        ("label,a\n1,1\n", r"has no column 'qid'\. Say with qid which of its columns it is: label, a"),
        ("qid,a,a\n1,1,1\n", r"2 columns 'a'"),
        ("", r"must start with a line of column names"),
        ("qid,label,a\n", r"holds no rows"),
    ],
)
def test_errors_say_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_text(tmp_path, text)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"qid,a\n1,\xff\n")
    with pytest.raises(DataError, match=r"data\.csv must be UTF-8: invalid start byte at byte 8"):
        read(tmp_path / "data.csv")
    (tmp_path / "data.csv").write_bytes(b"qid,\xff\n1,1\n")
    with pytest.raises(DataError, match="must start with a line of column names"):
        read(tmp_path / "data.csv")


def test_bad_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    text = "qid,label,a\n1,1,1\n1,1,x\n1,1\n,2,2\n1,z,3\n2,0,4\n1,1,inf\n"
    data = read_text(tmp_path, text, on_bad_line="skip")
    assert data.skipped_lines == 5
    assert data.features.tolist() == [[1], [4]]
    assert data.query_ids.tolist() == [1, 2]


def test_damaged_csv_is_an_error(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    whole = b'qid,label,a,b,comment\n1,0,1.5,2,"x"\n1,1,2.5,,""\n2,0,1e-3,4,"y, z"\n'
    path = tmp_path / "data.csv"
    n_errors = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(int(generator.integers(1, 4))):
            damaged[int(generator.integers(len(damaged)))] = int(generator.integers(256))
        path.write_bytes(damaged)
        try:
            assert read(path, on_bad_line="skip").n_docs <= 4
        except DataError:
            n_errors += 1
    assert n_errors > 20
