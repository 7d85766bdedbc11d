from __future__ import annotations

import multiprocessing
import pickle
import shutil
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.index.fragile_storage import CountingStorage

from rankwell import DataError, FileFormatError
from rankwell.index import reader
from rankwell.index.commits.manifest import SegmentEntry
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.segments.segment import Segment
from rankwell.index.writer import IndexWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "index"
    with IndexWriter(path, storage=CountingStorage()) as writer:
        for start in (0, 100):
            writer.add({"id": f"d{n}", "body": f"word{n % 10} ä{n}"} for n in range(start, start + 100))
            writer.commit()
    return path


def test_numbers_ids_and_stored_fields(path: Path) -> None:
    index = Index.open(str(path))
    assert index.bases.tolist() == [0, 100, 200]
    assert [index.id_of(doc) for doc in (0, 99, 100, 199)] == ["d0", "d99", "d100", "d199"]
    assert all(index.find(f"d{n}") == n for n in range(200))
    assert index.find("d200") == index.find("") == index.find("\udc80") == -1
    assert all(index.stored(n) == {"id": f"d{n}", "body": f"word{n % 10} ä{n}"} for n in range(200))
    for doc in (-1, 200):
        with pytest.raises(DataError, match=f"no document number {doc}: the index has numbers 0 to 199"):
            index.stored(doc)


def test_terms_are_found_by_bisection(path: Path) -> None:
    segment = Index.open(path).segments[1]
    terms = [segment.term(number) for number in range(segment.n_terms)]
    assert terms == sorted([f"word{n}".encode() for n in range(10)] + [f"ä{n}".encode() for n in range(100, 200)])
    for _ in range(2):
        assert [segment.term_number(term) for term in terms] == list(range(len(terms)))
        for absent in (b"", b"a", b"word", b"word10", "ä99".encode(), b"\xff"):
            assert segment.term_number(absent) == -1


def test_arrays_cannot_be_written_to(path: Path) -> None:
    on_disk = Index.open(path).segments[0]
    in_memory = Segment.in_memory({"documents.lengths": np.array([1, 2])}, on_disk.meta)
    for segment in (on_disk, in_memory):
        with pytest.raises(ValueError, match="read-only"):
            segment["documents.lengths"][0] = 5


def test_a_file_that_a_merge_has_removed_makes_the_reader_look_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the manifest and opening the files, a writer merges and removes them."""
    opened: list[str] = []
    original = reader.open_segment

    def merge_first(folder: Path, entry: SegmentEntry, schema: Schema) -> Segment:
        if not opened:
            opened.append("merged")
            with IndexWriter(path, storage=CountingStorage()) as writer:
                writer.merge()
        opened.append(entry.name)
        return original(folder, entry, schema)

    monkeypatch.setattr(reader, "open_segment", merge_first)
    index = Index.open(path)
    assert opened == ["merged", "segment-00000001", "segment-00000003"]
    assert (index.generation, index.n_docs, len(index.segments)) == (3, 200, 1)


def test_readers_open_while_a_writer_commits_and_merges(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with IndexWriter(path, storage=CountingStorage(), max_segments=2) as writer:
        writer.add([{"id": "0", "body": "start"}])
        writer.commit()
        failures: list[BaseException] = []
        is_done = threading.Event()

        def read() -> None:
            try:
                last = 0
                while not is_done.is_set():
                    index = Index.open(path)
                    assert index.generation >= last
                    last = index.generation
                    newest = index.n_docs - 1
                    assert index.find(str(newest)) >= 0
                    assert index.find(str(newest + 1)) == -1
            except BaseException as failure:
                failures.append(failure)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for one in readers:
            one.start()
        for number in range(1, 60):
            writer.add([{"id": str(number), "body": f"document {number}"}])
            writer.commit()
        is_done.set()
        for one in readers:
            one.join()
    assert failures == []


def test_an_index_that_was_moved_is_read_where_it_is(path: Path, tmp_path: Path) -> None:
    shutil.move(path, tmp_path / "elsewhere")
    assert Index.open(tmp_path / "elsewhere").n_docs == 200


def test_a_table_of_another_size_than_the_manifest_says(path: Path) -> None:
    from dataclasses import replace

    from rankwell.index.commits.manifest import read_manifest, write_manifest

    manifest = read_manifest(path)
    first, second = manifest.segments
    write_manifest(CountingStorage(), path, replace(manifest, segments=(replace(first, n_docs=7), second)))
    with pytest.raises(FileFormatError, match=r"table has 100 documents, but the manifest says 7"):
        Index.open(path)


def test_length_and_representation(path: Path) -> None:
    index = Index.open(path)
    assert len(index) == 200
    assert repr(index) == f"Index({str(path)!r}: 200 documents in 2 segments, generation 2)"
    with IndexWriter(path) as writer:
        writer.delete([f"d{n}" for n in range(199)])
        writer.commit()
    assert len(index) == 200
    assert len(index.reopen()) == 1
    assert repr(index.reopen()).startswith(f"Index({str(path)!r}: 1 document in ")


def test_an_index_without_documents_is_true(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "empty") as writer:
        writer.commit()
    index = Index.open(tmp_path / "empty")
    assert len(index) == 0
    assert index


def _found(index: Index) -> tuple[str, ...]:
    return index.search("word3", k=3).ids


def test_it_is_pickled_as_its_path(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(path.parent)
    index = Index.open("index")
    content = pickle.dumps(index)
    assert len(content) < 1000
    # Another process may have another folder; what it opens is the newest generation.
    monkeypatch.chdir("/")
    assert _found(pickle.loads(content)) == _found(index)
    with IndexWriter(path) as writer:
        writer.add([{"id": "new", "body": "word3"}])
        writer.commit()
    assert len(pickle.loads(content)) == 201
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(len, index).result(timeout=60) == 201


def test_an_index_in_memory_is_not_pickled(path: Path) -> None:
    index = Index.open(path)
    in_memory = Index(index.segments, index.live, index.schema, index.analysis)
    assert repr(in_memory).startswith("Index(in memory: 200 documents")
    with pytest.raises(DataError, match="in memory cannot be pickled"):
        pickle.dumps(in_memory)
