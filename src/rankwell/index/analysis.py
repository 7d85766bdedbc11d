"""From text to terms: words, folding, stop words, stems; recorded in an index so that queries are cut the same way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError, Parameter, ParameterError
from rankwell.index.stop_words import STOP_WORDS
from rankwell.kernels.words.character_kinds import JOINERS, LONGEST_WORD, kind_table

# The rule of `kernels.words.character_kinds` and of `fold`. An index built with another rule would give wrong results.
WORD_RULE = "unicode-1"

_SHORT_TEXT = 2**16  # bytes
_ASCII_WORD = re.compile(rb"[0-9A-Za-z]+")
_WITHOUT_JOINERS = dict.fromkeys(map(ord, JOINERS))


class Analysis:
    """How text becomes terms.

    Parameters
    ----------
    stemmer : str or None
        The name of a Snowball algorithm of PyStemmer ("english", "german", ...); None keeps words as they are.
    stop_words : str, iterable of str or None
        Words that are not indexed: a list by its name ("english"), or the words. They still count in positions.
    """

    def __init__(self, stemmer: str | None = None, stop_words: str | Iterable[str] | None = None) -> None:
        self.stemmer = stemmer
        self.stop_words = _stop_words(stop_words)
        self._stop = frozenset(fold(word) for word in self.stop_words)
        self._stemmer = None if stemmer is None else _load_stemmer(stemmer)

    def term_of(self, word: bytes) -> bytes | None:
        """The term of a word as it is written in a text (UTF-8), or None for a stop word."""
        folded = fold(word.decode("utf-8"))
        if folded in self._stop:
            return None
        if self._stemmer is not None:
            folded = self._stemmer.stemWord(folded) or folded
        return folded.encode("utf-8")

    def cut(self, text: str) -> list[tuple[bytes, int]]:
        """The terms of a text, each with its position: the number of words before it, stop words counted."""
        data = text.encode("utf-8", "replace")
        terms = []
        for position, (start, stop) in enumerate(word_spans(data)):
            term = self.term_of(data[start:stop]) if stop - start <= LONGEST_WORD else None
            if term is not None:
                terms.append((term, position))
        return terms

    def to_json(self) -> dict[str, Any]:
        """What an index records, as a dictionary of JSON values."""
        return {
            "words": WORD_RULE,
            "unicode": unicodedata.unidata_version,
            "stemmer": self.stemmer,
            "stop_words": list(self.stop_words),
        }

    @classmethod
    def from_json(cls, recorded: dict[str, Any]) -> Analysis:
        """The analysis that `to_json` recorded."""
        rule = recorded.get("words")
        if rule != WORD_RULE:
            raise FileFormatError(
                f"the index uses the word rule {rule!r}, but this release knows only {WORD_RULE!r}. Open it with "
                f"the release that built it, or build it again."
            )
        return cls(stemmer=recorded.get("stemmer"), stop_words=tuple(recorded.get("stop_words") or ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Analysis):
            return NotImplemented
        return (self.stemmer, self.stop_words) == (other.stemmer, other.stop_words)

    def __hash__(self) -> int:
        return hash((self.stemmer, self.stop_words))

    def __repr__(self) -> str:
        return f"Analysis(stemmer={self.stemmer!r}, stop_words={self.stop_words!r})"


def word_spans(data: bytes) -> list[tuple[int, int]]:
    """Where the words of a text (UTF-8) start and stop, by the rule of `kernels.words.character_kinds`.

    A text of ASCII characters that is not very long, as most queries are, needs no kernel for it.
    """
    if len(data) <= _SHORT_TEXT and data.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(data)]
    from rankwell.kernels.words.finding import find_words

    spans = np.empty(((len(data) + 1) // 2, 2), dtype=np.int64)
    n_words = find_words(np.frombuffer(data, dtype=np.uint8), kind_table(), spans)
    found: list[tuple[int, int]] = spans[:n_words].tolist()
    return found


def fold(word: str) -> str:
    """A word without differences that do not matter: case, width, ligatures, composition of accents, joiners.

    ``NFKC(casefold(NFKC(word)))``, as Unicode's caseless matching, with the joiners left out.
    """
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_WITHOUT_JOINERS)


def _stop_words(given: str | Iterable[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        if given not in STOP_WORDS:
            raise ParameterError(
                f"must be one of {', '.join(map(repr, STOP_WORDS))}, the words themselves or None, got {given!r}.",
                parameter="stop_words",
            )
        return STOP_WORDS[given]
    words = tuple(given)
    for word in words:
        if not isinstance(word, str):
            raise ParameterError(f"must be words, got {word!r} of type {type(word).__name__}.", parameter="stop_words")
    return tuple(sorted(set(words)))


def _load_stemmer(name: str) -> Any:
    try:
        import Stemmer
    except ImportError as cause:
        raise ParameterError(
            Parameter("stemmer", name),
            " needs PyStemmer, which is not installed. Install it (pip install PyStemmer), or index words as they are.",
        ) from cause
    if name not in Stemmer.algorithms():
        raise ParameterError(f"must be one of {', '.join(Stemmer.algorithms())}, got {name!r}.", parameter="stemmer")
    # Each word is stemmed once, so a cache would be useless.
    return Stemmer.Stemmer(name, 0)
