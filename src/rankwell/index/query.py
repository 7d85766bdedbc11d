"""Queries: words, "phrases", +required and -excluded ones, cut into terms as the documents were.

The rules. Clauses are separated by white space. ``"…"`` is a phrase: its words must occur in this order and at these
distances in one stream. ``+`` before a word means that a document must have it, ``-`` before a word or phrase that it
must not; both are operators only at the beginning of a clause; elsewhere they separate words as other punctuation does.
A phrase is required with and without ``+``. A clause of several words after an operator (``-e-mail``) is a phrase. A
quote that is not closed extends to the end. Control characters and all other characters that are not part of a word
separate words. Stop words are not indexed, so they are ignored, but keep their place in a phrase. Common words are
indexed: after an operator and in a phrase they count as other words do, as plain words only if the query has no other
terms. Exclusion takes precedence over everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.index.analysis import Analysis

MOST_TERMS = 1024

# A phrase or a word with its operator and punctuation; or a run of plain words, which is cut at once.
_CLAUSE = re.compile(
    r"""(?:(?<!\S)(?P<operator>[+-]+))?"(?P<phrase>[^"]*)"?
      | (?<!\S)(?P<sign>[+-]+)(?P<word>[^\s"]+)
      | (?P<plain>(?:(?!(?<!\S)[+-])[^"])+)
      | .""",
    re.VERBOSE | re.DOTALL,
)


class Phrase(NamedTuple):
    """Terms, and the place of each counted from the first; stop words leave gaps."""

    terms: tuple[bytes, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class Query:
    """A query, cut into terms.

    Attributes
    ----------
    terms : tuple of bytes
        Different terms in the order of their first occurrence, without excluded ones.
    frequencies : tuple of int
        How often the query has each of `terms`.
    words, places : tuple of int
        The words in order, as numbers of `terms`, and the place of each; stop words leave gaps.
    phrases : tuple of Phrase
        Of two terms or more; a document must have each of them.
    required : tuple of bytes
        Terms that a document must have, those of phrases included.
    excluded : tuple of bytes; excluded_phrases : tuple of Phrase
        What a document must not have.
    is_shortened : bool
        Whether the query has more than `MOST_TERMS` different terms, or words in phrases; the rest was ignored.
    """

    terms: tuple[bytes, ...]
    frequencies: tuple[int, ...]
    words: tuple[int, ...]
    places: tuple[int, ...]
    phrases: tuple[Phrase, ...] = ()
    required: tuple[bytes, ...] = ()
    excluded: tuple[bytes, ...] = ()
    excluded_phrases: tuple[Phrase, ...] = ()
    is_shortened: bool = False


def parse_query(text: str, analysis: Analysis) -> Query:
    """Cut a query by the rules of this module; words are cut as `analysis` cuts documents.

    A query keeps its first `MOST_TERMS` different terms, and phrases of as many words together: the clause that brings
    one more, and all after it, is ignored (of plain words, only from that word on), and `is_shortened` says so.
    """
    if not isinstance(text, str):
        raise ParameterError(f"a query must be a text, got {text!r} of type {type(text).__name__}.")
    if '"' not in text and "+" not in text and "-" not in text:
        builder = _Builder(analysis.common_terms)
        builder.add_plain(analysis.cut(text))
        return builder.query()
    return _parse_clauses(text, analysis)


def _parse_clauses(text: str, analysis: Analysis) -> Query:
    builder = _Builder(analysis.common_terms)
    for operator, clause, is_plain in _clauses(text):
        words = analysis.cut(clause)
        if is_plain:
            builder.add_plain(words)
        elif words and "-" in operator:
            builder.exclude(words)
        elif words:
            builder.require(words)
        if builder.is_full:
            break
    return builder.query()


def _clauses(text: str) -> Iterator[tuple[str, str, bool]]:
    """(operator, text, whether it is plain words) of each clause."""
    for match in _CLAUSE.finditer(text):
        if match["plain"] is not None:
            yield "", match["plain"], True
        elif match["phrase"] is not None:
            yield match["operator"] or "", match["phrase"], False
        elif match["word"] is not None:
            yield match["sign"], match["word"], False


@dataclass
class _Builder:
    """A query while its clauses are read.

    common : terms that are left out of plain words; set aside with their places for a query of nothing else
    """

    common: frozenset[bytes] = frozenset()
    aside: list[tuple[bytes, int]] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    frequencies: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    next_place: int = 0
    phrases: dict[Phrase, None] = field(default_factory=dict)
    required: dict[bytes, None] = field(default_factory=dict)
    excluded: dict[bytes, None] = field(default_factory=dict)
    excluded_phrases: dict[Phrase, None] = field(default_factory=dict)
    known: set[bytes] = field(default_factory=set)
    n_phrase_words: int = 0
    is_full: bool = False

    def add_plain(self, words: list[tuple[bytes, int]]) -> None:
        """Add plain words, but set common ones aside."""
        start = max(self.next_place, self.aside[-1][1] + 1 if self.aside else 0)
        self.aside += [(term, start + place) for term, place in words if term in self.common]
        self.add_words([word for word in words if word[0] not in self.common])

    def add_words(self, words: list[tuple[bytes, int]]) -> None:
        numbers, start = self.numbers, self.next_place
        for term, place in words:
            number = numbers.get(term)
            if number is None:
                number = len(numbers)
                if number == MOST_TERMS:
                    self.is_full = True
                    return
                numbers[term] = number
                self.known.add(term)
                self.frequencies.append(0)
            self.frequencies[number] += 1
            self.words.append(number)
            self.places.append(start + place)
            self.next_place = start + place + 1

    def require(self, words: list[tuple[bytes, int]]) -> None:
        if self._too_many(words) or not self._add_phrase(words, self.phrases):
            return
        self.add_words(words)
        self.required.update((term, None) for term, _ in words)

    def exclude(self, words: list[tuple[bytes, int]]) -> None:
        if self._too_many(words) or not self._add_phrase(words, self.excluded_phrases):
            return
        if len(words) == 1:
            self.excluded[words[0][0]] = None
            self.known.add(words[0][0])

    def _add_phrase(self, words: list[tuple[bytes, int]], phrases: dict[Phrase, None]) -> bool:
        """Add a clause of several words to `phrases`, once; False if phrases have too many words then."""
        if len(words) == 1 or (phrase := _phrase(words)) in phrases:
            return True
        self.n_phrase_words += len(words)
        self.is_full = self.n_phrase_words > MOST_TERMS
        if not self.is_full:
            phrases[phrase] = None
        return not self.is_full

    def _too_many(self, words: list[tuple[bytes, int]]) -> bool:
        """Whether a clause, which is used as a whole or not at all, would exceed the limit of terms."""
        new = {term for term, _ in words} - self.known
        self.is_full = len(self.known) + len(new) > MOST_TERMS
        return self.is_full

    def query(self) -> Query:
        if not self.numbers:
            self.next_place = 0
            self.add_words(self.aside)
        return Query(
            tuple(self.numbers),
            tuple(self.frequencies),
            tuple(self.words),
            tuple(self.places),
            tuple(self.phrases),
            tuple(self.required),
            tuple(self.excluded),
            tuple(self.excluded_phrases),
            self.is_full,
        )


def _phrase(words: list[tuple[bytes, int]]) -> Phrase:
    first = words[0][1]
    return Phrase(tuple(term for term, _ in words), tuple(place - first for _, place in words))
