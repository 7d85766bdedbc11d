from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankwell import FileFormatError
from rankwell.index.commits.checked_file import PAGE_BYTES, CheckedFile, CheckedFileWriter, PageChecksums
from rankwell.index.commits.storage import Storage


def write(path: Path, *pieces: bytes) -> PageChecksums:
    writer = CheckedFileWriter(Storage(), path)
    for piece in pieces:
        writer.append(piece)
    return writer.finish()


def some_bytes(n_bytes: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, n_bytes, dtype=np.uint8).tobytes()


@pytest.mark.parametrize("n_bytes", [0, 1, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 17 * PAGE_BYTES + 5])
@pytest.mark.parametrize("piece", [1000, 2**21])
def test_what_was_written_is_read(tmp_path: Path, n_bytes: int, piece: int) -> None:
    content = some_bytes(n_bytes)
    pages = write(tmp_path / "file", *(content[start : start + piece] for start in range(0, n_bytes, piece)))
    assert pages.n_bytes == n_bytes
    assert len(pages.checksums) == (n_bytes + PAGE_BYTES - 1) // PAGE_BYTES
    file = CheckedFile(tmp_path / "file", pages)
    file.verify(0, n_bytes)
    assert file.content.tobytes() == content
    assert file.damaged_pages() == []
    file.release()
    assert file.content.tobytes() == content


def test_only_pages_that_are_read_are_checked_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytearray(some_bytes(4 * PAGE_BYTES))
    pages = write(path, bytes(content))
    content[2 * PAGE_BYTES] ^= 1
    path.write_bytes(content)
    file = CheckedFile(path, pages)
    file.verify(0, 2 * PAGE_BYTES)
    file.verify(3 * PAGE_BYTES, 4 * PAGE_BYTES)
    for start, stop in (
        (2 * PAGE_BYTES - 1, 2 * PAGE_BYTES + 1),
        (3 * PAGE_BYTES - 1, 3 * PAGE_BYTES),
        (0, len(content)),
    ):
        with pytest.raises(
            FileFormatError, match=r"file was altered after it was written: its bytes 131,072 to 196,608"
        ):
            file.verify(start, stop)
    assert file.damaged_pages() == [2]
    # A page that was checked is not summed again: the mapping shows the change, the check does not look.
    with open(path, "r+b") as stream:
        stream.write(b"\x00\x01\x02\x03")
    file.verify(0, 10)


@pytest.mark.parametrize("change", ["cut", "longer", "empty"])
def test_a_size_that_changed_is_found_at_opening(tmp_path: Path, change: str) -> None:
    path = tmp_path / "file"
    content = some_bytes(PAGE_BYTES + 10)
    pages = write(path, content)
    path.write_bytes({"cut": content[:-1], "longer": content + b"\0", "empty": b""}[change])
    with pytest.raises(FileFormatError, match=r"but 65,546 were written: it was truncated or replaced"):
        CheckedFile(path, pages)


def test_pages_that_changed_places_are_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = some_bytes(2 * PAGE_BYTES)
    pages = write(path, content)
    path.write_bytes(content[PAGE_BYTES:] + content[:PAGE_BYTES])
    assert CheckedFile(path, pages).damaged_pages() == [0, 1]


def test_files_are_written_once(tmp_path: Path) -> None:
    write(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        write(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
