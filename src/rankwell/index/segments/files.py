"""A segment on disk: its arrays in checked files, and a table of their places and of the checksums of all pages.

Arrays that stay small share one file (NAME.arrays), so that a commit of a few documents forces two files to disk and
not two dozen; an array that outgrows its buffer gets its own file (NAME.postings, ...). The table (NAME.table) is
one line of JSON and then the checksums of all pages, file after file, as uint32. The manifest has a digest of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.index.commits.checked_file import CheckedFile, CheckedFileWriter, PageChecksums, n_pages
from rankwell.index.commits.storage import Storage, digest_of, read_digested, write_file
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.index.segments.structure import check_meta, expected_sizes
from rankwell.streams.json_text import parse_json

# Arrays up to this size stay in memory until the end; there are at most 30.
_BUFFER_BYTES = 2**20
# Arrays begin at multiples of this in the file they share: NumPy and compiled loops need them aligned.
_ALIGNMENT = 64


@dataclass(frozen=True)
class ArrayPlace:
    """Where an array is stored: in which of the segment's files, from which byte, how many elements."""

    file: str
    start: int
    size: int


class SegmentFilesSink:
    """Writes one segment to disk; a `rankwell.index.segments.sink.SegmentSink`.

    After `finish` every file is forced to disk (their names are not until the folder is) and `digest` is that of the
    table. `abandon` closes what is open; the caller removes the files.
    """

    def __init__(self, storage: Storage, folder: Path, name: str) -> None:
        self._storage = storage
        self._folder = folder
        self._name = name
        self._buffers: dict[str, bytearray] = {array: bytearray() for array in ARRAYS}
        self._writers: dict[str, CheckedFileWriter] = {}
        self.digest = ""

    def append(self, name: str, values: np.ndarray) -> None:
        content = np.ascontiguousarray(values, dtype=ARRAYS[name]).data.cast("B") if len(values) else b""
        if name in self._writers:
            self._writers[name].append(content)
            return
        buffer = self._buffers[name]
        buffer += content
        if len(buffer) > _BUFFER_BYTES:
            self._writers[name] = CheckedFileWriter(self._storage, self._folder / f"{self._name}.{name}")
            self._writers[name].append(bytes(buffer))
            buffer.clear()

    def finish(self, meta: Mapping[str, Any]) -> None:
        places: dict[str, ArrayPlace] = {}
        pages = {"arrays": self._write_small_arrays(places)}
        for name, writer in self._writers.items():
            pages[name] = writer.finish()
            places[name] = ArrayPlace(name, 0, writer.n_bytes // np.dtype(ARRAYS[name]).itemsize)
        self._writers.clear()
        table = _table_bytes(meta, pages, places)
        write_file(self._storage, self._folder / f"{self._name}.table", table)
        self.digest = digest_of(table)

    def abandon(self) -> None:
        """Stop after an error, here or in the caller."""
        for writer in self._writers.values():
            writer.abandon()
        self._writers.clear()

    def _write_small_arrays(self, places: dict[str, ArrayPlace]) -> PageChecksums:
        writer = CheckedFileWriter(self._storage, self._folder / f"{self._name}.arrays")
        self._writers["arrays"] = writer
        for name in ARRAYS:
            if name not in self._writers:
                writer.append(bytes(-writer.n_bytes % _ALIGNMENT))
                size = len(self._buffers[name]) // np.dtype(ARRAYS[name]).itemsize
                places[name] = ArrayPlace("arrays", writer.n_bytes, size)
                writer.append(bytes(self._buffers[name]))
        del self._writers["arrays"]
        return writer.finish()


class SegmentFiles:
    """The files of one segment, opened: the table is checked at once, pages when they are read.

    Raises FileNotFoundError if a file is missing (a merge may have replaced the segment: read the manifest again).
    """

    def __init__(self, folder: Path, name: str, digest: str) -> None:
        self.name = name
        self.table_path = folder / f"{name}.table"
        self.meta, pages, self._places = _read_table(self.table_path, digest)
        self.files = {key: CheckedFile(folder / f"{name}.{key}", content) for key, content in pages.items()}

    @property
    def n_bytes(self) -> int:
        """Bytes of all files except the table."""
        return sum(len(file.content) for file in self.files.values())

    def segment(self) -> Segment:
        """The arrays, mapped into memory."""
        arrays = {}
        for name, dtype in ARRAYS.items():
            place = self._places[name]
            content = self.files[place.file].content
            stop = place.start + place.size * np.dtype(dtype).itemsize
            arrays[name] = content[place.start : stop].view(dtype)
        return Segment(arrays, self.meta, name=self.name, verifier=self._verify, release=self._release)

    def _verify(self, array: str, start: int, stop: int) -> None:
        place = self._places[array]
        self.files[place.file].verify(place.start + start, place.start + stop)

    def _release(self) -> None:
        for file in self.files.values():
            file.release()


def _table_bytes(
    meta: Mapping[str, Any], pages: Mapping[str, PageChecksums], places: Mapping[str, ArrayPlace]
) -> bytes:
    header = {
        "meta": meta,
        "files": {name: content.n_bytes for name, content in pages.items()},
        "arrays": {name: [places[name].file, places[name].start, places[name].size] for name in ARRAYS},
    }
    line = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    return b"\n".join([line, b"".join(content.checksums.astype("<u4").tobytes() for content in pages.values())])


def _read_table(path: Path, digest: str) -> tuple[dict[str, Any], dict[str, PageChecksums], dict[str, ArrayPlace]]:
    line, _, checksums = read_digested(path, digest).partition(b"\n")
    try:
        header = parse_json(line)
        pages = _page_checksums(header["files"], np.frombuffer(checksums, dtype="<u4"))
        # Tables of releases without vectors have no place for them.
        recorded = {"documents.vectors": ["arrays", 0, 0], **header["arrays"]}
        places = {name: ArrayPlace(*recorded[name]) for name in ARRAYS}
        meta = check_meta(header["meta"])
        _check_places(meta, pages, places)
        return meta, pages, places
    except (AttributeError, LookupError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} is not the table of a segment ({cause!r}). Build the index again.") from cause


def _page_checksums(sizes: Mapping[str, int], values: np.ndarray) -> dict[str, PageChecksums]:
    """The checksums of each file, one after another in `values`."""
    pages: dict[str, PageChecksums] = {}
    start = 0
    for name, n_bytes in sizes.items():
        # The name becomes part of a path.
        if name != "arrays" and name not in ARRAYS:
            raise ValueError(f"there is no array {name!r}")
        if type(n_bytes) is not int or n_bytes < 0:
            raise ValueError(f"{name} has {n_bytes!r} bytes")
        stop = start + n_pages(n_bytes)
        pages[name] = PageChecksums(n_bytes, values[start:stop])
        start = stop
    if start != len(values):
        raise ValueError(f"it has {len(values)} checksums for {start} pages")
    return pages


def _check_places(
    meta: Mapping[str, Any], pages: Mapping[str, PageChecksums], places: Mapping[str, ArrayPlace]
) -> None:
    """Whether every array is within its file, aligned, and of the size that the segment's counts say."""
    for name, place in places.items():
        if type(place.start) is not int or type(place.size) is not int or place.start < 0 or place.size < 0:
            raise ValueError(f"{name} is nowhere")
        end = place.start + place.size * np.dtype(ARRAYS[name]).itemsize
        if place.start % _ALIGNMENT or end > pages[place.file].n_bytes:
            raise ValueError(f"{name} is not within its file")
    for name, size in expected_sizes(meta, {name: place.size for name, place in places.items()}).items():
        if places[name].size != size:
            raise ValueError(f"{name} has {places[name].size} elements, not {size}")
