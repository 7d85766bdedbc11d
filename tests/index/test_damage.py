"""A byte flipped, cut or swapped in any file, and files exchanged: found before anything is read from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.index.fragile_storage import CountingStorage
from tests.index.model import content_of

from rankwell import FileFormatError
from rankwell.index.checking import check_index
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

BYTES_TRIED = 48


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, one of them with deletions."""
    path = tmp_path_factory.mktemp("whole") / "index"
    with IndexWriter(path, storage=CountingStorage()) as writer:
        for part in ("x", "y"):
            writer.add({"id": f"{part}{n}", "title": f"{part} title{n}", "body": f"text {n % 3}"} for n in range(9))
            writer.commit()
        writer.delete(["x3", "x4"])
        writer.commit()
    assert content_of(Index.open(path)).keys() == {f"{part}{n}" for part in "xy" for n in range(9)} - {"x3", "x4"}
    return path


FILES = [
    "manifest",
    "segment-00000001.arrays",
    "segment-00000001.live-3",
    "segment-00000001.table",
    "segment-00000002.arrays",
    "segment-00000002.table",
]


def test_these_are_all_the_files(whole: Path) -> None:
    assert sorted(file.name for file in whole.iterdir() if file.name != "writer.lock") == FILES


def assert_detected(path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"manifest|segment-"):
        content_of(Index.open(path))
    with pytest.raises(FileFormatError, match=r"manifest|segment-"):
        Index.open(path).search("text title3")
    assert check_index(path).problems


def swapped(content: bytes) -> bytes:
    """The first two neighbours that differ, exchanged."""
    place = next(number for number in range(len(content) - 1) if content[number] != content[number + 1])
    return content[:place] + content[place + 1 : place + 2] + content[place : place + 1] + content[place + 2 :]


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "cut by one": lambda content: content[:-1],
    "cut in half": lambda content: content[: len(content) // 2],
    "emptied": lambda content: b"",
    "longer": lambda content: content + b"\0",
    "first byte gone": lambda content: content[1:],
    "two bytes swapped": swapped,
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("file", FILES)
def test_a_flipped_byte(whole: Path, tmp_path: Path, file: str) -> None:
    path = tmp_path / "index"
    shutil.copytree(whole, path)
    content = (whole / file).read_bytes()
    step = max(1, len(content) // BYTES_TRIED)
    for place in range(0, len(content), step):
        altered = bytearray(content)
        altered[place] ^= 1 << place % 8
        (path / file).write_bytes(altered)
        assert_detected(path)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_changed(whole: Path, tmp_path: Path, file: str, change: str) -> None:
    path = tmp_path / "index"
    shutil.copytree(whole, path)
    (path / file).write_bytes(CHANGES[change]((whole / file).read_bytes()))
    assert_detected(path)


@pytest.mark.parametrize("file", FILES[1:])
def test_a_file_that_cannot_be_read(whole: Path, tmp_path: Path, file: str) -> None:
    path = tmp_path / "index"
    shutil.copytree(whole, path)
    (path / file).unlink()
    (path / file).mkdir()
    assert f"{path / file} cannot be read: Is a directory." in check_index(path).problems


@pytest.mark.parametrize("file", FILES[1:])
def test_a_file_that_is_gone(whole: Path, tmp_path: Path, file: str) -> None:
    path = tmp_path / "index"
    shutil.copytree(whole, path)
    (path / file).unlink()
    with pytest.raises(FileFormatError, match=f"{file} is missing"):
        Index.open(path)
    assert any("is missing" in line for line in check_index(path).problems)
    with pytest.raises(FileFormatError, match=f"{file} is missing"):
        IndexWriter(path)


@pytest.mark.parametrize("parts", [("arrays",), ("table",), ("arrays", "table")])
def test_files_of_two_segments_exchanged(whole: Path, tmp_path: Path, parts: tuple[str, ...]) -> None:
    path = tmp_path / "index"
    shutil.copytree(whole, path)
    for part in parts:
        for one, other in (("1", "2"), ("2", "1")):
            shutil.copyfile(whole / f"segment-0000000{one}.{part}", path / f"segment-0000000{other}.{part}")
    assert_detected(path)


def test_a_manifest_that_was_edited(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(whole, path)
    text = (whole / "manifest").read_text()
    assert '"n_deleted": 2' in text
    (path / "manifest").write_text(text.replace('"n_deleted": 2', '"n_deleted": 1'))
    assert_detected(path)


def test_the_manifest_of_another_index(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with IndexWriter(path) as writer:
        for part in ("p", "q"):
            writer.add([{"id": part, "body": part}])
            writer.commit()
    shutil.copyfile(whole / "manifest", path / "manifest")
    with pytest.raises(FileFormatError):
        Index.open(path)


def test_a_damaged_page_disturbs_only_who_reads_it(tmp_path: Path) -> None:
    """Of an array of many pages only those of the list that is asked for are looked at."""
    path = tmp_path / "index"
    with IndexWriter(path) as writer:
        writer.add(
            {"id": f"d{n}", "body": f"first{n:05} {' '.join(f'w{n}x{k}' for k in range(60))}"} for n in range(9000)
        )
        writer.commit()
    postings = path / "segment-00000001.postings"
    content = bytearray(postings.read_bytes())
    content[-1] ^= 1
    postings.write_bytes(content)
    segment = Index.open(path).segments[0]
    number = segment.term_number(b"first00007")
    assert number >= 0
    segment.verify_list(number)
    last = segment.n_terms - 1
    for _ in range(2):
        with pytest.raises(FileFormatError, match=r"segment-00000001\.postings was altered"):
            segment.verify_list(last)
    with pytest.raises(FileFormatError, match="altered"):
        segment["postings"]
