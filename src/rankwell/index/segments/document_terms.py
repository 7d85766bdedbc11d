"""The terms of documents, read from their stored fields and cut as they were for the index.

An index knows the documents of a term, not the terms of a document. Text is cut by the kernel that builds segments:
each different word becomes a term once, in Python, and every other one is looked up. What was read is remembered,
because the first documents of one query are often those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.corpus.nested_fields import flattened
from rankwell.index.text.word_table import TermTable, WordTable

if TYPE_CHECKING:
    from rankwell.index.reader import Index

# Characters of a stream that are read.
LONGEST_TEXT = 10_000
# What is remembered: 4 bytes for each word of a document, and some hundred for each different word. More is forgotten
# at once.
_TOKENS_REMEMBERED = 2**22
_WORDS_REMEMBERED = 2**17
_of_index: WeakKeyDictionary[Index, DocumentTerms] = WeakKeyDictionary()


class DocumentTerms:
    """The terms of an index's documents; `DocumentTerms.of(index)` caches it for as long as the index lives.

    It may be used by several threads.
    """

    def __init__(self, index: Index) -> None:
        self._analysis = index.analysis
        self._streams = tuple(index.schema.streams)
        self._lock = Lock()
        self._forget()

    @classmethod
    def of(cls, index: Index) -> DocumentTerms:
        known = _of_index.get(index)
        if known is None:
            known = _of_index[index] = cls(index)
        return known

    def read(self, index: Index, docs: Sequence[int]) -> tuple[list[np.ndarray], list[bytes]]:
        """For each document its indexed words in order, as int32 numbers of terms; and the terms by their numbers.

        index : the one that this belongs to
        """
        with self._lock:
            if self._n_tokens > _TOKENS_REMEMBERED or self._table.n_words > _WORDS_REMEMBERED:
                self._forget()
            unknown = [doc for doc in dict.fromkeys(docs) if doc not in self._known]
            if unknown:
                self._cut(index, unknown)
            return [self._known[doc] for doc in docs], self._terms

    def _forget(self) -> None:
        self._words = WordTable(self._analysis.word_rule)
        self._table = TermTable(self._analysis)
        self._terms: list[bytes] = []
        self._known: dict[int, np.ndarray] = {}
        self._n_tokens = 0

    def forget_documents(self) -> None:
        """Forget the documents that were read, but not their words."""
        with self._lock:
            self._known.clear()
            self._n_tokens = 0

    def _cut(self, index: Index, docs: Sequence[int]) -> None:
        texts = [self._text_of(index, doc) for doc in docs]
        field_ptr = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int64)
        numbered = self._words.number(np.frombuffer(b"".join(texts), np.uint8), field_ptr)
        self._table.add(numbered.new_text, numbered.new_offsets)
        n_new = self._table.n_terms - len(self._terms)
        self._terms += list(islice(reversed(self._table.numbers), n_new))[::-1]
        # The last one is the word that is too long to be indexed.
        term_of_word = np.append(self._table.term_of_word(), np.int32(-1))
        numbers = term_of_word[numbered.tokens]
        for doc, (start, stop) in zip(docs, pairwise(numbered.token_ptr.tolist()), strict=True):
            own = numbers[start:stop]
            self._known[doc] = own[own >= 0]
        self._n_tokens += len(numbers)

    def _text_of(self, index: Index, doc: int) -> bytes:
        """All streams of a document as one text."""
        fields = flattened(index.stored(doc))
        texts = []
        for stream in self._streams:
            value = fields.get(stream)
            text = "\n".join(value) if isinstance(value, list) else value
            if isinstance(text, str):
                texts.append(_beginning(text))
        return "\n".join(texts).encode("utf-8", "replace")


def _beginning(text: str) -> str:
    """A text, or its beginning up to the last white space before it is too long."""
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT].rsplit(None, 1)[0]
