"""`read`, `write` and `convert`: every format there and back, told by name or by content."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import rankwell
from rankwell.data.dataset import RankingDataset
from rankwell.data.files import convert, read, write
from rankwell.errors import DataError, ParameterError

NAMES = [
    "data.txt",
    "data.svm",
    "data.letor.gz",
    "data.dat.bz2",
    "data.TXT.zst",
    "data.parquet",
    "data.feather",
    "data.arrow",
    "data.csv",
    "data.csv.gz",
    "data.csv.zst",
]
TABLES = ["data.parquet", "data.feather", "data.csv"]
# The largest and smallest float32, subnormals, and the one number whose fewest digits round wrongly through float64.
AWKWARD = [3.4028235e38, -3.4028235e38, 1.1754944e-38, 1e-45, 7.038531e-26, -0.0, 0.1, 16777217, 1e-5, np.nan]


def make_dataset(**changes: object) -> RankingDataset:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(40, len(AWKWARD))).astype(np.float32)
    features[7] = AWKWARD
    arguments: dict[str, object] = {
        "X": features,
        "y": generator.integers(0, 5, size=40) / 4,
        "qid": np.repeat([3, 1, 2, 10], 10),
        "comments": [f'doc {row}, "quoted" ü' if row % 3 else "" for row in range(40)],
    }
    arguments.update(changes)
    return RankingDataset(arguments.pop("X"), arguments.pop("y"), **arguments)  # type: ignore[arg-type]


def assert_same(one: RankingDataset, other: RankingDataset) -> None:
    missing = np.isnan(other.dense_features())
    np.testing.assert_array_equal(np.isnan(one.dense_features()), missing)
    np.testing.assert_array_equal(
        one.dense_features().view(np.uint32)[~missing], other.dense_features().view(np.uint32)[~missing]
    )
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.query_ptr, other.query_ptr)
    assert one.query_ids.tolist() == other.query_ids.tolist()
    np.testing.assert_array_equal(one.to_user_order(np.arange(len(one))), other.to_user_order(np.arange(len(other))))
    assert (one.comments is None) == (other.comments is None)
    assert one.comments is None or list(one.comments) == list(other.comments or [])


@pytest.mark.parametrize("name", NAMES)
def test_everything_comes_back(tmp_path: Path, name: str) -> None:
    dataset = make_dataset()
    write(dataset, tmp_path / name)
    back = read(tmp_path / name)
    assert_same(back, dataset)
    assert back.query_ids.dtype == np.int64
    assert back.features.flags.c_contiguous
    assert back.feature_names is None
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["data.txt", *TABLES])
def test_queries_with_names_and_rows_in_any_order_come_back(tmp_path: Path, name: str) -> None:
    dataset = make_dataset(qid=[f"query-{row * 7 % 5}" for row in range(40)])
    assert dataset.doc_idx is not None
    write(dataset, tmp_path / name)
    assert_same(read(tmp_path / name), dataset)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", *TABLES])
def test_names_of_features_come_back(tmp_path: Path, name: str) -> None:
    names = tuple(f"bm25 of field {number}, é" for number in range(len(AWKWARD)))
    write(make_dataset(feature_names=names), tmp_path / name)
    assert read(tmp_path / name).feature_names == names


@pytest.mark.parametrize("name", ["data.parquet", "data.feather"])
def test_names_that_look_like_none_come_back(tmp_path: Path, name: str) -> None:
    names = tuple(f"f{number + 1}" for number in range(len(AWKWARD)))
    write(make_dataset(feature_names=names), tmp_path / name)
    assert read(tmp_path / name).feature_names == names


@pytest.mark.parametrize("name", ["data.parquet", "data.feather"])
@pytest.mark.parametrize("qid", [np.repeat([3, 1, 2, 10], 10), np.arange(40) % 4])
def test_weights_come_back(tmp_path: Path, name: str, qid: np.ndarray) -> None:
    query_weights, document_weights = np.array([0.5, 2, 0, 1]), np.linspace(0, 1, 40)
    dataset = make_dataset(qid=qid, query_weights=query_weights, document_weights=document_weights)
    write(dataset, tmp_path / name)
    back = read(tmp_path / name)
    assert_same(back, dataset)
    np.testing.assert_array_equal(back.query_weights, query_weights)
    np.testing.assert_array_equal(back.document_weights, dataset.document_weights)


@pytest.mark.parametrize("name", ["data.txt", "data.csv"])
def test_weights_have_no_place_in_text(tmp_path: Path, name: str) -> None:
    dataset = make_dataset(document_weights=np.ones(40))
    write(dataset, tmp_path / name)
    back = read(tmp_path / name)
    assert_same(back, dataset)
    assert back.document_weights is None


@pytest.mark.parametrize("name", TABLES)
def test_data_without_labels_stays_so(tmp_path: Path, name: str) -> None:
    write(make_dataset(y=None), tmp_path / name)
    assert not read(tmp_path / name).has_labels


@pytest.mark.parametrize("name", ["data.txt", *TABLES])
def test_sparse_features_come_back_with_their_width(tmp_path: Path, name: str) -> None:
    matrix = sparse.csr_matrix((np.array([1, 2, 3], dtype=np.float32), ([0, 0, 2], [3, 1, 0])), shape=(3, 6))
    dataset = RankingDataset(matrix, [0, 1, 2], qid=[1, 1, 1])
    write(dataset, tmp_path / name)
    np.testing.assert_array_equal(read(tmp_path / name).features, matrix.toarray())


def test_sparse_text_names_only_what_is_there_and_the_last_feature_once(tmp_path: Path) -> None:
    matrix = sparse.csr_matrix((np.array([1, 2, 3], dtype=np.float32), ([0, 0, 2], [3, 1, 0])), shape=(3, 6))
    write(RankingDataset(matrix, [0, 1, 2], qid=[1, 1, 1]), tmp_path / "data.txt")
    assert (tmp_path / "data.txt").read_text() == "0 qid:1 2:2 4:1 6:0\n1 qid:1\n2 qid:1 1:3\n"


def test_what_text_looks_like(tmp_path: Path) -> None:
    dataset = RankingDataset([[0.5, 0], [1e-7, np.nan]], [2, 0.25], qid=["a", "b"], comments=["docid = 1", ""])
    write(dataset, tmp_path / "data.txt")
    assert (tmp_path / "data.txt").read_text() == "2 qid:a 1:0.5 2:0 #docid = 1\n0.25 qid:b 1:1e-7 2:nan\n"


def test_the_one_number_whose_fewest_digits_mislead_is_written_longer(tmp_path: Path) -> None:
    number = np.array([363742205], dtype=np.uint32).view(np.float32)
    assert np.float32(float(str(number[0]))) != number[0]
    write(RankingDataset(number.reshape(1, 1)), tmp_path / "data.txt")
    assert read(tmp_path / "data.txt").features[0, 0] == number[0]


@settings(max_examples=40)
@given(
    features=hnp.arrays(np.float32, (4, 3), elements=st.floats(allow_infinity=False, width=32)),
    labels=hnp.arrays(np.float64, 4, elements=st.floats(allow_nan=False, allow_infinity=False)),
    qid=st.lists(st.sampled_from(["a", "é", "7", "x:y"]), min_size=4, max_size=4),
    comments=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), min_size=4, max_size=4),
    name=st.sampled_from(["data.txt", *TABLES]),
)
def test_any_dataset_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    features: np.ndarray,
    labels: np.ndarray,
    qid: list[str],
    comments: list[str],
    name: str,
) -> None:
    path = tmp_path_factory.mktemp("any") / name
    if name == "data.txt":
        # Text cannot tell a comment's outer blanks from its own, nor the text "7" from 7 where all are numbers.
        comments = [comment.strip(" \t\r\v\f") for comment in comments]
        qid = ["a", *qid[1:]]
    elif name == "data.csv":
        qid = ["a", *qid[1:]]
    dataset = RankingDataset(features, labels, qid=qid, comments=comments)
    write(dataset, path)
    back = read(path)
    if back.comments is None:
        assert not any(comments)
        back = RankingDataset(features, labels, qid=qid, comments=comments)
    assert_same(back, dataset)


@pytest.mark.parametrize("n_docs", [0, 3])
@pytest.mark.parametrize("name", ["data.parquet", "data.feather"])
@pytest.mark.parametrize("n_features", [0, 2])
def test_nothing_comes_back_as_nothing(tmp_path: Path, name: str, n_docs: int, n_features: int) -> None:
    write(
        RankingDataset(np.zeros((n_docs, n_features), np.float32), np.zeros(n_docs), qid=[1] * n_docs), tmp_path / name
    )
    assert read(tmp_path / name).features.shape == (n_docs, n_features)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", "data.parquet", "data.feather", "data.csv"])
def test_a_file_without_a_known_ending_is_recognised_by_its_content(tmp_path: Path, name: str) -> None:
    dataset = make_dataset()
    write(dataset, tmp_path / name)
    (tmp_path / name).rename(tmp_path / "mystery")
    assert_same(read(tmp_path / "mystery"), dataset)


@pytest.mark.parametrize("content", [b"", b"hello world\n", b"0.5\n0.25\n", b"\x89PNG\r\n", b"{\n"])
def test_a_file_that_is_none_of_them_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mystery").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot tell the format of .*mystery.*\.parquet.*pass format\."):
        read(tmp_path / "mystery")


def test_format_overrules_the_name(tmp_path: Path) -> None:
    dataset = make_dataset()
    write(dataset, tmp_path / "data.log", format="letor")
    assert_same(read(tmp_path / "data.log", format="letor"), dataset)
    write(dataset, tmp_path / "data.txt", format="feather")
    assert_same(read(tmp_path / "data.txt", format="feather"), dataset)
    with pytest.raises(ParameterError, match="format must be one of letor, parquet, feather, csv, got 'xml'"):
        read(tmp_path / "data.txt", format="xml")


def test_a_target_without_a_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not tell its format"):
        write(make_dataset(), tmp_path / "data.xyz")
    with pytest.raises(DataError, match="does not tell its format"):
        write(make_dataset(), tmp_path / "data.parquet.gz")
    assert os.listdir(tmp_path) == []


def test_absent_files_and_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*absent.txt: No such file or directory"):
        read(tmp_path / "absent.txt")
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        read(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*data.txt: "):
        write(make_dataset(), tmp_path / "file" / "data.txt")


@pytest.mark.parametrize("name", ["data.txt", "data.csv.gz", "data.feather", "data.parquet"])
def test_missing_folders_are_created(tmp_path: Path, name: str) -> None:
    path = tmp_path / "new" / "folder" / name
    write(make_dataset(), path)
    assert read(path).n_docs == make_dataset().n_docs
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["data.txt", "data.csv.gz", "data.feather"])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, name: str) -> None:
    write(make_dataset(), tmp_path / name)
    before = (tmp_path / name).read_bytes()
    broken = make_dataset(comments=["a\nb"] * 40, qid=[{"no": "id"}.get] * 40)
    with pytest.raises(DataError, match="query id"):
        write(broken, tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_text_cannot_hold_everything(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="query id 'a b' cannot be written as LETOR text"):
        write(make_dataset(qid=["a b"] * 40), tmp_path / "data.txt")
    with pytest.raises(DataError, match="comment of row 39 contains a line break"):
        write(make_dataset(comments=["x"] * 39 + ["a\nb"]), tmp_path / "data.txt")


@pytest.mark.parametrize("source", ["data.txt", "data.txt.gz", "data.csv", "data.parquet"])
def test_convert(tmp_path: Path, source: str) -> None:
    dataset = make_dataset()
    write(dataset, tmp_path / source)
    assert_same(convert(tmp_path / source, tmp_path / "data.feather"), dataset)
    assert_same(read(tmp_path / "data.feather"), dataset)


def test_a_file_may_be_converted_onto_itself(tmp_path: Path) -> None:
    dataset = make_dataset()
    write(dataset, tmp_path / "data.feather")
    assert_same(convert(tmp_path / "data.feather", tmp_path / "data.feather"), dataset)
    assert_same(read(tmp_path / "data.feather"), dataset)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.zst", "data.csv", "data.feather", "data.parquet"])
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    dataset = make_dataset()
    write(dataset, tmp_path / name)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / name).read_bytes())))
    assert_same(read("-"), dataset)


def test_errors_name_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:x\n")))
    with pytest.raises(DataError, match="standard input, line 1, column 5"):
        read("-", format="letor")


def test_a_pipe(tmp_path: Path) -> None:
    code = "import rankwell, sys; d = rankwell.read('-'); rankwell.write(d, '-'); print(d, file=sys.stderr)"
    text = gzip.compress(b"1 qid:1 1:0.5\n" * 3)
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout == b"1 qid:1 1:0.5\n" * 3
    assert b"3 documents, 1 queries, 1 features" in done.stderr


def test_a_named_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "data.txt"
    os.mkfifo(fifo)
    with subprocess.Popen(["sh", "-c", f"printf '1 1:1\\n2 1:2\\n' > {fifo}"]):
        assert read(fifo).labels.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.feather"])
def test_n_features_is_demanded_of_a_table(tmp_path: Path, name: str) -> None:
    write(make_dataset(), tmp_path / name)
    assert read(tmp_path / name, n_features=len(AWKWARD)).n_features == len(AWKWARD)
    with pytest.raises(DataError, match="has 10 features, not n_features=11"):
        read(tmp_path / name, n_features=11)


def test_the_public_names() -> None:
    assert rankwell.read is read
    assert rankwell.write is write
