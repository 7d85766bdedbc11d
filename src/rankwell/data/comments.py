"""Row comments: the text after `#` in LETOR files, one per row, kept as one buffer instead of a million strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np


class RowComments(Sequence[str]):
    """An immutable sequence of strings in UTF-8, stored end to end.

    Parameters
    ----------
    buffer : uint8 array
        The bytes of all comments, one after another.
    offsets : int64 array of shape (n_rows + 1,)
        Comment i is ``buffer[offsets[i]:offsets[i + 1]]``.
    """

    def __init__(self, buffer: np.ndarray, offsets: np.ndarray) -> None:
        self.buffer = np.ascontiguousarray(buffer, dtype=np.uint8)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> RowComments:
        encoded = [string.encode("utf-8", "surrogateescape") for string in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return RowComments(self.buffer, self.offsets[start : max(start, stop) + 1])
            return self.take(np.array(range(start, stop, step), dtype=np.int64))
        row = range(len(self))[index]
        text = self.buffer[self.offsets[row] : self.offsets[row + 1]].tobytes()
        return text.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        whole = self.buffer.data
        ends = self.offsets.tolist()
        for start, end in pairwise(ends):
            yield whole[start:end].tobytes().decode("utf-8", "surrogateescape")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def take(self, rows: np.ndarray) -> RowComments:
        """The comments of `rows`, in that order."""
        starts, ends = self.offsets[rows], self.offsets[np.asarray(rows) + 1]
        offsets = np.zeros(len(starts) + 1, dtype=np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        whole = self.buffer.data
        texts = b"".join([whole[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        return RowComments(np.frombuffer(texts, dtype=np.uint8), offsets)
