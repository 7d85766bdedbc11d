"""Files that are written once and checked page by page when they are first read.

A page is 64 KiB and has a CRC-32. The checksums of a file are stored elsewhere (in the segment's table, which a digest
in the manifest covers), so a page that was altered, moved or taken from another file does not match. Reading one
posting list of a large index checks only its few pages; a page is checked once each time the file is opened.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.index.commits.storage import Storage

PAGE_BYTES = 65_536
_BUFFER_BYTES = 16 * PAGE_BYTES


@dataclass(frozen=True)
class PageChecksums:
    """The size of a file in bytes, and the CRC-32 of each of its pages (uint32)."""

    n_bytes: int
    checksums: np.ndarray


def n_pages(n_bytes: int) -> int:
    """Pages of a file of that size; the last one may be shorter."""
    return -(-n_bytes // PAGE_BYTES)


class CheckedFileWriter:
    """Writes one new file and computes the checksums of its pages."""

    def __init__(self, storage: Storage, path: Path) -> None:
        self._storage = storage
        self._file = storage.create(path)
        self._buffer = bytearray()
        self._checksums: list[int] = []
        self.n_bytes = 0

    def append(self, content: bytes | memoryview) -> None:
        """Add to the end of the file."""
        rest = memoryview(content).cast("B")
        self.n_bytes += rest.nbytes
        while rest.nbytes:
            taken = min(rest.nbytes, _BUFFER_BYTES - len(self._buffer))
            self._buffer += rest[:taken]
            rest = rest[taken:]
            if len(self._buffer) == _BUFFER_BYTES:
                self._write_buffer()

    def finish(self) -> PageChecksums:
        """Write what is left, force it to disk and close."""
        try:
            self._write_buffer()
            self._storage.sync(self._file)
        finally:
            self._storage.close(self._file)
        return PageChecksums(self.n_bytes, np.array(self._checksums, dtype="<u4"))

    def abandon(self) -> None:
        """Close, whatever has been written."""
        self._storage.close(self._file)

    def _write_buffer(self) -> None:
        """Every write except the last is of whole pages, so that no checksum spans two writes."""
        with memoryview(self._buffer) as content:
            for start in range(0, len(content), PAGE_BYTES):
                self._checksums.append(zlib.crc32(content[start : start + PAGE_BYTES]))
            if content.nbytes:
                self._storage.append(self._file, content)
        self._buffer.clear()


class CheckedFile:
    """A file mapped into memory, with the checksums its pages must have.

    Raises FileNotFoundError if the file is missing, FileFormatError if its size is not what was written.
    """

    def __init__(self, path: Path, pages: PageChecksums) -> None:
        self.path = path
        self._pages = pages
        # One byte a page, 1 = checked: searching it costs little more than a function call.
        self._checked = bytearray(n_pages(pages.n_bytes))
        self._is_checked = not self._checked
        self._mapping = _map(path, pages.n_bytes)
        self.content = np.frombuffer(self._mapping, dtype=np.uint8) if self._mapping else np.empty(0, dtype=np.uint8)

    def verify(self, start: int, stop: int) -> None:
        """Check the pages of bytes [start, stop) that have not been checked before."""
        if self._is_checked:
            return
        last = n_pages(stop)
        page = self._checked.find(0, start // PAGE_BYTES, last)
        if page < 0:
            return
        while page >= 0:
            self._verify_page(page)
            page = self._checked.find(0, page, last)
        self._is_checked = 0 not in self._checked

    @property
    def n_pages(self) -> int:
        return len(self._checked)

    def damaged_pages(self, read: Callable[[int], None] | None = None) -> list[int]:
        """Check every page again; returns the numbers of those that do not match their checksums.

        read : called with the bytes of some pages after they were read
        """
        damaged = []
        for page in range(len(self._checked)):
            if not self._matches(page):
                damaged.append(page)
            if read is not None:
                read(min(PAGE_BYTES, self._pages.n_bytes - page * PAGE_BYTES))
        return damaged

    def release(self) -> None:
        """Give back the memory that the mapping uses; what is read later is read from disk again."""
        if self._mapping:
            self._mapping.madvise(mmap.MADV_DONTNEED)

    def _verify_page(self, page: int) -> None:
        if not self._matches(page):
            start = page * PAGE_BYTES
            stop = min(start + PAGE_BYTES, self._pages.n_bytes)
            raise FileFormatError(
                f"{self.path} was altered after it was written: its bytes {start:,} to {stop:,} do not match their "
                f"checksum. Restore the file from a copy, or build the index again."
            )
        self._checked[page] = 1

    def _matches(self, page: int) -> bool:
        content = self.content[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
        return zlib.crc32(content.data) == int(self._pages.checksums[page])


def _map(path: Path, n_bytes: int) -> mmap.mmap | None:
    """The file's bytes, read-only; None for an empty file, which cannot be mapped."""
    with open(path, "rb") as stream:
        found = os.fstat(stream.fileno()).st_size
        if found != n_bytes:
            raise FileFormatError(
                f"{path} has {found:,} bytes, but {n_bytes:,} were written: it was truncated or replaced. "
                f"Restore the file from a copy, or build the index again."
            )
        if n_bytes == 0:
            return None
        return mmap.mmap(stream.fileno(), n_bytes, access=mmap.ACCESS_READ)
