"""LightGBM's side files with the sizes of queries and the weights of rows."""

import gzip

import numpy as np
import pytest

from rankwell import DataError, LambdaMART, read


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


def test_weights_come_from_the_side_file(rows, caplog):
    (rows.parent / "rank.train.query").write_text("1\n3\n")
    (rows.parent / "rank.train.weight").write_text("1\n0.5\n\n2e0\n0\n")
    with caplog.at_level("INFO", "rankwell"):
        data = read(rows)
    assert data.query_sizes.tolist() == [1, 3]
    assert data.document_weights.tolist() == [1.0, 0.5, 2.0, 0.0]
    assert "weights of the rows come from" in caplog.text
    assert caplog.text.strip().endswith("rank.train.weight")


def test_weights_follow_their_rows(tmp_path):
    """Rows of a query need not be neighbours."""
    path = tmp_path / "train.txt"
    path.write_text("0 qid:1 1:0.5\n1 qid:2 1:1\n2 qid:1 1:3\n")
    (tmp_path / "train.txt.weight").write_text("1\n2\n3\n")
    data = read(path)
    assert data.labels.tolist() == [0.0, 2.0, 1.0]
    assert data.document_weights.tolist() == [1.0, 3.0, 2.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\n2\n", r"rank.train.weight must have a weight for each row: it has 2, but .*rank.train has 4 rows\."),
        ("1\n-2\n1\n1\n", r"rank.train.weight, line 2: must be the weight of a row, 0 or more, got '-2'"),
        ("1\nnan\n1\n1\n", r"rank.train.weight, line 2: must be the weight of a row, 0 or more, got 'nan'"),
        ("1\nx\n1\n1\n", r"rank.train.weight, line 2: must be the weight of a row, 0 or more, got 'x'"),
    ],
)
def test_weights_that_do_not_fit(rows, text, said):
    (rows.parent / "rank.train.weight").write_text(text)
    with pytest.raises(DataError, match=said):
        read(rows)


def test_weights_are_those_of_the_trainer(rows):
    """As the same weights given in Python; and a weight of 2 is not one of 1."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(60, 2)).round(3)
    labels = np.clip(np.round(values[:, 0] + generator.normal(size=60)), 0, 2)
    lines = (f"{label:g} 1:{a} 2:{b}\n" for label, (a, b) in zip(labels, values.tolist(), strict=True))
    rows.write_text("".join(lines))
    (rows.parent / "rank.train.query").write_text("20\n40\n")
    plain = read(rows)
    weights = generator.integers(0, 3, size=60)
    (rows.parent / "rank.train.weight").write_text("".join(f"{weight}\n" for weight in weights))
    ranker = LambdaMART(n_rounds=3, min_docs_leaf=1, min_hessian_leaf=0.0)
    weighted = ranker.fit(read(rows)).predict(plain)
    np.testing.assert_array_equal(weighted, ranker.fit(plain.replace(document_weights=weights)).predict(plain))
    assert np.abs(weighted - ranker.fit(plain).predict(plain)).max() > 0.01


CSV = "label,a,b\n0,0.5,2\n1,0,1\n2,3,0\n0,0,1\n"


@pytest.mark.parametrize("name", ["rank.csv", "rank.csv.gz"])
def test_csv_has_side_files_too(tmp_path, name):
    content = CSV.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "rank.csv.query").write_text("1\n3\n")
    (tmp_path / "rank.csv.weight").write_text("1\n0.5\n2\n0\n")
    for qid in ("qid", None):
        data = read(tmp_path / name, qid=qid)
        assert data.query_sizes.tolist() == [1, 3]
        assert data.document_weights.tolist() == [1, 0.5, 2, 0]
        assert data.feature_names == ("a", "b")
        np.testing.assert_array_equal(data.labels, [0, 1, 2, 0])


def test_a_csv_column_of_queries_counts(tmp_path):
    path = tmp_path / "rank.csv"
    path.write_text("label,qid,a\n0,x,1\n1,y,2\n")
    (tmp_path / "rank.csv.query").write_text("2\n")
    assert read(path).query_ids.tolist() == ["x", "y"]
    with pytest.raises(DataError, match="has no column 'query'"):
        read(path, qid="query")


def test_csv_without_queries_anywhere_is_refused(tmp_path):
    path = tmp_path / "rank.csv"
    path.write_text(CSV)
    (tmp_path / "rank.csv.weight").write_text("1\n" * 4)
    with pytest.raises(DataError, match="has no column 'qid'"):
        read(path)


@pytest.mark.parametrize("name", ["rank.csv", "rank.train"])
def test_side_files_that_are_not_read_are_told(tmp_path, caplog, name):
    path = tmp_path / name
    path.write_text("label,qid,a\n0,1,1\n1,1,2\n" if name == "rank.csv" else "0 qid:1 1:1\n1 qid:1 1:2\n")
    read(path)
    assert caplog.text == ""
    (tmp_path / f"{name}.init").write_text("0\n0\n")
    (tmp_path / f"{name}.position").write_text("1\n2\n")
    read(path)
    assert f"{name}.init is not read: LightGBM takes from it scores to start from; continue from" in caplog.text
    assert f"{name}.position is not read: LightGBM takes from it positions of shown documents" in caplog.text


def test_indices_from_0_stay_known(rows):
    rows.write_text("0 0:0.5 3:2\n1 2:1\n2 1:3\n0 3:1\n")
    (rows.parent / "rank.train.query").write_text("1\n3\n")
    data = read(rows)
    assert (data.first_index, data.query_sizes.tolist()) == (0, [1, 3])
