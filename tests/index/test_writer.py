from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.index.fragile_storage import CountingStorage
from tests.index.model import content_of, expected_content

from rankwell import DataError, FileFormatError, IndexLockedError, ParameterError, RankwellError
from rankwell.corpus.document import Document, Place
from rankwell.index.checking import check_index
from rankwell.index.commits.lock import LOCK_NAME
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter
from rankwell.printable import printable

CAT = {"id": "cat", "title": "The cat", "body": "a cat sat on the mat", "year": 1990}
DOG = {"id": "dog", "title": "The dog", "body": "the dog ate the cat"}
COW = {"id": "cow", "body": "cow", "weight": 612.5}


def ids(path: Path) -> set[str]:
    index = Index.open(path)
    return set(content_of(index))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index"


def test_what_was_added_is_read_back(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT, DOG])
        assert writer.commit() == 1
        writer.add([COW])
        assert writer.commit() == 2
    index = Index.open(path)
    assert content_of(index) == expected_content([CAT, DOG, COW])
    assert (index.n_docs, index.generation) == (3, 2)
    assert index.schema == Schema(["title", "body"], ["year", "weight"])
    assert [index.find(name) for name in ("cat", "dog", "cow", "cats")] == [0, 1, 2, -1]
    assert index.stored(1) == DOG
    assert check_index(path).problems == []


def test_nothing_is_visible_before_a_commit_and_nothing_stays_without_one(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
        writer.add([DOG])
        writer.delete(["cat"])
        assert writer.n_docs == 1
        assert ids(path) == {"cat"}
    assert ids(path) == {"cat"}
    with IndexWriter(path) as writer:
        assert (writer.n_docs, writer.generation) == (1, 1)
    assert check_index(path).remains == []


def test_a_commit_without_a_change_is_not_a_generation(path: Path) -> None:
    with IndexWriter(path) as writer:
        assert writer.commit() == 1
        assert writer.commit() == 1
        writer.delete(["nobody"])
        assert writer.commit() == 1
    assert Index.open(path).n_docs == 0


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with IndexWriter(tmp_path / name) as writer:
            writer.add([CAT, DOG, COW])
            writer.delete(["dog"])
            writer.commit()
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert files == sorted(file.name for file in (tmp_path / "two").iterdir())
    for file in set(files) - {"writer.lock"}:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_delete_counts_and_reaches_documents_not_committed(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT, DOG])
        writer.commit()
        writer.add([COW])
        assert writer.delete(["cow", "cat", "nobody", "cat"]) == 2
        writer.add([COW | {"body": "another cow"}])
        writer.commit()
    assert content_of(Index.open(path)) == expected_content([DOG, COW | {"body": "another cow"}])


def test_an_id_that_the_index_has_replaces_the_old_document(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT, DOG, COW])
        writer.commit()
        writer.add([CAT | {"body": "nine lives"}])
        assert Index.open(path).stored(Index.open(path).find("cat")) == CAT
        writer.commit()
    index = Index.open(path)
    assert content_of(index) == expected_content([DOG, COW, CAT | {"body": "nine lives"}])
    assert index.stored(index.find("cat"))["body"] == "nine lives"


BAD = [
    {"body": "no id"},
    CAT | {"body": "a second cat"},
    {"id": "ox", "new": "a field that must not stay", "year": "of the ox"},
    {"id": "emu", "also new": 1, "body": 7},
    {"id": "elk", "a\nb": "x"},
    {"id": "eel", "body": ["x", 1]},
]
REASONS = [
    "document 1 of those added: the field 'id' is missing",
    "document 2 of those added: id 'cat' exists already, at document 1 of those added",
    "document 3 of those added, field 'year' holds a text, but other documents have numbers",
    "document 4 of those added, field 'body' holds a number, but other documents have texts",
    "document 5 of those added, the name of a field must be a text",
    "document 6 of those added, field 'body': a field holds a text",
]


@pytest.mark.parametrize("is_flushed", [False, True])
def test_bad_documents_are_left_out_when_asked(path: Path, is_flushed: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rankwell"), IndexWriter(path, on_bad_document="skip") as writer:
        writer.add([CAT])
        if is_flushed:
            writer.delete([])
        writer.add([*BAD, DOG])
        writer.commit()
    index = Index.open(path)
    assert content_of(index) == expected_content([CAT, DOG])
    assert index.schema == Schema(["title", "body"], ["year"])
    assert (index.n_docs, check_index(path).problems) == (2, [])
    *named, count = caplog.messages
    # Not in their order: an id that is on disk already is found when the rest is written.
    for message, reason in zip(sorted(named), REASONS, strict=True):
        assert message.startswith(f"left out: {reason}")
    assert count == "6 bad documents were left out."


def test_a_document_that_would_replace_another_can_be_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with IndexWriter(path, on_duplicate="error", on_bad_document="skip") as writer:
        writer.add([CAT])
        writer.commit()
        writer.add([CAT | {"body": "nine lives"}, DOG])
        writer.commit()
    assert content_of(Index.open(path)) == expected_content([CAT, DOG])
    assert "document 1 of those added: the index" in caplog.text
    assert "1 bad document was left out." in caplog.text


def test_what_a_source_of_documents_raises_is_never_skipped(path: Path) -> None:
    def documents() -> Iterator[dict[str, object]]:
        yield CAT
        raise DataError("the source is broken")

    with IndexWriter(path, on_bad_document="skip") as writer, pytest.raises(DataError, match="the source is broken"):
        writer.add(documents())


def test_or_is_an_error_that_names_the_id(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
    with IndexWriter(path, on_duplicate="error") as writer:
        writer.add([DOG, CAT])
        with pytest.raises(DataError, match=r"document 2 of those added: .* has a document with id 'cat'"):
            writer.commit()
    assert ids(path) == {"cat"}


@pytest.mark.parametrize("is_flushed", [False, True])
def test_an_id_twice_between_commits_is_an_error_that_names_both_places(path: Path, is_flushed: bool) -> None:
    with IndexWriter(path) as writer:
        writer.add([COW, CAT])
        if is_flushed:
            writer.delete([])
        message = r"document 3 of those added: id 'cat' .* at document 2 of those added"
        with pytest.raises(DataError, match=message):  # noqa: PT012 -- found when they come, or when they are written
            writer.add([DOG, DOG | {"id": "dogs"}, CAT])
            writer.commit()
        with pytest.raises(RankwellError, match=r"interrupted this writer.*rollback"):
            writer.commit()
        writer.rollback()
        writer.add([DOG])
        writer.commit()
    assert ids(path) == {"dog"}


def test_what_a_broken_document_interrupts_can_be_rolled_back(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
        with pytest.raises(DataError, match="'id' is missing"):
            writer.add([{"id": "colour", "colour": "red"}, {"body": "no id"}])
        writer.rollback()
        writer.add([DOG])
        writer.commit()
    index = Index.open(path)
    assert set(content_of(index)) == {"cat", "dog"}
    assert "colour" not in index.schema.streams


def test_one_writer_at_a_time_and_readers_do_not_wait(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
        with pytest.raises(IndexLockedError, match=r"this process has another writer open .*close that one first"):
            IndexWriter(path)
        (path / LOCK_NAME).write_text("1\n")
        with pytest.raises(IndexLockedError, match=r"another writer \(process 1\) is working"):
            IndexWriter(path)
        assert Index.open(path).n_docs == 1
    with IndexWriter(path) as writer:
        writer.close()
        with pytest.raises(RankwellError, match="closed"):
            writer.add([DOG])


def test_a_lock_needs_no_room_on_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", no_room)
    with IndexWriter(path) as writer:
        with pytest.raises(IndexLockedError, match="another writer is working"):
            IndexWriter(path)
        writer.add([CAT])
        writer.commit()
    assert ids(path) == {"cat"}


def test_a_reader_keeps_its_generation(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT, DOG])
        writer.commit()
        old = Index.open(path)
        assert old.reopen() is old
        writer.add([COW])
        writer.delete(["cat"])
        writer.commit()
        middle = old.reopen()
        writer.merge()
    assert content_of(old) == expected_content([CAT, DOG])
    assert content_of(middle) == expected_content([DOG, COW])
    assert middle.segments[0] is old.segments[0]
    new = middle.reopen()
    assert content_of(new) == expected_content([DOG, COW])
    assert len(new.segments) == 1
    assert new.live == (None,)


def test_merges_keep_order_and_drop_deleted_documents(path: Path) -> None:
    documents = [{"id": f"d{number}", "body": f"word{number % 7} common"} for number in range(60)]
    with IndexWriter(path, max_segments=3) as writer:
        for start in range(0, 60, 5):
            writer.add(documents[start : start + 5])
            writer.delete([f"d{start}"])
            writer.commit()
            assert len(Index.open(path).segments) <= 3
        writer.merge()
    index = Index.open(path)
    kept = [one["id"] for number, one in enumerate(documents) if number % 5]
    assert [index.id_of(doc) for doc in range(int(index.bases[-1]))] == kept
    report = check_index(path)
    assert (report.problems, report.remains, report.n_segments) == ([], [], 1)


def test_deleting_everything_leaves_an_empty_index_that_takes_documents(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT, DOG])
        writer.commit()
        assert writer.delete(["cat", "dog"]) == 2
        writer.commit()
        assert Index.open(path).segments == ()
        with pytest.raises(DataError, match="no document number 0: the index has no documents"):
            Index.open(path).id_of(0)
        writer.merge()
        writer.add([COW])
        writer.commit()
    assert ids(path) == {"cow"}


def test_a_segment_of_which_most_is_deleted_is_rewritten(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT, DOG, COW])
        writer.commit()
        writer.delete(["cat"])
        writer.commit()
        assert Index.open(path).live[0].tolist() == [0, 1, 1]
        writer.delete(["dog"])
        writer.commit()
    assert Index.open(path).live == (None,)
    assert content_of(Index.open(path)) == expected_content([COW])


def test_overwriting_keeps_the_old_index_until_the_commit(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
    with IndexWriter(path, overwrite=True, analysis=Analysis(stop_words=["the"])) as writer:
        assert writer.n_docs == 0
        writer.add([DOG])
        assert ids(path) == {"cat"}
        assert writer.commit() == 2
        writer.add([COW])
        writer.rollback()
        assert writer.n_docs == 1
    index = Index.open(path)
    assert content_of(index) == expected_content([DOG], Analysis(stop_words=["the"]))
    assert check_index(path).remains == []


def test_a_damaged_index_can_be_overwritten_but_not_added_to(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
    (path / "manifest").write_bytes(b"rankwell-index 1 nonsense")
    with pytest.raises(FileFormatError, match="not an index manifest"):
        IndexWriter(path)
    with IndexWriter(path, overwrite=True) as writer:
        assert (path / "segment-00000001.table").exists()
        writer.add([DOG])
        writer.commit()
    assert ids(path) == {"dog"}
    assert check_index(path).remains == []


def test_the_analysis_of_an_index_stays(path: Path) -> None:
    with IndexWriter(path, analysis=Analysis(stop_words=["the"])) as writer:
        writer.add([CAT])
        writer.commit()
    with IndexWriter(path, schema=Schema(["url"])) as writer:
        writer.add([DOG])
        writer.commit()
    index = Index.open(path)
    assert index.analysis == Analysis(stop_words=["the"])
    assert index.schema.streams == ["title", "body", "url"]
    with pytest.raises(ParameterError, match="cut into words the same way"):
        IndexWriter(path, analysis=Analysis())


def test_folders_that_are_not_an_index_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    with pytest.raises(DataError, match=r"not an index and not empty: it contains 'diary.txt'"):
        IndexWriter(tmp_path / "notes", overwrite=True)
    assert [file.name for file in (tmp_path / "notes").iterdir()] == ["diary.txt"]
    with pytest.raises(DataError, match="is a file; an index is a folder"):
        IndexWriter(tmp_path / "notes" / "diary.txt")


def test_files_of_others_inside_an_index_are_left_alone(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([CAT])
        writer.commit()
    (path / "README").write_text("mine")
    (path / "segment-00000099.postings").write_bytes(b"left by a stopped build")
    with IndexWriter(path) as writer:
        writer.add([DOG])
        writer.commit()
    assert (path / "README").exists()
    assert not (path / "segment-00000099.postings").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on_duplicate": "skip"}, "'replace' or 'error', got 'skip'"),
        ({"max_segments": 0}, "1 or more, got 0"),
        ({"on_bad_document": "drop"}, "'error' or 'skip', got 'drop'"),
    ],
)
def test_wrong_parameters(path: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        IndexWriter(path, **settings)
    assert not path.exists()


@pytest.mark.parametrize("use", [IndexWriter, Index.open, check_index])
def test_an_empty_path_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[str], object]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=r"the path of an index is empty. Give its folder"):
        use("")
    assert list(tmp_path.iterdir()) == []


def test_one_document_or_id_instead_of_a_list(path: Path) -> None:
    with IndexWriter(path) as writer:
        with pytest.raises(ParameterError, match="pass a list"):
            writer.add(CAT)
        with pytest.raises(ParameterError, match="pass a list"):
            writer.delete("cat")
        with pytest.raises(ParameterError, match="pass a list"):
            writer.delete(7)
        with pytest.raises(ParameterError, match="got one str: pass a list"):
            writer.add("cat")
        with pytest.raises(ParameterError, match="1 or more"):
            writer.merge(max_segments=0)
        writer.add([CAT])
        writer.commit()


def test_ids_are_asked_for_as_texts_or_integers(path: Path) -> None:
    with IndexWriter(path) as writer:
        writer.add([{"id": number, "body": "a word"} for number in (17, 18, -3, 5, 6)])
        assert writer.delete([17, "-3", 99]) == 2
        with pytest.raises(ParameterError, match="an id is a text or an integer, got b'18' of type bytes"):
            writer.delete([18, b"18"])
        writer.commit()
    index = Index.open(path)
    assert (index.find(18), index.find("18"), index.find(17)) == (1, 1, -1)
    assert (index.find(np.int32(18)), index.find(np.str_("18"))) == (1, 1)
    for wrong in (None, True, 18.0, b"18", np.float64(18)):
        with pytest.raises(ParameterError, match="an id is a text or an integer"):
            index.find(wrong)


@pytest.mark.parametrize("wrong", [["cat"], ("cat", "cat"), [7], [[CAT]], [None]])
def test_what_is_not_a_document(path: Path, wrong: list[object]) -> None:
    with IndexWriter(path) as writer, pytest.raises(DataError, match="document 1 of those added: a document is a"):
        writer.add(wrong)


@pytest.mark.parametrize("name", ["a\nb.jsonl", "\udcff.jsonl"])
def test_places_with_odd_names_are_remembered(path: Path, name: str) -> None:
    documents = [Document(f"d{number % 3}", {"body": "a word"}, place=Place(name, number)) for number in range(1, 5)]
    with IndexWriter(path, memory_bytes=1) as writer:
        for document in documents[:-1]:
            writer.add([document])
        with pytest.raises(DataError) as raised:
            writer.add(documents[-1:])
    shown = printable(name)
    assert str(raised.value).startswith(f"{shown}, line 4: id 'd1' exists already, at {shown}, line 1.")


def test_a_full_builder_is_written_out_before_the_commit(path: Path) -> None:
    def document(number: int) -> dict[str, str]:
        return {"id": f"d{number}", "body": " ".join(f"{number}w{word}" for word in range(60_000))}

    storage = CountingStorage()
    with IndexWriter(path, memory_bytes=2**25, storage=storage) as writer:
        writer.add(map(document, range(12)))
        written = [line for line in storage.log if line.startswith("create segment-") and line.endswith(".table")]
        # The words of a document take 60,000 · 350 bytes, and those of two more may not be counted yet.
        assert 2 <= len(written) <= 6
        writer.commit()
    index = Index.open(path)
    assert index.n_docs == 12
    assert check_index(path).problems == []


def test_a_writer_is_told_the_language(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index", language="en") as writer:
        writer.add([{"id": "1", "body": "call the dentist"}])
        writer.commit()
    index = Index.open(tmp_path / "index")
    assert index.analysis == Analysis.of_language("en")
    assert index.search("calling dentists").ids == ["1"]
    with pytest.raises(ParameterError, match="language and analysis both say"):
        IndexWriter(tmp_path / "other", language="en", analysis=Analysis())
    with pytest.raises(ParameterError, match=r"was built with Analysis.of_language\('en'\)"):
        IndexWriter(tmp_path / "index", language="de")
