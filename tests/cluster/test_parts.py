"""Parts of data: which files are found, how they are divided, and that shares of a text have every query once."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.cluster.cluster_data import make_queries, write_parts
from tests.cluster.worker_threads import run_workers

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.part_reading import Reading, query_start, read_part, read_parts
from rankwell.cluster.parts import Part, divide, find_files
from rankwell.data.files import read, write
from rankwell.errors import DataError


def test_patterns_and_folders_are_sorted(tmp_path):
    write_parts(make_queries(6), tmp_path, 3)
    (tmp_path / "_metadata").write_text("not data")
    expected = [str(tmp_path / f"part-{number}.parquet") for number in range(3)]
    assert find_files(str(tmp_path / "*.parquet")) == expected
    assert find_files(tmp_path) == expected
    assert find_files([expected[2], expected[0]]) == [expected[2], expected[0]]


def test_what_is_absent_is_named(tmp_path):
    with pytest.raises(DataError, match=re.escape("no file matches") + ".*nothing"):
        find_files(str(tmp_path / "nothing*.txt"))
    with pytest.raises(DataError, match=r"absent\.txt"):
        find_files(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="has no data files"):
        find_files(tmp_path)


def test_a_file_given_twice_is_refused(tmp_path):
    paths = write_parts(make_queries(6), tmp_path, 2)
    with pytest.raises(DataError, match="given twice"):
        find_files([paths[0], tmp_path])


def test_files_of_equal_size_are_not_cut(tmp_path):
    generator = np.random.default_rng(0)
    for number in range(4):
        lines = [f"{generator.integers(3)} qid:{number * 10 + row // 4} 1:0.5\n" for row in range(40)]
        (tmp_path / f"part-{number}.txt").write_text("".join(lines))
    divided = divide(find_files(tmp_path), 2)
    assert [[part.path[-5] for part in own] for own in divided] == [["0", "1"], ["2", "3"]]
    assert all(part.is_whole for own in divided for part in own)


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7])
@pytest.mark.parametrize("suffix", [".txt", ".parquet", ".txt.gz"])
def test_shares_of_a_file_have_every_query_once(tmp_path, n_workers, suffix):
    dataset = make_queries(23, 5, missing=0.0)
    write(dataset, tmp_path / f"all{suffix}")
    whole = read(tmp_path / f"all{suffix}")
    divided = divide(find_files(tmp_path), n_workers)
    assert len(divided) == n_workers
    own = [read_part(part, Reading()) for parts in divided for part in parts]
    sizes = [part.n_docs for part in own]
    np.testing.assert_array_equal(np.concatenate([part.query_ids for part in own]), whole.query_ids)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in own]), whole.labels)
    assert max(sizes) - min(sizes) < 3 * 25


def test_a_border_anywhere_in_a_text_leads_to_a_query(tmp_path):
    text = b'# features: ["a"]\n2 qid:7 1:1\n\n# note\n1 qid:7 1:2\n0 qid:8 1:3 # qid:9\n1 qid:10 1:1'
    path = tmp_path / "all.txt"
    path.write_bytes(text)
    starts = [text.index(b"2 qid:7"), text.index(b"0 qid:8"), text.index(b"1 qid:10"), len(text)]
    with path.open("rb") as file:
        for offset in range(1, len(text) + 2):
            expected = next(start for start in starts if start >= min(offset, len(text)))
            assert query_start(file, offset, len(text), "all.txt") == expected, offset


def test_rows_without_ids_cannot_be_cut(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("1 1:2\n0 1:3\n" * 50)
    with pytest.raises(DataError, match=r"all\.txt has rows without qid"):
        read_part(Part(str(path), 0.0, 0.5), Reading())


def test_a_bad_line_is_named_by_its_number_in_the_file(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("".join(f"1 qid:{row} 1:2\n" for row in range(50)) + "one qid:50 1:2\n")
    with pytest.raises(DataError, match=r"all\.txt, line 51"):
        read_part(Part(str(path), 0.5, 1.0), Reading())


def read_together(divided, **reading):
    cut = sorted({part.path for own in divided for part in own if not part.is_whole})

    def read_own(exchange):
        return read_parts(divided[exchange.number], cut, Reading(**reading), WorkersAgreement(exchange))

    return run_workers(len(divided), read_own)


def test_workers_agree_on_the_width_and_the_first_index(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("1 qid:1 1:2 2:1\n0 qid:1 2:3\n" + "1 qid:2 0:5 1:2\n0 qid:2 4:1\n")
    for dataset, expected in zip(
        read_together(divide([str(path)], 2)), ([[0, 2, 1, 0, 0], [0, 0, 3, 0, 0]], [[5, 2, 0, 0, 0], [0, 0, 0, 0, 1]]),
        strict=True,
    ):  # fmt: skip
        assert dataset.features.tolist() == expected


def test_a_query_in_two_parts_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n1 qid:2 1:1\n")
    (tmp_path / "b.txt").write_text("1 qid:2 1:2\n0 qid:3 1:3\n1 qid:3 1:1\n")
    with pytest.raises(DataError, match="query 2 is in two parts"):
        read_together([[Part(str(tmp_path / "a.txt"))], [Part(str(tmp_path / "b.txt"))]])


def test_columns_are_taken_by_name(tmp_path):
    dataset = make_queries(8, 3)
    dataset.feature_names = ("a", "b", "c")
    paths = write_parts(dataset, tmp_path, 2)
    second = read(paths[1])
    swapped = second.replace(features=np.ascontiguousarray(second.features[:, [2, 0, 1]]))
    swapped.feature_names = ("c", "a", "b")
    write(swapped, paths[1])
    read_back = read_together([[Part(str(path))] for path in paths])
    np.testing.assert_array_equal(np.concatenate([part.features for part in read_back]), dataset.features)
