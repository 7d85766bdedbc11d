"""Parquet and Feather: mapped into memory, written by other programs, damaged."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import read, write
from rankwell.errors import DataError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

both = pytest.mark.parametrize("suffix", ["parquet", "feather"])


def write_table(path: Path, table: pyarrow.Table) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path)


def large_dataset() -> RankingDataset:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(20_000, 100)).astype(np.float32)
    features[5, 5] = np.nan
    return RankingDataset(
        features,
        generator.integers(0, 5, 20_000),
        qid=np.repeat(np.arange(200), 100),
        comments=[f"document {row}" for row in range(20_000)],
    )


def mapped_file(address: int) -> str:
    """The file whose mapping contains the address, according to the system."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            start, end = (int(edge, 16) for edge in line.split()[0].split("-"))
            if start <= address < end:
                return line.split(maxsplit=5)[5].strip() if len(line.split(maxsplit=5)) == 6 else ""
    return ""


def test_feather_is_mapped_into_memory_and_never_copied(tmp_path: Path) -> None:
    path = tmp_path / "data.feather"
    write(large_dataset(), path)
    gc.collect()
    before = pyarrow.total_allocated_bytes()
    data = read(path)
    assert pyarrow.total_allocated_bytes() - before < 100_000
    assert not data.features.flags.writeable
    assert data.features.flags.c_contiguous
    for array in (data.features, data.labels, data.comments.buffer, data.comments.offsets):  # type: ignore[union-attr]
        assert mapped_file(array.ctypes.data) == str(path)
    last = data.features[-1:]
    assert mapped_file(last.ctypes.data + last.nbytes - 1) == str(path)


def test_a_mapped_dataset_outlives_its_file_name(tmp_path: Path) -> None:
    dataset = large_dataset()
    write(dataset, tmp_path / "data.feather")
    data = read(tmp_path / "data.feather")
    (tmp_path / "data.feather").unlink()
    gc.collect()
    np.testing.assert_array_equal(data.features, dataset.features)


def test_feather_can_be_read_into_memory_instead(tmp_path: Path) -> None:
    dataset = large_dataset()
    write(dataset, tmp_path / "data.feather")
    data = read(tmp_path / "data.feather", mmap=False)
    np.testing.assert_array_equal(data.features, dataset.features)
    assert mapped_file(data.features.ctypes.data) != str(tmp_path / "data.feather")


def test_other_programs_can_read_what_is_written(tmp_path: Path) -> None:
    dataset = RankingDataset(
        [[1, np.nan], [3, 4]], [2, 0], qid=[7, 8], comments=["a", "b"], feature_names=["bm25", "age"]
    )
    write(dataset, tmp_path / "data.parquet")
    frame = pd.read_parquet(tmp_path / "data.parquet")
    assert frame.columns.tolist() == ["label", "qid", "bm25", "age", "comment"]
    assert frame["bm25"].tolist() == [1, 3]
    assert frame["qid"].tolist() == [7, 8]
    write(dataset, tmp_path / "data.feather")
    polars_frame = pl.read_ipc(tmp_path / "data.feather")
    assert polars_frame["features"].to_list()[1] == [3, 4]
    assert polars_frame["comment"].to_list() == ["a", "b"]


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_feather_of_pandas(tmp_path: Path, compression: str) -> None:
    frame = pd.DataFrame({"a": [1.5, np.nan], "qid": ["x", "y"], "b": [3, 4], "label": [1, 0]})
    frame.to_feather(tmp_path / "data.feather", compression=compression)
    data = read(tmp_path / "data.feather")
    np.testing.assert_array_equal(data.features, np.array([[1.5, 3], [np.nan, 4]], dtype=np.float32))
    assert data.feature_names == ("a", "b")
    assert data.query_ids.tolist() == ["x", "y"]
    assert data.labels.tolist() == [1, 0]


def test_tables_of_polars(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"label": [1, 0], "qid": ["x", "y"], "a": [1.5, None], "flag": [True, None], "comment": ["c", None]},
        schema_overrides={"qid": pl.Categorical},
    )
    frame.write_parquet(tmp_path / "data.parquet")
    frame.write_ipc(tmp_path / "data.feather")
    for name in ("data.parquet", "data.feather"):
        data = read(tmp_path / name)
        np.testing.assert_array_equal(data.features, np.array([[1.5, 1], [np.nan, np.nan]], dtype=np.float32))
        assert data.query_ids.tolist() == ["x", "y"]
        assert list(data.comments or []) == ["c", ""]


@both
def test_columns_may_have_other_names(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    write_table(path, pyarrow.table({"query": [1, 1], "grade": [0, 3], "a": [5, 6]}))
    data = read(path, label="grade", qid="query")
    assert data.labels.tolist() == [0, 3]
    assert data.features.tolist() == [[5], [6]]
    with pytest.raises(DataError, match=r"has no column 'qid'\. Say with qid which of its columns it is: query, gr"):
        read(path)
    with pytest.raises(DataError, match=r"has no column 'gain'\. Say with label which"):
        read(path, label="gain", qid="query")
    assert read(path, qid=None).query_ptr.tolist() == [0, 2]


@both
def test_text_among_the_features_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    write_table(path, pyarrow.table({"qid": [1], "title": ["a"]}))
    with pytest.raises(DataError, match="column 'title' must hold numbers, it holds string"):
        read(path)


@both
def test_values_that_cannot_be_learnt_from_are_errors(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    write_table(path, pyarrow.table({"qid": [1, 1], "label": [1.0, None], "a": [1, 2]}))
    with pytest.raises(DataError, match="y must be finite"):
        read(path)
    write_table(path, pyarrow.table({"qid": [1, None], "label": [1, 2], "a": [1, 2]}))
    with pytest.raises(DataError, match="qid must name a query"):
        read(path)
    write_table(path, pyarrow.table({"qid": [1, 1], "label": [1, 2], "a": [1.0, 1e300]}))
    with pytest.raises(DataError, match="X must be finite"):
        read(path)


@both
def test_comments_that_are_not_utf8_come_back(tmp_path: Path, suffix: str) -> None:
    text = tmp_path / "data.txt"
    text.write_bytes(b"1 1:1 # caf\xe9\n1 1:2 # \xc3\n1 1:3 # \xa9\n")
    dataset = read(text)
    write(dataset, tmp_path / f"data.{suffix}")
    back = read(tmp_path / f"data.{suffix}")
    assert list(back.comments or []) == list(dataset.comments or [])
    assert (back.comments or [""])[0].encode("utf-8", "surrogateescape") == b"caf\xe9"
    with pytest.raises(DataError, match="not valid UTF-8"):
        write(dataset, tmp_path / "data.csv")


def test_names_that_clash_with_other_columns(tmp_path: Path) -> None:
    dataset = RankingDataset([[1, 2]], [1], qid=[1], feature_names=["label", "b"])
    with pytest.raises(DataError, match="a feature is named 'label'"):
        write(dataset, tmp_path / "data.parquet")
    write(dataset, tmp_path / "data.feather")
    assert read(tmp_path / "data.feather").feature_names == ("label", "b")


def test_query_ids_of_many_kinds_cannot_be_written(tmp_path: Path) -> None:
    dataset = RankingDataset([[1], [2]], [1, 2], qid=np.array(["a", (1, 2)], dtype=object))
    with pytest.raises(DataError, match="these query ids cannot be written"):
        write(dataset, tmp_path / "data.feather")


@both
def test_a_file_with_two_columns_of_one_name_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    table = pyarrow.Table.from_arrays([pyarrow.array([1])] * 3, names=["qid", "a", "a"])
    write_table(path, table)
    with pytest.raises(DataError, match="2 columns 'a'"):
        read(path)


def test_several_batches_are_put_together(tmp_path: Path) -> None:
    path = tmp_path / "data.feather"
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.arange(12, dtype=np.float32)), 2)
    table = pyarrow.table({"qid": [1] * 6, "features": lists})
    with pyarrow.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    assert read(path).features.tolist() == np.arange(12).reshape(6, 2).tolist()


def small_file(path: Path) -> bytes:
    dataset = RankingDataset(
        np.arange(12, dtype=np.float32).reshape(4, 3),
        [0, 1, 2, 3],
        qid=["a", "a", "b", "b"],
        comments=["x", "", "yy", "z"],
        query_weights=[1, 2],
        feature_names=["p", "q", "r"],
    )
    write(dataset, path)
    return path.read_bytes()


def check_damaged(path: Path, seed: int, n_files: int) -> int:
    """Read files with a few bytes changed or cut off: they give a dataset or a DataError, nothing else."""
    whole = small_file(path)
    generator = np.random.default_rng(seed)
    n_errors = 0
    for _ in range(n_files):
        damaged = bytearray(whole)
        if generator.random() < 0.2:
            del damaged[int(generator.integers(len(damaged))) :]
        for _ in range(int(generator.integers(1, 5))):
            if damaged:
                damaged[int(generator.integers(len(damaged)))] = int(generator.integers(256))
        path.write_bytes(damaged)
        try:
            data = read(path)
            # Look at everything, as a user would.
            assert len(list(data.comments or [])) in (0, data.n_docs)
            assert data.features.shape == (data.n_docs, data.n_features)
        except DataError:
            n_errors += 1
    return n_errors


@both
def test_damaged_files_are_errors(tmp_path: Path, suffix: str) -> None:
    assert check_damaged(tmp_path / f"data.{suffix}", seed=1, n_files=300) > 100


@pytest.mark.slow
@both
def test_many_damaged_files_are_errors(tmp_path: Path, suffix: str) -> None:
    assert check_damaged(tmp_path / f"data.{suffix}", seed=2, n_files=20_000) > 8_000


def small_dataset(*, weights: bool) -> RankingDataset:
    generator = np.random.default_rng(5)
    return RankingDataset(
        generator.normal(size=(30, 4)).astype(np.float32),
        generator.integers(0, 3, 30),
        qid=np.repeat(["q1", "ä", "q3"], 10),
        comments=[f"document {row}" if row % 3 else "" for row in range(30)],
        feature_names=["bm25", "length", "clicks", "π"],
        query_weights=[1.0, 2.0, 0.5] if weights else None,
    )


def same(one: RankingDataset, other: RankingDataset) -> bool:
    """Whether two datasets have the same content, to the bit."""
    return (
        one.features.tobytes() == other.features.tobytes()
        and one.labels.tobytes() == other.labels.tobytes()
        and one.query_ids.tolist() == other.query_ids.tolist()
        and one.query_ptr.tolist() == other.query_ptr.tolist()
        and list(one.comments or ()) == list(other.comments or ())
        and one.feature_names == other.feature_names
        and (one.query_weights is None) == (other.query_weights is None)
    )


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
def test_a_flipped_bit_of_feather_is_found_or_changes_nothing(tmp_path: Path, weights: bool) -> None:
    """240 of 600 flipped bits changed numbers without a word."""
    path = tmp_path / "data.feather"
    dataset = small_dataset(weights=weights)
    write(dataset, path)
    assert same(read(path), dataset)
    whole = path.read_bytes()
    generator = np.random.default_rng(6)
    found = 0
    for place in generator.integers(0, len(whole), 600).tolist():
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(flipped)
        try:
            again = read(path)
        except DataError:
            found += 1
        else:
            assert same(again, dataset), place
    assert found > 100


def test_an_altered_number_names_its_column(tmp_path: Path) -> None:
    path = tmp_path / "data.feather"
    dataset = small_dataset(weights=False)
    write(dataset, path)
    whole = path.read_bytes()
    number = dataset.features[7, 2].tobytes()
    path.write_bytes(whole.replace(number, np.float32(1e9).tobytes()))
    with pytest.raises(DataError, match=r"data\.feather was altered after it was written: column 'features' does not"):
        read(path)


def test_feather_files_of_older_releases_are_read(tmp_path: Path) -> None:
    path = tmp_path / "data.feather"
    dataset = small_dataset(weights=True)
    write(dataset, path)
    with pyarrow.ipc.open_file(path) as file:
        batch = file.get_batch(0)
    metadata = json.loads(batch.schema.metadata[b"rankwell"])
    del metadata["crc32"]
    plain = pyarrow.schema([(field.name, field.type) for field in batch.schema])
    plain = plain.with_metadata({b"rankwell": json.dumps(metadata | {"version": 1}).encode()})
    batch = pyarrow.RecordBatch.from_arrays(batch.columns, schema=plain)
    with pyarrow.ipc.new_file(path, batch.schema) as writer:
        writer.write_batch(batch)
    assert same(read(path), dataset)
