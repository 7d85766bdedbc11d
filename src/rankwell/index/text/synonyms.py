"""Synonyms: words that count as others in queries.

A file has a rule on each line; ``#`` begins a comment. ``tv, television, telly``: each finds the others, too.
``laptop => notebook, portable computer``: the words on the left find those on the right, too, and not the other way
round. The words are cut as those of queries, so stems and folding apply.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

MOST_SYNONYMS = 64


@dataclass(frozen=True)
class Synonyms:
    """Rules: texts, each with the texts that count as it.

    rules : pairs of texts and texts
    """

    rules: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @classmethod
    def of(cls, lines: Iterable[str], source: str = "synonyms") -> Synonyms:
        """The rules of lines, as a file has them."""
        rules = []
        for number, line in enumerate(lines, start=1):
            text = line.split("#", 1)[0].strip()
            if text:
                rules.append(_rule(text, f"{source}, line {number}"))
        return cls(tuple(rules))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Synonyms:
        """The rules of a file (UTF-8; plain, .gz, .bz2, .zst)."""
        with ByteStream(os.fspath(path)) as stream:
            try:
                lines = stream.read().decode("utf-8-sig").splitlines()
            except UnicodeDecodeError as cause:
                raise DataError(f"{stream.name} is not UTF-8 ({cause.reason}). Convert it to UTF-8.") from cause
            return cls.of(lines, stream.name)


def _rule(text: str, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    left, arrow, right = text.partition("=>")
    words, found = _texts(left), _texts(right) if arrow else _texts(left)
    if not words or not found or (not arrow and len(words) < 2):
        raise DataError(f"{place} must be words as in 'tv, television' or 'laptop => notebook', got {text[:60]!r}.")
    if len(found) > MOST_SYNONYMS:
        raise DataError(f"{place}: a rule has at most {MOST_SYNONYMS} synonyms, got {len(found)}. Split it.")
    return words, found


def _texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
