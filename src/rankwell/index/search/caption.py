"""A caption: a piece of a document's stored text that shows why it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwell.corpus.nested_fields import flattened
from rankwell.index.query.tree import Phrase, Prefix, Similar, Word, scoring_leaves
from rankwell.index.search.indexed_text import LEAST_INDEXED, IndexedText
from rankwell.kernels.words.character_kinds import JOINERS

if TYPE_CHECKING:
    from rankwell.index.query.query import Query
    from rankwell.index.search.indexed_text import DocumentWords
    from rankwell.index.segments.segment import Segment
    from rankwell.index.text.analysis import Analysis

_LONGEST_TEXT = 100_000
_LEAD = 20  # characters before the first hit
# What is no part of a word, as a blank.
_BLANKS = bytes(byte if bytes([byte]).isalnum() else 32 for byte in range(256))
# A control character, as a blank.
_LINE = bytes(byte if 32 <= byte != 127 else 32 for byte in range(256))
# A word: its first character, one after its last, and its term, or the number that it has.
Hit = tuple[int, int, bytes | int | None]


class Caption(NamedTuple):
    """A piece of text, and where the query's words are in it: pairs (first character, one after the last)."""

    text: str
    hits: tuple[tuple[int, int], ...] = ()


def make_caption(fields: Mapping[str, Any], query: Query, analysis: Analysis, *, length: int = 160) -> str:
    """At most `length` characters of the text that holds most of the query's different terms, as it is written.

    Of equally good pieces the first one of the first field; without any hit the beginning of the first text. White
    space, control characters and others that cannot be printed become single blanks, so that a caption is one line and
    safe to print to a terminal; characters that join the parts of a word (soft hyphen, zero-width joiners) stay.
    """
    return find_caption(fields, query, analysis, length=length).text


def find_caption(fields: Mapping[str, Any], query: Query, analysis: Analysis, *, length: int = 160) -> Caption:
    """The same with the places of the words that were found, to be highlighted."""
    return CaptionTexts(fields, analysis).caption(WantedTerms(query), length=length)


class CaptionTexts:
    """The texts of a document, ready to make captions for several queries.

    Parameters
    ----------
    words : DocumentWords, optional
        Where the document has terms by the forward index, for the texts of which that is quicker.

    Attributes
    ----------
    n_terms : how many different terms each text has, added up
    """

    def __init__(self, fields: Mapping[str, Any], analysis: Analysis, words: DocumentWords | None = None) -> None:
        self._analysis = analysis
        self._texts = [
            _made_ready(name, text, analysis, words if text is value else None)
            for name, value in flattened(fields).items()
            if name != "id"
            for text in _texts(value)
        ]
        self.n_terms = sum(text.n_terms for text in self._texts)

    def caption(self, wanted: WantedTerms, *, length: int = 160) -> Caption:
        """See `find_caption`."""
        best, most = None, 0
        for place, one in enumerate(self._texts):
            hits = one.hits(wanted, most)
            if hits is None:
                one = self._texts[place] = _CaptionText(one.text, self._analysis)
                hits = one.hits(wanted, most)
            if hits:
                caption, found = _best_piece(one.text, hits, length)
                if found > most:
                    best, most = caption, found
        return best or Caption(next((one.text[:length] for one in self._texts if one.text), ""))


class WantedTerms:
    """The terms that a query is found by: its own, synonyms, similar ones, and those that begin as its prefixes do."""

    def __init__(self, query: Query) -> None:
        leaves = [] if query.tree is None else list(scoring_leaves(query.tree))
        self._terms = set(query.terms)
        self._terms.update(term for leaf in leaves if isinstance(leaf, Similar) for term, _ in leaf.terms)
        self._terms.update(leaf.term for leaf in leaves if isinstance(leaf, Word))
        self._terms.update(term for leaf in leaves if isinstance(leaf, Phrase) for term in leaf.terms)
        self._prefixes = tuple(leaf.start for leaf in leaves if isinstance(leaf, Prefix))
        self._numbers: dict[Segment, np.ndarray] = {}

    def among(self, terms: Mapping[bytes, Any]) -> list[bytes]:
        """Those of the terms of a text that are wanted."""
        found = list(terms.keys() & self._terms)
        if self._prefixes:
            found += [term for term in terms if term.startswith(self._prefixes) and term not in self._terms]
        return found

    def numbers(self, segment: Segment) -> np.ndarray:
        """The numbers of the terms of a segment that are wanted, int32, ascending."""
        known = self._numbers.get(segment)
        if known is None:
            numbers = sorted({segment.term_number(term) for term in self._terms} - {-1})
            ranges = [np.arange(*segment.terms_with_prefix(start), dtype=np.int32) for start in self._prefixes]
            known = self._numbers[segment] = np.unique(np.concatenate([np.array(numbers, np.int32), *ranges]))
        return known


class _CaptionText:
    """A text, and its words by their terms.

    Of a short text of ASCII characters the words are kept as they are written, between blanks, and found when they are
    wanted: most are not. Of others, every place is kept.
    """

    def __init__(self, text: str, analysis: Analysis) -> None:
        self.text, data = text, text.encode("utf-8", "replace")
        self._words: dict[bytes, list[bytes]] = {}
        self._spaced = b""
        self._places: dict[bytes, list[Hit]] = {}
        words = analysis.short_text_words(data)
        if words is not None:
            self._spaced = _spaced(data)
            for word in set(words):
                if (term := analysis.memory.term(word)) is not None:
                    self._words.setdefault(term, []).append(b" " + word + b" ")
        else:
            for start, stop, term in _located(data, analysis.word_spans(data), analysis):
                if term is not None:
                    self._places.setdefault(term, []).append((start, stop, term))

    @property
    def n_terms(self) -> int:
        return len(self._words) + len(self._places)

    def hits(self, wanted: WantedTerms, enough: int = 0) -> list[Hit]:
        """The words that are wanted, in their order; none if they have no more than `enough` different terms."""
        terms = wanted.among(self._places or self._words)
        if len(terms) <= enough:
            return []
        if self._places:
            return sorted(hit for term in terms for hit in self._places[term])
        return _occurrences(self._spaced, terms, self._words)


def _made_ready(name: str, text: str, analysis: Analysis, words: DocumentWords | None) -> _CaptionText | IndexedText:
    """A text of a field; words : if it is the field's only text"""
    line, has_all_words = _one_line(text)
    stream = None if words is None or not has_all_words or len(line) < LEAST_INDEXED else words.stream_of(name)
    if words is None or stream is None:
        return _CaptionText(line, analysis)
    return IndexedText(line, stream, words, analysis)


def _texts(value: Any) -> list[str]:
    """The texts of a stored field: one, those of a list, or none."""
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _one_line(text: str) -> tuple[str, bool]:
    """A text, or its beginning, as one line, and whether that has the words of the text, in their order."""
    is_whole, text = len(text) <= _LONGEST_TEXT, text[:_LONGEST_TEXT]
    if text.isascii():
        return _single_blanks(text.encode().translate(_LINE).strip(b" ")).decode(), is_whole
    line = " ".join(text.split())
    if line.isprintable():
        return line, is_whole
    return " ".join("".join(map(_shown, line)).split()), is_whole


def _shown(character: str) -> str:
    """A character, or a blank in place of one that separates words and cannot be printed."""
    # A joiner (a soft hyphen) is a part of its word, which a blank would break in two; it takes no room.
    return character if character.isprintable() or character in JOINERS else " "


def _single_blanks(line: bytes) -> bytes:
    """A line, which ends with another character, with one blank in place of several: a seventh of `split`'s time."""
    if b"  " not in line:
        return line
    characters = np.frombuffer(line, np.uint8)
    is_blank = characters == ord(" ")
    return characters[:-1][~(is_blank[:-1] & is_blank[1:])].tobytes() + line[-1:]


def _spaced(data: bytes) -> bytes:
    """A text of ASCII characters with a blank before and after every word, where it is not in the text already."""
    return b" " + data.translate(_BLANKS) + b" "


def _occurrences(spaced: bytes, terms: Iterable[bytes], words: Mapping[bytes, Sequence[bytes]]) -> list[Hit]:
    """The places of the words of some terms in a text; spaced : of `_spaced`; words : by term, between blanks"""
    hits: list[Hit] = []
    find = spaced.find
    for term in terms:
        for word in words[term]:
            # The blank after a word may be the one before the next.
            step, start = len(word) - 1, find(word)
            while start >= 0:
                hits.append((start, start + step - 1, term))
                start = find(word, start + step)
    hits.sort()
    return hits


def _best_piece(text: str, hits: Sequence[Hit], length: int) -> tuple[Caption, int]:
    """The piece of a text with most of the terms, and how many it has; it begins shortly before its first hit."""
    best_start, most, n_terms = 0, 0, len({term for _, _, term in hits})
    if hits and hits[-1][1] - hits[0][0] <= length:
        best_start, most = hits[0][0], n_terms
    first = 0
    in_piece: dict[bytes | int | None, int] = {}
    for number, (_, stop, term) in enumerate(hits):
        if most == n_terms:
            break
        in_piece[term] = in_piece.get(term, 0) + 1
        # A word that is longer than a piece is one all the same.
        while first < number and stop - hits[first][0] > length:
            gone = hits[first][2]
            in_piece[gone] -= 1
            if in_piece[gone] == 0:
                del in_piece[gone]
            first += 1
        if len(in_piece) > most:
            best_start, most = hits[first][0], len(in_piece)
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
    shown = tuple([(first + shift, last + shift) for first, last, _ in hits if start <= first and last <= end])
    return Caption(dots_before + text[start:end].strip() + dots_after, shown), most


def _located(data: bytes, spans: Sequence[tuple[int, int]], analysis: Analysis) -> list[tuple[int, int, bytes | None]]:
    """The words of a text in UTF-8 that are at `spans`."""
    terms = [analysis.memory.term(data[start:stop]) for start, stop in spans]
    if data.isascii():
        return [(start, stop, term) for (start, stop), term in zip(spans, terms, strict=True)]
    # Character c begins at byte starts[c].
    starts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
    places = np.searchsorted(starts, np.array(spans, dtype=np.int64).reshape(-1, 2))
    return [(first, last, term) for (first, last), term in zip(places.tolist(), terms, strict=True)]
