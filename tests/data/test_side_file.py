"""LightGBM's side files with the sizes of queries."""

import gzip

import numpy as np
import pytest

from rankwell import DataError, read


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rank.train"
    path.write_text("0 1:0.5 3:2\n1 2:1\n2 1:3\n0 3:1\n")
    return path


def test_queries_come_from_the_side_file(rows):
    (rows.parent / "rank.train.query").write_text("1\n3\n\n")
    data = read(rows)
    assert data.query_sizes.tolist() == [1, 3]
    np.testing.assert_array_equal(data.labels, [0, 1, 2, 0])
    np.testing.assert_array_equal(data.features[0], np.float32([0.5, 0, 2]))


@pytest.mark.parametrize("side", ["rank.txt.query", "rank.txt.gz.query"])
def test_compressed_data_has_a_side_file_too(tmp_path, side):
    (tmp_path / "rank.txt.gz").write_bytes(gzip.compress(b"0 1:0.5\n1 1:1\n2 1:3\n0 1:1\n"))
    (tmp_path / side).write_text("1\n3\n")
    assert read(tmp_path / "rank.txt.gz").query_sizes.tolist() == [1, 3]


def test_without_it_all_rows_are_one_query(rows):
    assert read(rows).query_sizes.tolist() == [4]


def test_queries_in_the_data_count(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 qid:1 1:0.5\n1 qid:2 1:1\n")
    (tmp_path / "train.txt.query").write_text("2\n")
    assert read(path).query_sizes.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\n2\n", r"rank.train.query has queries of 3 rows in all, but .*rank.train has 4 rows"),
        ("1\nx3\n", r"rank.train.query, line 2: must be the number of rows of a query, got 'x3'"),
    ],
)
def test_a_side_file_that_does_not_fit(rows, text, said):
    (rows.parent / "rank.train.query").write_text(text)
    with pytest.raises(DataError, match=said):
        read(rows)
