"""From text to terms: words, folding, stop words, stems; recorded in an index so that queries are cut the same way.

Words that say little are treated in one of two ways. *Stop words* are not indexed. *Common words* are indexed, and
queries ignore them where other words are left (`index.query.query`): phrases find them, and a query of nothing else
still finds something.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError, Parameter, ParameterError
from rankwell.index.text.languages import get_language
from rankwell.index.text.stop_words import STOP_WORDS
from rankwell.index.text.word_memory import WordMemory
from rankwell.kernels.words.character_kinds import JOINERS, LONGEST_WORD, OLD_RULE, RULE, kind_table

# The rules of `kernels.words.character_kinds` and of `fold` that an index can have been built with; the last is for new
# ones.
WORD_RULES = (OLD_RULE, RULE)

_SHORT_TEXT = 2**16  # bytes
_ASCII_WORD = re.compile(rb"[0-9A-Za-z]+")
# Letters of the Latin script that Unicode does not take apart.
_LIGATED = {
    "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i", "ŋ": "n",
}  # fmt: skip
_WITHOUT_JOINERS = dict.fromkeys(map(ord, JOINERS))


class Analysis:
    """How text becomes terms.

    Parameters
    ----------
    stemmer : str or None
        The name of a Snowball algorithm of PyStemmer ("english", "german", ...); None keeps words as they are.
    stop_words : str, iterable of str or None
        Words that are not indexed: a list by its name ("english"), or the words. They still count in positions.
    common_words : iterable of str
        Words that queries ignore where other words are left.
    language : str or None
        What `of_language` was asked for: a code, kept for messages.
    fold_accents : bool
        Whether letters with accents are the same as those without: "resume" finds "résumé".
    word_rule : str
        How text is cut into words: "unicode-2", or "unicode-1" for an index of an older release.

    Attributes
    ----------
    common_terms : frozenset of bytes
        The terms of the common words.
    """

    def __init__(
        self,
        stemmer: str | None = None,
        stop_words: str | Iterable[str] | None = None,
        *,
        common_words: Iterable[str] = (),
        language: str | None = None,
        word_rule: str = RULE,
        fold_accents: bool = False,
    ) -> None:
        self.stemmer = stemmer
        self.fold_accents = fold_accents
        self.stop_words = _stop_words(stop_words)
        self.common_words = _words("common_words", common_words)
        self.language = language
        self.word_rule = word_rule
        self._stop = frozenset(fold(word) for word in self.stop_words)
        self._stemmer = None if stemmer is None else _load_stemmer(stemmer)
        self.memory = WordMemory(self.term_of)
        common = (self.term_of(word.encode("utf-8")) for word in self.common_words)
        self.common_terms = frozenset(term for term in common if term is not None)

    @classmethod
    def of_language(cls, name: str | None) -> Analysis:
        """The analysis for a language, by its code ("en") or name: its stemmer and its common words.

        None, or "none", is words as they are written.
        """
        if name is None or name == "none":
            return cls()
        language = get_language(name)
        # English has no accents of its own: they are written or not.
        fold_accents = language.code == "en"
        return cls(
            language.stemmer,
            common_words=language.common_words,
            language=language.code,
            fold_accents=fold_accents,
        )

    def with_accents(self, *, fold: bool) -> Analysis:
        """The same analysis with letters with accents folded to those without, or kept."""
        return Analysis.from_json(self.to_json() | {"fold_accents": fold})

    def term_of(self, word: bytes) -> bytes | None:
        """The term of a word as it is written in a text (UTF-8), or None for a stop word."""
        folded = fold(word.decode("utf-8"))
        if folded in self._stop:
            return None
        if self.fold_accents:
            # Before stemming: whatever the stemmer does, it does the same to both.
            folded = without_accents(folded)
        if self._stemmer is not None:
            folded = self._stemmer.stemWord(folded) or folded
        return folded.encode("utf-8")

    def fold(self, word: str) -> str:
        """A word without the differences that do not matter, but not stemmed."""
        return without_accents(fold(word)) if self.fold_accents else fold(word)

    def short_text_words(self, data: bytes) -> list[bytes] | None:
        """The words of a text of ASCII characters that is not very long, as they are written; None of other texts."""
        return _ASCII_WORD.findall(data) if len(data) <= _SHORT_TEXT and data.isascii() else None

    def word_spans(self, data: bytes) -> list[tuple[int, int]]:
        """Where the words of a text (UTF-8) start and stop, by the rule of `kernels.words.character_kinds`.

        A text of ASCII characters that is not very long, as most queries are, needs no kernel for it.
        """
        if len(data) <= _SHORT_TEXT and data.isascii():
            return [match.span() for match in _ASCII_WORD.finditer(data)]
        found: list[tuple[int, int]] = self.word_places(data).tolist()
        return found

    def word_places(self, data: bytes) -> np.ndarray:
        """The same by the kernel, int64 (n, 2)."""
        from rankwell.kernels.words.finding import find_words

        spans = np.empty(((len(data) + 1) // 2, 2), dtype=np.int64)
        return spans[: find_words(np.frombuffer(data, dtype=np.uint8), kind_table(self.word_rule), spans)]

    def cut(self, text: str) -> list[tuple[bytes, int]]:
        """The terms of a text, each with its position: the number of words before it, stop words counted."""
        data = text.encode("utf-8", "replace")
        terms = []
        for position, (start, stop) in enumerate(self.word_spans(data)):
            term = self.memory.term(data[start:stop]) if stop - start <= LONGEST_WORD else None
            if term is not None:
                terms.append((term, position))
        return terms

    def to_json(self) -> dict[str, Any]:
        """What an index records, as a dictionary of JSON values."""
        return {
            "words": self.word_rule,
            "unicode": unicodedata.unidata_version,
            "language": self.language,
            "stemmer": self.stemmer,
            "stop_words": list(self.stop_words),
            "common_words": list(self.common_words),
        } | ({"fold_accents": True} if self.fold_accents else {})

    @classmethod
    def from_json(cls, recorded: dict[str, Any]) -> Analysis:
        """The analysis that `to_json` recorded."""
        rule = recorded.get("words")
        if rule not in WORD_RULES:
            raise FileFormatError(
                f"the index uses the word rule {rule!r}, but this release knows only {' and '.join(WORD_RULES)}. Open "
                f"it with the release that built it, or build it again."
            )
        return cls(
            recorded.get("stemmer"),
            tuple(recorded.get("stop_words") or ()),
            common_words=tuple(recorded.get("common_words") or ()),
            language=recorded.get("language"),
            word_rule=rule,
            fold_accents=recorded.get("fold_accents") is True,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Analysis) and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash(self._parameters())

    def __repr__(self) -> str:
        if self.language is not None:
            return f"Analysis.of_language({self.language!r})"
        return f"Analysis(stemmer={self.stemmer!r}, stop_words={self.stop_words!r})"

    def _parameters(self) -> tuple[Any, ...]:
        return self.stemmer, self.stop_words, self.common_words, self.word_rule, self.fold_accents


def fold(word: str) -> str:
    """A word without differences that do not matter: case, width, ligatures, composition of accents, joiners.

    ``NFKC(casefold(NFKC(word)))``, as Unicode's caseless matching, with the joiners left out.
    """
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_WITHOUT_JOINERS)


def without_accents(word: str) -> str:
    """A folded word with the plain letters of the Latin and Greek scripts in place of those with accents."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", "".join(map(_plain_letters, word)))


@cache
def _plain_letters(character: str) -> str:
    if character in _LIGATED:
        return _LIGATED[character]
    base = unicodedata.normalize("NFD", character)[0]
    # In other scripts marks are more than accents: they tell vowels and letters apart.
    is_letter = base != character and unicodedata.name(base, "").startswith(("LATIN", "GREEK"))
    return base if is_letter else "" if "\u0300" <= character <= "\u036f" else character


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
    return _words("stop_words", given)


def _words(parameter: str, given: Iterable[str]) -> tuple[str, ...]:
    words = tuple(given)
    for word in words:
        if not isinstance(word, str):
            raise ParameterError(f"must be words, got {word!r} of type {type(word).__name__}.", parameter=parameter)
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
