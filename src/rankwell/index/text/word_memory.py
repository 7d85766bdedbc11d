"""Words that were seen and their terms: to find the term of a word takes longer than all else in cutting a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_WORDS_REMEMBERED = 65_536
_Terms = dict[bytes, bytes | None]
_WordsOf = dict[bytes, set[bytes]]
_Known = tuple[_Terms, _WordsOf]


class WordMemory:
    """The terms of words, and the words of terms. Several threads may use it.

    Parameters
    ----------
    term_of : the term of a word, None for one that has none
    """

    def __init__(self, term_of: Callable[[bytes], bytes | None]) -> None:
        self._term_of = term_of
        # Both are replaced together when they are full: who works with them goes on with the old ones.
        self._known: _Known = {}, {}

    def term(self, word: bytes) -> bytes | None:
        """The term of a word."""
        terms = self._known[0]
        return terms[word] if word in terms else _learn(word, self._term_of, *self._with_room())

    def with_terms(self, words: Iterable[bytes], wanted: Iterable[bytes]) -> dict[bytes, bytes]:
        """Those of `words` whose term is one of `wanted`, with their terms.

        By operations on sets: most words of a text have been seen, and few are wanted.
        """
        different = set(words)
        terms, words_of = self._with_room()
        for word in different.difference(terms):
            _learn(word, self._term_of, terms, words_of)
        return {word: term for term in wanted for word in different.intersection(words_of.get(term, ()))}

    def _with_room(self) -> _Known:
        if len(self._known[0]) >= _WORDS_REMEMBERED:
            self._known = {}, {}
        return self._known


def _learn(word: bytes, term_of: Callable[[bytes], bytes | None], terms: _Terms, words_of: _WordsOf) -> bytes | None:
    term = term_of(word)
    if term is not None:
        words_of.setdefault(term, set()).add(word)
    # Last: a word that is known is among those of its term.
    terms[word] = term
    return term
