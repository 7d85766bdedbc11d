"""Files of queries and judgments, and what is wrong in bad ones."""

import gzip

import pytest

from rankwell.errors import DataError
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import QueryText, read_queries


def test_queries_are_read(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("\ufeff1\tred fox\n\n b \tdog\tand cat \n", encoding="utf-8")
    assert read_queries(path) == [QueryText("1", "red fox"), QueryText("b", "dog\tand cat")]
    compressed = tmp_path / "queries.tsv.gz"
    compressed.write_bytes(gzip.compress(b"7\tx\r\n"))
    assert read_queries(compressed) == [QueryText("7", "x")]


def test_operators_of_prose_mean_nothing(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text('1\tthe "red fox" -- e-mail +1\n')
    assert read_queries(path) == [QueryText("1", 'the "red fox" -- e-mail +1')]
    assert read_queries(path, operators=False) == [QueryText("1", "the  red fox     e mail  1")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\tred\nno tab\n", "line 2 must be a query's id, a tab and its text, got b'no tab'"),
        (b"\tred\n", "line 1 must be a query's id"),
        (b"1\ta\n2\tb\n1\tc\n", "line 3 repeats the id '1' of line 1"),
        (b"1\t\xff\n", "line 1 is not UTF-8"),
        (b"\n", "contains no query"),
    ],
)
def test_bad_queries_are_refused(tmp_path, content, message):
    path = tmp_path / "queries.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_queries(path)


def test_judgments_are_read(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("1 0 d1 2\n2\tQ0\td1\t-1\n\n1 0 d2 0\n1 0 d1 2\n")
    assert read_qrels(path) == {"1": {"d1": 2, "d2": 0}, "2": {"d1": -1}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 0 d1\n", "line 1 must be: query iteration document relevance, got b'1 0 d1'"),
        (b"1 0 d1 1\n1 0 d1 2\n", "line 2 judges document 'd1' of query '1' as 2, an earlier line as 1"),
        (b"1 0 d1 high\n", "line 1: the relevance must be a finite number, got 'high'"),
        (b"1 0 d1 nan\n", "line 1: the relevance must be a finite number, got 'nan'"),
        (b"1 0 \xff 1\n", "line 1 is not UTF-8"),
        (b"", "contains no judgment"),
    ],
)
def test_bad_judgments_are_refused(tmp_path, content, message):
    path = tmp_path / "qrels.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_qrels(path)
