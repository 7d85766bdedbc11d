"""Words that are written nearly as another: typing errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwell.index.segments.segment import Segment
from rankwell.index.statistics import Statistics
from rankwell.kernels.words.character_kinds import LONGEST_WORD

# Of the words that are near, this many count: the nearest, of those the most frequent.
MOST_NEAR = 32


def tolerance(term: bytes) -> int:
    """How many edits are forgiven in a term by default: none in 1 or 2 characters, one in 3 to 5, two in more."""
    n_characters = len(term.decode("utf-8", "replace"))
    return 0 if n_characters < 3 else 1 if n_characters < 6 else 2


def near_counts(
    segments: Sequence[Segment], statistics: Statistics, term: bytes, distance: int, column: int
) -> dict[bytes, tuple[int, int]]:
    """The terms within some edits of a term: how many edits, and how many live documents have it in a column."""
    found: dict[bytes, int] = {term: 0}
    if distance > 0 and len(term) <= LONGEST_WORD:
        for segment in segments:
            found.update(_near_in(segment, term, distance))
    return {one: (edits, int(statistics.term(one).doc_freq[column])) for one, edits in found.items()}


def best_near(term: bytes, found: Mapping[bytes, tuple[int, int]]) -> tuple[tuple[bytes, float], ...]:
    """The terms near a term that documents have, and what their occurrences count.

    The term itself counts 1, one that is d edits away 1 − d / n, where n is the shorter one's characters. The best is
    first: the nearest, of equal ones the most frequent, then by bytes.

    found : for each term its edits and its documents
    """
    ranked = []
    for one, (edits, n_docs) in found.items():
        if n_docs and edits < min(_length(one), _length(term)):
            ranked.append((edits, -n_docs, one))
    ranked.sort()
    return tuple((one, 1.0 - edits / min(_length(one), _length(term))) for edits, _, one in ranked[:MOST_NEAR])


def _near_in(segment: Segment, term: bytes, distance: int) -> dict[bytes, int]:
    from rankwell.kernels.words.near_terms import near_terms

    word = np.array([ord(character) for character in term.decode("utf-8", "replace")], np.int64)
    numbers, distances = np.empty(segment.n_terms, np.int64), np.empty(segment.n_terms, np.int64)
    n = near_terms(segment["terms.text"], segment["terms.offsets"], word, distance, numbers, distances)
    pairs = zip(numbers[:n].tolist(), distances[:n].tolist(), strict=True)
    return {segment.term(number): edits for number, edits in pairs}


def _length(term: bytes) -> int:
    return len(term.decode("utf-8", "replace"))
