"""Which documents of a segment match a condition: one byte for each document, 1 where it does."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from rankwell.index.query.tree import (
    And,
    Everything,
    Exists,
    Keyword,
    Node,
    Not,
    Nothing,
    Or,
    Phrase,
    Prefix,
    Range,
    Similar,
    Word,
)
from rankwell.index.schema import Schema
from rankwell.index.search.bm25 import WHOLE
from rankwell.index.search.list_bits import count_documents
from rankwell.index.search.phrase_lists import PhraseTerms, phrase_lists
from rankwell.index.segments.columns import keyword_column, number_column
from rankwell.index.segments.keyword_columns import MISSING, KeywordColumn
from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import Segment


class Matching:
    """Evaluates conditions, trees without groups.

    Parameters
    ----------
    schema : Schema
    columns : sequence of int
        The streams in which words without a field are looked for; (WHOLE,) for all. A phrase must occur in one of them.
    """

    def __init__(self, schema: Schema, columns: Sequence[int] = (WHOLE,)) -> None:
        self._schema, self._columns = schema, tuple(columns)

    def marks(self, segment: Segment, node: Node) -> np.ndarray:
        """uint8 (n_docs,), the caller's own: 1 where a document matches, deleted or not."""
        if isinstance(node, And):
            marks = self.marks(segment, node.parts[0]) if node.parts else np.ones(segment.n_docs, np.uint8)
            for part in node.parts[1:]:
                marks &= self.marks(segment, part)
            return marks
        if isinstance(node, Not):
            marks = self.marks(segment, node.part)
            marks ^= 1
            return marks
        if isinstance(node, Range):
            return self._range(segment, node)
        if isinstance(node, Keyword):
            return self._keyword(segment, node)
        if isinstance(node, Exists):
            return self._exists(segment, node.field)
        if isinstance(node, Everything):
            return np.ones(segment.n_docs, np.uint8)
        marks = np.zeros(segment.n_docs, np.uint8)
        if isinstance(node, Or):
            for part in node.parts:
                if isinstance(part, Word):
                    self._mark_term(segment, part.term, part.field, marks)
                else:
                    marks |= self.marks(segment, part)
        elif isinstance(node, Word):
            self._mark_term(segment, node.term, node.field, marks)
        elif isinstance(node, Similar):
            for term, _ in node.terms:
                self._mark_term(segment, term, node.field, marks)
        elif isinstance(node, Prefix):
            first, stop = segment.terms_with_prefix(node.start)
            self._mark_terms(segment, first, stop, node.field, marks)
        elif isinstance(node, Phrase):
            self._mark_phrase(segment, node, marks)
        elif not isinstance(node, Nothing):
            # A Near that nobody looked up would silently match nothing, and so would a Group.
            raise TypeError(f"{node!r} is not a condition: `condition_of` and `with_near_words` come before a search.")
        return marks

    def count(self, segment: Segment, node: Node) -> int:
        """How many documents match, deleted or not."""
        words = node.parts if isinstance(node, Or) else (node,)
        lists = [self._word_lists(segment, word) for word in words if isinstance(word, Word)]
        if len(lists) < len(words):
            # NumPy counts booleans many times faster than bytes.
            return int(np.count_nonzero(self.marks(segment, node).view(np.bool_)))
        return count_documents(segment, itertools.chain.from_iterable(lists))

    def _word_lists(self, segment: Segment, word: Word) -> list[int]:
        """A word's lists in the streams that are read, checked, without positions."""
        number = segment.term_number(word.term)
        if number < 0:
            return []
        columns = self._list_columns(segment, word.field, positions=False)
        lists = [number * segment.lists_per_term + column for column in columns]
        for one in lists:
            segment.verify_list(one, positions=False)
        return lists

    def _mark_term(self, segment: Segment, term: bytes, field: str | None, marks: np.ndarray) -> None:
        number = segment.term_number(term)
        if number >= 0:
            self._mark_terms(segment, number, number + 1, field, marks)

    def _mark_terms(self, segment: Segment, first: int, stop: int, field: str | None, marks: np.ndarray) -> None:
        """Mark the documents of the terms of numbers [first, stop)."""
        from rankwell.kernels.selection.filters import mark_documents

        step = segment.lists_per_term
        for column in self._list_columns(segment, field, positions=False):
            lists = range(first * step + column, stop * step + column, step)
            for one in lists:
                segment.verify_list(one, positions=False)
            mark_documents(posting_arrays(segment), lists.start, lists.stop, step, marks)

    def _mark_phrase(self, segment: Segment, phrase: Phrase, marks: np.ndarray) -> None:
        if phrase.slop == 0:
            lists = phrase_lists(segment, PhraseTerms(phrase.terms, phrase.places))
            for column in self._list_columns(segment, phrase.field, positions=True):
                marks[lists[column].docs] = 1
            return
        from rankwell.kernels.selection.filters import mark_near_phrase

        by_term = [self._lists(segment, segment.term_number(term), phrase.field) for term in phrase.terms]
        for numbers in zip(*by_term, strict=False):
            mark_near_phrase(
                posting_arrays(segment),
                np.array(numbers, np.int64),
                np.array(phrase.places, np.int64),
                phrase.slop,
                marks,
            )

    def _lists(self, segment: Segment, number: int, field: str | None) -> list[int]:
        """A term's lists with positions in the streams that are read, checked."""
        if number < 0:
            return []
        columns = self._list_columns(segment, field, positions=True)
        lists = [number * segment.lists_per_term + column for column in columns]
        for one in lists:
            segment.verify_list(one)
        return lists

    def _list_columns(self, segment: Segment, field: str | None, *, positions: bool) -> list[int]:
        """The list columns of the streams that are read; by stream where positions are wanted."""
        columns = self._columns if field is None else (self._schema.streams.index(field),)
        if columns == (WHOLE,):
            return list(range(segment.n_streams)) if positions else [segment.lists_per_term - 1]
        return [column for column in columns if column < segment.n_streams]

    def _range(self, segment: Segment, wanted: Range) -> np.ndarray:
        values = number_column(segment, self._schema.statics.index(wanted.field))
        if values is None:
            return np.zeros(segment.n_docs, np.uint8)
        # A missing value, NaN, is neither above nor below anything.
        above = values >= wanted.low if wanted.with_low else values > wanted.low
        above &= values <= wanted.high if wanted.with_high else values < wanted.high
        return above.view(np.uint8)

    def _keyword(self, segment: Segment, wanted: Keyword) -> np.ndarray:
        column = keyword_column(segment, self._schema.keyword_number(wanted.field))
        if column is None:
            return np.zeros(segment.n_docs, np.uint8)
        low = bisect_left(column.values, wanted.value)
        high = bisect_left(column.values, wanted.value + (b"\xff" if wanted.is_prefix else b"\0"))
        found = column.entries == low if high == low + 1 else (column.entries >= low) & (column.entries < high)
        return _any_entry(column, found)

    def _exists(self, segment: Segment, field: str) -> np.ndarray:
        if field in self._schema.streams:
            stream = self._schema.streams.index(field)
            if stream >= segment.n_streams:
                return np.zeros(segment.n_docs, np.uint8)
            lengths = segment["documents.lengths"].reshape(segment.n_docs, segment.lists_per_term)
            return (lengths[:, stream] > 0).view(np.uint8)
        if field in self._schema.keywords:
            column = keyword_column(segment, self._schema.keyword_number(field))
            if column is None:
                return np.zeros(segment.n_docs, np.uint8)
            return _any_entry(column, column.entries != MISSING)
        values = number_column(segment, self._schema.statics.index(field))
        return np.zeros(segment.n_docs, np.uint8) if values is None else (~np.isnan(values)).view(np.uint8)


def _any_entry(column: KeywordColumn, found: np.ndarray) -> np.ndarray:
    """Documents with an entry that was found."""
    if column.entry_ptr is None:
        return found.view(np.uint8)
    return np.maximum.reduceat(found.view(np.uint8), column.entry_ptr[:-1])
