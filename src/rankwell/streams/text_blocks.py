"""A byte stream cut into blocks of whole lines, in a few buffers that are reused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankwell.kernels.letor_text.reference import BYTE_ORDER_MARK
from rankwell.streams.decompression import ByteStream

LINE_FEED = ord("\n")
BLOCK_BYTES = 2**20
# The first block is shorter: other blocks wait until it says what rows look like.
FIRST_BLOCK_BYTES = 2**16
LONGEST_LINE = 2**26


@dataclass
class TextBlock:
    """Whole lines, the last one ended by a line feed as well."""

    buffer: bytearray
    n_bytes: int
    first_line: int  # its number in the file, from 1
    n_lines: int

    @property
    def text(self) -> np.ndarray:
        """The bytes, uint8 (n_bytes,)."""
        return np.frombuffer(self.buffer, dtype=np.uint8, count=self.n_bytes)


class TextBlocks:
    """The blocks of a stream, in order.

    Parameters
    ----------
    stream : ByteStream
    block_bytes : int
        How long a block is, unless a line is longer.
    longest_line : int
        A line of more bytes is left out. Without such a cap a damaged file without line feeds would be read into memory
        as one line.
    """

    def __init__(self, stream: ByteStream, *, block_bytes: int = BLOCK_BYTES, longest_line: int = LONGEST_LINE) -> None:
        self.stream = stream
        self._buffer_bytes = min(block_bytes, longest_line + 1) + 1
        self._longest_line = longest_line
        self._free: list[bytearray] = []
        self._begun_line = b""
        self._next_line = 1

    def read(self, on_long_line: Callable[[int, int], None]) -> Iterator[TextBlock]:
        """The blocks; `on_long_line` is called with the number of a line that is left out, and the bytes allowed."""
        if self.stream.peek(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK:
            self.stream.readinto(memoryview(bytearray(len(BYTE_ORDER_MARK))))
        is_last = False
        while not is_last:
            buffer, n_bytes, is_last = self._fill(on_long_line)
            if n_bytes == 0:
                continue
            block = _counted(buffer, n_bytes, self._next_line)
            del buffer
            self._next_line += block.n_lines
            yield block

    def release(self, block: TextBlock) -> None:
        """Give back the buffer of a block that is no longer needed."""
        # A buffer that had to grow for one long line is not kept for reuse.
        if len(block.buffer) == self._buffer_bytes:
            self._free.append(block.buffer)
        else:
            block.buffer = bytearray()

    def _fill(self, on_long_line: Callable[[int, int], None]) -> tuple[bytearray, int, bool]:
        """A buffer that starts with whole lines, how many bytes they take, and whether the stream ended with them."""
        buffer = self._free.pop() if self._free else bytearray(self._buffer_bytes)
        filled = len(self._begun_line)
        if filled >= len(buffer):
            buffer = bytearray(min(2 * filled, self._longest_line + 2))
        buffer[:filled] = self._begun_line
        self._begun_line = b""
        # One byte is kept back for the line feed that the last line may lack.
        end_of_room = len(buffer) - 1
        if self._next_line == 1 and filled == 0:
            end_of_room = min(FIRST_BLOCK_BYTES, end_of_room)
        while True:
            room = memoryview(buffer)[filled:end_of_room]
            n_read = self.stream.readinto(room)
            filled += n_read
            if n_read < len(room):
                if filled > 0 and buffer[filled - 1] != LINE_FEED:
                    buffer[filled] = LINE_FEED
                    filled += 1
                return buffer, filled, True
            end = buffer.rfind(b"\n", 0, filled) + 1
            if end > 0:
                self._begun_line = bytes(memoryview(buffer)[end:filled])
                return buffer, end, False
            if filled < len(buffer) - 1:
                end_of_room = len(buffer) - 1
                continue
            if filled > self._longest_line:
                on_long_line(self._next_line, self._longest_line)
                self._leave_out_line(buffer)
                return buffer, 0, False
            buffer = _grown(buffer, min(2 * len(buffer), self._longest_line + 2))
            end_of_room = len(buffer) - 1

    def _leave_out_line(self, buffer: bytearray) -> None:
        """Skip to the end of the current line."""
        self._next_line += 1
        while n_read := self.stream.readinto(memoryview(buffer)[: self._buffer_bytes]):
            end = buffer.find(b"\n", 0, n_read) + 1
            if end > 0:
                self._begun_line = bytes(memoryview(buffer)[end:n_read])
                return


def _counted(buffer: bytearray, n_bytes: int, first_line: int) -> TextBlock:
    """The block with its lines counted."""
    text = np.frombuffer(buffer, dtype=np.uint8, count=n_bytes)
    return TextBlock(buffer, n_bytes, first_line, int(np.count_nonzero(text == LINE_FEED)))


def _grown(buffer: bytearray, n_bytes: int) -> bytearray:
    larger = bytearray(n_bytes)
    larger[: len(buffer)] = buffer
    return larger
