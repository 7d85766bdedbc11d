"""Batches of documents' fields, to be cut into words.

A field is added as one text, as the values of a list, or as the pieces of a long text: each is a field of the batch
with a *gap*, how many positions are between it and the text before it in the same stream of the document.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from rankwell.kernels.postings.inversion import NEW_FIELD

# Positions between the texts of a list, so that no phrase and no window of words extends from one into the next.
VALUE_GAP = 100
# Positions are 32 bits.
MOST_POSITIONS = 2**31 - 1

# ASCII characters that are neither letters nor digits always separate words.
SEPARATOR = re.compile(r"[\x00-/:-@\[-`{-\x7f]")


def most_positions(texts: Iterable[str]) -> int:
    """An upper bound of the positions that the texts of a list take: a word has at least one character."""
    return sum(len(text) + VALUE_GAP for text in texts)


def text_pieces(text: str, n_characters: int) -> Iterator[str]:
    """A text as pieces of about `n_characters`, split between words."""
    start = 0
    while len(text) - start > n_characters:
        found = SEPARATOR.search(text, start + n_characters)
        if found is None:
            break
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


class TextBatch:
    """Fields in the order of documents and streams."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.n_bytes = 0
        self._docs, self._streams, self._gaps = array("i"), array("i"), array("b")

    def add(self, text: str, doc: int, stream: int, gap: int = NEW_FIELD) -> None:
        # Half of a surrogate pair, which UTF-8 cannot hold, becomes a question mark: it separates words, as the half
        # would.
        part = text.encode("utf-8", "replace")
        self.parts.append(part)
        self.n_bytes += len(part)
        self._docs.append(doc)
        self._streams.append(stream)
        self._gaps.append(gap)

    def fields(self) -> tuple[np.ndarray, np.ndarray]:
        """The text, uint8, and where its fields start and end, int64 (n_fields + 1,)."""
        field_ptr = np.zeros(len(self.parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in self.parts], out=field_ptr[1:])
        return np.frombuffer(b"".join(self.parts), dtype=np.uint8), field_ptr

    def owners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The document (int32), the stream (int32) and the gap (int8) of each field."""
        return (
            np.array(self._docs, dtype=np.int32),
            np.array(self._streams, dtype=np.int32),
            np.array(self._gaps, dtype=np.int8),
        )
