"""The documents' original fields: lines of JSON, some documents together in one compressed block.

A block is the number of its bytes before compression (4 bytes, little-endian), then zstd; decompressed, it is one line
of JSON a document, each ended by a line feed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.index.segments.structure import check_range

if TYPE_CHECKING:
    from rankwell.index.segments.segment import Segment

BLOCK_BYTES = 32 * 1024
# 4 % smaller than level 1, and read as fast; higher levels compress at a third of the speed for another 4 %.
LEVEL = 3
BLOCKS_AT_A_TIME = 32
LARGE_BLOCK_BYTES = 2**20
# Blocks that are kept decompressed, about 3 MB; those of long documents are not.
_BLOCKS_KEPT = 100
_LARGEST_KEPT = 4 * BLOCK_BYTES


class StoredFields:
    """Collects documents' lines into blocks, and returns the ``stored`` arrays piece by piece."""

    def __init__(self) -> None:
        import pyarrow

        self._codec = pyarrow.Codec("zstd", compression_level=LEVEL)
        self._lines: list[bytes] = []
        self._line_bytes = 0
        self._blocks: list[bytes] = []
        self._block_bytes = 0
        self._offsets, self._end = [0], 0
        self._first_docs, self._n_docs = [0], 0

    @property
    def n_bytes(self) -> int:
        """How much is in memory."""
        return self._line_bytes + self._block_bytes

    def add(self, line: bytes) -> None:
        """Add the next document's line of JSON, without a line feed."""
        self._lines.append(line)
        self._line_bytes += len(line)
        if self._line_bytes >= BLOCK_BYTES:
            self._close_block()

    def add_block(self, block: bytes, n_docs: int) -> None:
        """Add the next `n_docs` documents as an existing block."""
        self._close_block()
        self._append(block, n_docs)

    def take(self) -> Iterator[tuple[str, np.ndarray]]:
        """The parts of the arrays that were not taken yet, without a block that is not full: names and pieces."""
        blocks, self._blocks, self._block_bytes = self._blocks, [], 0
        for start in range(0, len(blocks), BLOCKS_AT_A_TIME):
            yield "stored.data", np.frombuffer(b"".join(blocks[start : start + BLOCKS_AT_A_TIME]), dtype=np.uint8)
        yield "stored.offsets", np.array(self._offsets, dtype=np.int64)
        yield "stored.first_doc", np.array(self._first_docs, dtype=np.int32)
        self._offsets, self._first_docs = [], []

    def finish(self) -> Iterator[tuple[str, np.ndarray]]:
        """The last pieces."""
        self._close_block()
        return self.take()

    def _close_block(self) -> None:
        if self._lines:
            n_docs, n_bytes = len(self._lines), self._line_bytes + len(self._lines)
            compress = self._compress_pieces if n_bytes > LARGE_BLOCK_BYTES else self._compress
            block = n_bytes.to_bytes(4, "little") + compress()
            self._lines, self._line_bytes = [], 0
            self._append(block, n_docs)

    def _compress(self) -> bytes:
        compressed: bytes = self._codec.compress(b"\n".join([*self._lines, b""]), asbytes=True)
        return compressed

    def _compress_pieces(self) -> bytes:
        """Compress without allocating buffers of the input's size and of the largest possible output."""
        import pyarrow

        target = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(target, "zstd") as stream:
            for line in self._lines:
                for start in range(0, len(line), LARGE_BLOCK_BYTES):
                    stream.write(memoryview(line)[start : start + LARGE_BLOCK_BYTES])
                stream.write(b"\n")
        compressed: bytes = target.getvalue().to_pybytes()
        return compressed

    def _append(self, block: bytes, n_docs: int) -> None:
        self._blocks.append(block)
        self._block_bytes += len(block)
        self._end += len(block)
        self._n_docs += n_docs
        self._offsets.append(self._end)
        self._first_docs.append(self._n_docs)


class StoredBlocks:
    """Blocks of an index that were read last, in lines: documents that are shown often are not decompressed each time.

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Segment, int], list[bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def line(self, segment: Segment, doc: int) -> bytes:
        """The line of JSON of a segment's document, empty if its block does not have it."""
        first_docs = segment["stored.first_doc"]
        block = int(np.searchsorted(first_docs, doc, side="right")) - 1
        place = doc - int(first_docs[block])
        with self._lock:
            lines = self._kept.get((segment, block))
            if lines is not None:
                self._kept.move_to_end((segment, block))
        if lines is None:
            lines = self._read(segment, block)
        return lines[place] if place < len(lines) else b""

    def _read(self, segment: Segment, block: int) -> list[bytes]:
        segment.verify_rows("stored.offsets", block, block + 2)
        start, stop = (int(offset) for offset in segment.unverified("stored.offsets")[block : block + 2])
        check_range(segment, "stored.data", start, stop)
        segment.verify_rows("stored.data", start, stop)
        lines = decode_stored(segment.unverified("stored.data")[start:stop])
        if sum(map(len, lines)) <= _LARGEST_KEPT:
            with self._lock:
                self._kept[segment, block] = lines
                if len(self._kept) > _BLOCKS_KEPT:
                    self._kept.popitem(last=False)
        return lines


def decode_stored(block: np.ndarray) -> list[bytes]:
    """The lines of JSON of one block of ``stored.data``, uint8."""
    import pyarrow

    data = block.data
    n_bytes = int.from_bytes(data[:4], "little")
    try:
        text: bytes = pyarrow.Codec("zstd").decompress(data[4:], n_bytes, asbytes=True)
    except (OSError, pyarrow.ArrowException) as cause:
        raise FileFormatError("a block of stored fields is damaged. Restore the index, or build it again.") from cause
    return text.split(b"\n")[:-1]
