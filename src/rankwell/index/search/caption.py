"""A caption: a piece of a document's stored text that shows why it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwell.corpus.nested_fields import flattened
from rankwell.index.query.tree import Prefix, Similar, scoring_leaves

if TYPE_CHECKING:
    from rankwell.index.query.query import Query
    from rankwell.index.text.analysis import Analysis

_LONGEST_TEXT = 100_000
_LEAD = 20  # characters before the first hit
# A word: its first character, one after its last, and its term.
Hit = tuple[int, int, bytes | None]


class Caption(NamedTuple):
    """A piece of text, and where the query's words are in it: pairs (first character, one after the last)."""

    text: str
    hits: tuple[tuple[int, int], ...] = ()


def make_caption(fields: Mapping[str, Any], query: Query, analysis: Analysis, *, length: int = 160) -> str:
    """At most `length` characters of the text that holds most of the query's different terms, as it is written.

    Of equally good pieces the first one of the first field; without any hit the beginning of the first text. White
    space and control characters become single blanks, so that a caption is one line and safe to print to a terminal.
    """
    return find_caption(fields, query, analysis, length=length).text


def find_caption(fields: Mapping[str, Any], query: Query, analysis: Analysis, *, length: int = 160) -> Caption:
    """The same with the places of the words that were found, to be highlighted."""
    wanted = _Wanted(query)
    texts = [_one_line(text) for name, value in flattened(fields).items() if name != "id" for text in _texts(value)]
    best, best_found = Caption(next((text[:length] for text in texts if text), "")), 0
    for text in texts:
        if hits := _hits(text, wanted, analysis):
            caption, found = _best_piece(text, hits, length)
            if found > best_found:
                best, best_found = caption, found
    return best


class _Wanted:
    """The terms that a query is found by: its own, similar ones, and those that begin as its prefixes do."""

    def __init__(self, query: Query) -> None:
        leaves = [] if query.tree is None else list(scoring_leaves(query.tree))
        self.terms = set(query.terms)
        self.terms.update(term for leaf in leaves if isinstance(leaf, Similar) for term, _ in leaf.terms)
        self.prefixes = tuple(leaf.start for leaf in leaves if isinstance(leaf, Prefix))

    def __contains__(self, term: bytes | None) -> bool:
        return term is not None and (term in self.terms or term.startswith(self.prefixes))


def _texts(value: Any) -> list[str]:
    """The texts of a stored field: one, those of a list, or none."""
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _one_line(text: str) -> str:
    line = " ".join(text[:_LONGEST_TEXT].split())
    if line.isprintable():
        return line
    return " ".join("".join(character if character.isprintable() else " " for character in line).split())


def _hits(text: str, terms: _Wanted, analysis: Analysis) -> list[Hit]:
    """The words of a text that are wanted."""
    data = text.encode("utf-8", "replace")
    if not terms.prefixes and (words := analysis.short_text_words(data)) is not None:
        return _occurrences(data, analysis.memory.with_terms(words, terms.terms))
    located = _located(data, analysis.word_spans(data), analysis)
    return [(start, stop, term) for start, stop, term in located if term in terms]


def _occurrences(data: bytes, terms: Mapping[bytes, bytes]) -> list[Hit]:
    """The places of words, each with its term, in a text of ASCII characters."""
    hits: list[Hit] = []
    for word, term in terms.items():
        start = data.find(word)
        while start >= 0:
            stop = start + len(word)
            # A part of a longer word is another word.
            if not (data[start - 1 : start].isalnum() or data[stop : stop + 1].isalnum()):
                hits.append((start, stop, term))
            start = data.find(word, stop)
    return sorted(hits)


def _best_piece(text: str, hits: Sequence[Hit], length: int) -> tuple[Caption, int]:
    """The piece of a text with most of the terms, and how many it has; it begins shortly before its first hit."""
    best_start, most = 0, 0
    first = 0
    for last in range(len(hits)):
        while hits[last][1] - hits[first][0] > length:
            first += 1
        found = len({term for _, _, term in hits[first : last + 1]})
        if found > most:
            best_start, most = hits[first][0], found
    start = max(min(best_start - _LEAD, len(text) - length), 0)
    if start > 0:
        # From the beginning of a word on.
        blank = text.find(" ", start, best_start)
        start = best_start if blank < 0 else blank + 1
    end = start + length
    if end < len(text) and text[end] != " ":
        # Up to the end of a word, unless that is the only one.
        blank = text.rfind(" ", start, end)
        end = end if blank < 0 else blank
    dots_before, dots_after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(dots_before) - start
    shown = tuple((first + shift, last + shift) for first, last, _ in hits if start <= first and last <= end)
    return Caption(dots_before + text[start:end].strip() + dots_after, shown), most


def _located(data: bytes, spans: Sequence[tuple[int, int]], analysis: Analysis) -> list[Hit]:
    """The words of a text in UTF-8 that are at `spans`."""
    terms = [analysis.memory.term(data[start:stop]) for start, stop in spans]
    if data.isascii():
        return [(start, stop, term) for (start, stop), term in zip(spans, terms, strict=True)]
    # Character c begins at byte starts[c].
    starts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
    places = np.searchsorted(starts, np.array(spans, dtype=np.int64).reshape(-1, 2))
    return [(first, last, term) for (first, last), term in zip(places.tolist(), terms, strict=True)]
