"""Reading LETOR / SVMlight text: the format's corners, errors, numbers equal to scikit-learn's."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import read
from rankwell.data.letor import MOST_FEATURES, BadLineError, read_letor
from rankwell.errors import DataError, ParameterError
from rankwell.streams.decompression import ByteStream


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write_text(content: bytes) -> Path:
        path = tmp_path / "data.txt"
        path.write_bytes(content)
        return path

    return write_text


def bits(features: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(features, dtype=np.float32).view(np.uint32)


def test_a_file(write) -> None:  # type: ignore[no-untyped-def]
    data = read(write(b"2 qid:10 1:0.5 3:-1e1 #docid = A\n0 qid:10 2:nan\n1.5 qid:11 3:+.25 # B \n"))
    np.testing.assert_array_equal(
        data.features, np.array([[0.5, 0, -10], [0, np.nan, 0], [0, 0, 0.25]], dtype=np.float32)
    )
    assert data.features.dtype == np.float32
    assert data.features.flags.c_contiguous
    assert data.labels.tolist() == [2, 0, 1.5]
    assert data.query_ids.tolist() == [10, 11]
    assert data.query_ptr.tolist() == [0, 2, 3]
    assert list(data.comments or []) == ["docid = A", "", "B"]
    assert data.skipped_lines == 0


def test_null_is_a_missing_value_as_in_letors_own_files(write) -> None:  # type: ignore[no-untyped-def]
    """MQ2007's unnormalised files have `40:NULL` for a document that a feature does not exist for."""
    data = read(write(b"2 qid:10 1:0.5 2:NULL 3:1 #docid = A\n0 qid:10 1:NULL 2:null 3:NULL\n"))
    np.testing.assert_array_equal(data.features, np.array([[0.5, np.nan, 1], [np.nan] * 3], dtype=np.float32))
    with pytest.raises(DataError, match=r"line 1, column 1: expected a label"):
        read(write(b"NULL qid:10 1:0.5\n"))


@pytest.mark.parametrize(
    "content",
    [
        b"1 qid:3 1:5 2:6\n2 qid:3 2:7\n",
        b"1 qid:3 1:5 2:6\n2 qid:3 2:7",
        b"\xef\xbb\xbf1 qid:3 1:5 2:6\n2 qid:3 2:7\n",
        b"1 qid:3 1:5 2:6\r\n2 qid:3 2:7\r\n",
        b"\n\n1 qid:3 1:5 2:6\n \t\n# nothing\n2 qid:3 2:7\n\n",
        b"1\tqid:3\t1:5\t2:6\t\n\x0b2  qid:3\x0c 2:7  \n",
        b"1.0 qid:3 2:6.000 1:5e0\n+2 qid:3 02:70e-1\n",
    ],
)
def test_the_same_rows_in_other_clothes(write, content: bytes) -> None:  # type: ignore[no-untyped-def]
    data = read(write(content))
    assert data.features.tolist() == [[5, 6], [0, 7]]
    assert data.labels.tolist() == [1, 2]
    assert data.query_ids.tolist() == [3]
    assert data.comments is None


def test_without_qid_all_rows_are_one_query(write) -> None:  # type: ignore[no-untyped-def]
    data = read(write(b"1 1:1\n-1 1:2\n"))
    assert data.query_ptr.tolist() == [0, 2]


def test_query_ids_that_are_not_integers_are_text(write) -> None:  # type: ignore[no-untyped-def]
    data = read(write("1 qid:7 1:1\n1 qid:über 1:2\n1 qid:007 1:3\n".encode()))
    assert data.query_ids.tolist() == ["7", "über", "007"]


def test_a_query_that_comes_back_is_brought_together(write) -> None:  # type: ignore[no-untyped-def]
    data = read(write(b"0 qid:a 1:1 #x\n1 qid:b 1:2 #y\n2 qid:a 1:3 #z\n"))
    assert data.query_ids.tolist() == ["a", "b"]
    assert data.features[:, 0].tolist() == [1, 3, 2]
    assert list(data.comments or []) == ["x", "z", "y"]
    assert data.to_user_order(data.labels).tolist() == [0, 1, 2]


def test_indices_count_from_zero_if_zero_is_in_any_row(write) -> None:  # type: ignore[no-untyped-def]
    assert read(write(b"1 1:5 2:6\n1 0:4\n")).features.tolist() == [[0, 5, 6], [4, 0, 0]]
    assert read(write(b"1 1:5 2:6\n1 0:4\n"), n_features=3).features.tolist() == [[0, 5, 6], [4, 0, 0]]
    with pytest.raises(DataError, match=r"index 0 is in the file.*index 2 is one more than n_features=2"):
        read(write(b"1 1:5 2:6\n1 0:4\n"), n_features=2)


def test_n_features_gives_absent_features_a_column(write) -> None:  # type: ignore[no-untyped-def]
    assert read(write(b"1 1:5\n"), n_features=3).features.tolist() == [[5, 0, 0]]
    with pytest.raises(BadLineError, match="expected a feature index of at most 3, found '4:1'"):
        read(write(b"1 4:1\n"), n_features=3)
    with pytest.raises(ParameterError, match="n_features must be at least 1, got 0"):
        read(write(b"1 4:1\n"), n_features=0)


def test_rows_without_features(write) -> None:  # type: ignore[no-untyped-def]
    data = read(write(b"1 qid:1\n2 qid:1 # c\n"))
    assert data.features.shape == (2, 0)
    assert list(data.comments or []) == ["", "c"]


def test_labels_of_any_size(write) -> None:  # type: ignore[no-untyped-def]
    assert read(write(b"-1e300 1:1\n1268 1:1\n0.1 1:1\n")).labels.tolist() == [-1e300, 1268, 0.1]


def test_numbers_the_kernel_leaves_to_the_reference(write) -> None:  # type: ignore[no-untyped-def]
    # Exactly between two float64 numbers, subnormal in float64, and with more zeros than an exponent needs.
    content = b"1 qid:x 1:9007199254740993.00000000000000000001 2:1e-310 3:1e-0000000001 # hard\n1 qid:x 1:2\n"
    data = read(write(content))
    assert data.features.tolist() == [[np.float32(9007199254740994.0), 0, np.float32(0.1)], [2, 0, 0]]
    assert list(data.comments or []) == ["hard", ""]
    assert data.query_ids.tolist() == ["x"]


@pytest.mark.parametrize(
    ("content", "line", "column", "found"),
    [
        (b"1 qid:1 1:1\n1 qid:1 1:abc 2:1\n", 2, 11, "'abc'"),
        (b"\n# c\n1 qid:1 1:1 2:inf\n", 3, 15, "'inf'"),
        (b"1 qid:1 1:1\n1 1:1\n", 2, 3, "'1:1'"),
        (b"1 1:1\n1 qid:1 1:1\n", 2, 3, "'qid:1'"),
        (b"1 1:1 1:2\n", 1, 7, "'1:2'"),
        (b"1 99999999999:1\n", 1, 3, "'99999999999:1'"),
        (b"1 1:1\x00\n", 1, 5, "'1\\x00'"),
        (b"1,2 1:1\n", 1, 1, "'1,2'"),
        (b"\x1f\n", 1, 1, "'\\x1f'"),
        (b"1\r2 1:1\r", 1, 3, "'2'"),
    ],
)
def test_a_bad_line_is_named(write, content: bytes, line: int, column: int, found: str) -> None:  # type: ignore[no-untyped-def]
    path = write(content)
    with pytest.raises(BadLineError) as caught:
        read(path)
    error = caught.value
    assert (error.file, error.line, error.column, error.found) == (str(path), line, column, found)
    assert str(error).startswith(f"{path}, line {line}, column {column}: expected {error.expected}, found {found}.")
    assert "on_bad_line='skip'" in str(error)


def test_bad_lines_are_left_out_and_counted(write, caplog: pytest.LogCaptureFixture) -> None:  # type: ignore[no-untyped-def]
    content = b"x\n1 qid:1 1:1 # a\n\n1 qid:1 9:y\n2 qid:1 2:2 # b\n1 5:5\n"
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        data = read(write(content), on_bad_line="skip")
    assert data.skipped_lines == 3
    assert data.features.tolist() == [[1, 0], [0, 2]]
    assert list(data.comments or []) == ["a", "b"]
    assert "3 bad lines were left out; the first is line 1, column 1: expected a label" in caplog.text


@pytest.mark.parametrize("content", [b"", b"\n", b"# only a comment\n", b"\xef\xbb\xbf"])
def test_a_file_without_rows_is_an_error(write, content: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="has no row"):
        read(write(content))


def test_a_file_of_nothing_but_bad_lines_is_an_error(write) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=r"has no row.*2 bad lines were left out.*line 1, column 1"):
        read(write(b"a\nb\n"), on_bad_line="skip")


def test_comments_may_be_left_out(write) -> None:  # type: ignore[no-untyped-def]
    assert read(write(b"1 1:1 # a\n"), comments=False).comments is None


def test_on_bad_line_is_checked(write) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError, match="on_bad_line must be 'error' or 'skip', got 'warn'"):
        read(write(b"1 1:1\n"), on_bad_line="warn")


def test_progress_is_told_in_bytes_on_disk(write) -> None:  # type: ignore[no-untyped-def]
    calls: list[tuple[int, int | None]] = []
    path = write(b"1 1:1\n" * 10)
    read(path, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(60, 60)]


def read_blocks(path: Path, block_bytes: int, **options: object) -> RankingDataset:
    with ByteStream(str(path)) as stream:
        return read_letor(stream, block_bytes=block_bytes, **options)  # type: ignore[arg-type]


def assert_same(one: RankingDataset, other: RankingDataset) -> None:
    np.testing.assert_array_equal(bits(one.features), bits(other.features))
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.query_ptr, other.query_ptr)
    assert one.query_ids.tolist() == other.query_ids.tolist()
    assert (one.comments is None) == (other.comments is None)
    assert one.comments is None or list(one.comments) == list(other.comments or [])
    assert one.skipped_lines == other.skipped_lines


def many_lines() -> bytes:
    """Rows that grow wider now and then, with gaps, bad lines, comments and text ids between them."""
    generator = np.random.default_rng(3)
    lines = []
    for number in range(400):
        indices = generator.permutation(5 + number // 20)[: generator.integers(1, 6)] + 1
        values = " ".join(f"{index}:{generator.normal():.6g}" for index in indices)
        lines.append(f"{number % 3} qid:{'q' if number > 200 else ''}{number // 7} {values} # doc {number}")
        if number % 13 == 0:
            lines.append(["", "# aside", "bad", "   "][number % 4])
    return "\n".join(lines).encode()


@pytest.mark.parametrize("block_bytes", [40, 100, 1000, 2**20])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_blocks_and_workers_do_not_change_the_result(write, block_bytes: int, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    path = write(many_lines())
    expected = read_blocks(path, 2**20, n_jobs=1, on_bad_line="skip")
    assert (expected.n_docs, expected.n_features) == (400, 24)
    assert_same(read_blocks(path, block_bytes, n_jobs=n_jobs, on_bad_line="skip"), expected)


@pytest.mark.parametrize("block_bytes", [40, 2**20])
def test_the_first_bad_line_of_the_file_is_reported(write, block_bytes: int) -> None:  # type: ignore[no-untyped-def]
    content = many_lines().replace(b"bad", b"1 1:x")
    line = content.split(b"\n").index(b"1 1:x") + 1
    path = write(content + b"\nx" * 50)
    with pytest.raises(BadLineError) as caught:
        read_blocks(path, block_bytes)
    assert caught.value.line == line


@pytest.mark.parametrize("block_bytes", [16, 60, 2**20])
def test_an_index_of_zero_late_in_the_file_shifts_what_was_read_before(write, block_bytes: int) -> None:  # type: ignore[no-untyped-def]
    content = b"".join(b"1 %d:%d\n" % (1 + row % 5, row) for row in range(50)) + b"2 0:7 9:8\n1 1:1\n"
    data = read_blocks(write(content), block_bytes)
    assert data.features.shape == (52, 10)
    for row in range(50):
        assert data.features[row].nonzero()[0].tolist() == ([1 + row % 5] if row else [])
        assert data.features[row, 1 + row % 5] == row
    assert data.features[50, [0, 9]].tolist() == [7, 8]
    assert data.features[51, 1] == 1


def test_a_bad_line_does_not_decide_how_wide_rows_are_or_where_indices_start(write) -> None:  # type: ignore[no-untyped-def]
    data = read(write(b"1 0:1 80:2 80:3\n1 1:4 2:5\n"), on_bad_line="skip")
    assert data.features.tolist() == [[4, 5]]


def test_a_line_longer_than_a_block_is_read(write) -> None:  # type: ignore[no-untyped-def]
    long_line = b"1 " + b" ".join(b"%d:%d" % (index, index) for index in range(1, 500))
    data = read_blocks(write(b"1 1:1\n" + long_line + b"\n1 2:2\n"), 64)
    assert data.features[1].tolist() == list(range(1, 500))
    assert data.features[2, 1] == 2


def test_a_line_that_is_too_long_is_a_bad_line(write) -> None:  # type: ignore[no-untyped-def]
    path = write(b"1 1:1\n" + b"9" * 300 + b"\n1 1:3\n" + b"8" * 1000)
    with pytest.raises(BadLineError, match=r"line 2, column 101: expected the end of the line within 100 bytes"):
        read_blocks(path, 64, longest_line=100)
    data = read_blocks(path, 64, longest_line=100, on_bad_line="skip")
    assert data.skipped_lines == 2
    assert data.features.tolist() == [[1], [3]]
    earlier = write(b"1 1:1\n" * 8 + b"1 1:x\n" + b"9" * 300)
    with pytest.raises(BadLineError, match="line 9, column 5"):
        read_blocks(earlier, 64, longest_line=100, n_jobs=2)
    whole = write(b"1 1:" + b"0" * 95 + b"5\n1 1:2\n")
    assert read_blocks(whole, 64, longest_line=100).features.tolist() == [[5], [2]]


def test_an_index_that_would_need_too_much_memory_is_refused(write, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("rankwell.data.row_storage.available_memory", lambda: 10_000)
    path = write(b"1 1:1\n" * 50 + b"1 60000:1\n" + b"1 2:2\n" * 10)
    with pytest.raises(DataError, match=r"61 rows of 60000 features need .* Feature index 60000 is in line 51"):
        read(path)
    with pytest.raises(BadLineError, match=f"at most {MOST_FEATURES}, found '65537:1'"):
        read(write(b"1 1:1\n1 65537:1\n"))


def test_many_blank_lines_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Compressed, so that rows are not counted first; a place for every line would be 20,000 times 2,000 bytes.
    import gzip

    monkeypatch.setattr("rankwell.data.row_storage.available_memory", lambda: 10_000_000)
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(b"1 500:1\n" + b" \n" * 20_000 + b"2 500:2\n"))
    with ByteStream(str(path)) as stream:
        data = read_letor(stream, block_bytes=4096)
    assert data.labels.tolist() == [1, 2]


@pytest.mark.parametrize("part", ["letor/MQ2007/S1.txt.gz", "letor/MQ2008/S3.txt.gz", "mslr-sample/vali.txt.gz"])
def test_real_collections_have_the_numbers_of_scikit_learn(shared_data: Path, part: str) -> None:
    path = shared_data / part
    data = read(path)
    features, labels, qids = load_svmlight_file(str(path), dtype=np.float32, query_id=True)
    np.testing.assert_array_equal(bits(data.features), bits(features.toarray()))
    np.testing.assert_array_equal(data.labels, labels)
    np.testing.assert_array_equal(data.qid_of_rows(), qids)


def test_comments_of_a_real_collection(shared_data: Path) -> None:
    data = read(shared_data / "letor/MQ2007/S1.txt.gz")
    assert data.comments is not None
    assert data.comments[0] == "docid = GX000-00-0000000 inc = 1 prob = 0.0246906"
    assert len(data.comments) == data.n_docs


def test_every_way_of_writing_a_number_gives_scikit_learns_float32(write) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(7)
    numbers = generator.normal(size=3000) * 10.0 ** generator.integers(-45, 38, size=3000)
    forms = ["%.6f", "%g", "%.17g", "%.25e", "%r", "%.3e", "%+.1f"]
    tokens = [forms[place % len(forms)] % float(np.float32(number)) for place, number in enumerate(numbers)]
    rows = [
        " ".join(f"{i + 1}:{token}" for i, token in enumerate(tokens[row : row + 30])) for row in range(0, 3000, 30)
    ]
    path = write("".join(f"1 qid:1 {row}\n" for row in rows).encode())
    features, _ = load_svmlight_file(str(path), dtype=np.float32)
    # The stored values: making the matrix dense would turn -0 into 0.
    np.testing.assert_array_equal(bits(read(path).features), bits(features.data).reshape(100, 30))
