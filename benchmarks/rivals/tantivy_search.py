"""tantivy's search over documents that are given as words, one segment, through its Python interface."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np

NAME = "tantivy"
IS_INSTALLED = find_spec("tantivy") is not None
_HEAP_BYTES = 1 << 30


class TantivyIndex:
    """An index of texts whose words are separated by blanks and taken as they are.

    Parameters
    ----------
    texts : iterable of str
    folder : where the index is written
    """

    def __init__(self, texts: Iterable[str], folder: str) -> None:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="position")
        self._index: Any = tantivy.Index(builder.build(), path=folder)
        # One thread writes the documents in order; a heap that holds them all makes one segment.
        writer = self._index.writer(_HEAP_BYTES, 1)
        for text in texts:
            writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    @property
    def n_segments(self) -> int:
        return int(self._searcher.num_segments)

    def search(self, text: str, k: int) -> list[Any]:
        """(score, address) of the best k, as the library gives them: any word counts."""
        return self._searcher.search(self._index.parse_query(text, ["text"]), k, count=False).hits  # type: ignore[no-any-return]

    def found(self, text: str, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Documents and scores of the best k, of an index with one segment."""
        hits = self.search(text, k)
        return np.array([address.doc for _, address in hits], np.int64), np.array([score for score, _ in hits])


def kept_length(lengths: np.ndarray) -> np.ndarray:
    """The length that tantivy, as Lucene, keeps in one byte: exact to 40, above rounded down to 4 significant bits."""
    codes = np.arange(256 - 24)
    mantissa, shift = codes & 7, (codes >> 3) - 1
    values = np.where(shift < 0, mantissa, (mantissa | 8).astype(np.int64) << np.maximum(shift, 0))
    table = np.concatenate((np.arange(24), 24 + values))
    return table[np.searchsorted(table, lengths, side="right") - 1]
