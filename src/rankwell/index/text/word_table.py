"""The words of a segment: each cut from text and numbered by a kernel, each turned into a term once, in Python."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankwell.index.segments.sink import page_array
from rankwell.index.text.analysis import Analysis
from rankwell.kernels.words.character_kinds import LONGEST_WORD, RULE, kind_table
from rankwell.kernels.words.term_table import N_TOKENS, N_WORDS, STATE_SIZE, WordKeys, fill_slots
from rankwell.kernels.words.term_table import number_words as number_words_kernel

LOWER = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
FIRST_CAPACITY = 2**14
NOT_INDEXED = -1


class NumberedText(NamedTuple):
    """A batch of fields as word numbers, and the words that were new in it."""

    tokens: np.ndarray  # int32
    token_ptr: np.ndarray  # int64 (n_fields + 1,)
    new_text: bytes
    new_offsets: list[int]


class WordTable:
    """Numbers words; a word is as written in the text, with ASCII letters in lower case."""

    def __init__(self, word_rule: str = RULE) -> None:
        self.n_words = 0
        self._kinds = kind_table(word_rule)
        self._keys = WordKeys(
            slots=np.zeros(2 * FIRST_CAPACITY, dtype=np.uint64),
            text=np.empty(8 * FIRST_CAPACITY, dtype=np.uint8),
            offsets=np.zeros(FIRST_CAPACITY + 1, dtype=np.int64),
            hashes=np.empty(FIRST_CAPACITY, dtype=np.uint64),
        )

    def number(self, text: np.ndarray, field_ptr: np.ndarray) -> NumberedText:
        """Cut the fields text[field_ptr[f] : field_ptr[f + 1]] of a batch into words and number them."""
        n_before = self.n_words
        tokens = page_array((len(text) + len(field_ptr)) // 2 + 1, np.int32)
        token_ptr = np.zeros(len(field_ptr), dtype=np.int64)
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        state[N_WORDS] = n_before
        while not number_words_kernel(text, field_ptr, self._kinds, LOWER, self._keys, tokens, token_ptr, state):
            self._grow(int(state[N_WORDS]))
        self.n_words = int(state[N_WORDS])
        offsets = self._keys.offsets[n_before : self.n_words + 1]
        new_text = self._keys.text[offsets[0] : offsets[-1]].tobytes()
        kept = page_array(int(state[N_TOKENS]), np.int32)
        kept[:] = tokens[: len(kept)]
        return NumberedText(kept, token_ptr, new_text, (offsets - offsets[0]).tolist())

    def _grow(self, n_words: int) -> None:
        """Double the capacity."""
        old = self._keys
        slots = page_array(2 * len(old.slots), np.uint64)
        fill_slots(old.hashes[:n_words], slots)
        used = int(old.offsets[n_words])
        self._keys = WordKeys(
            slots,
            _longer(old.text, used, max(2 * used, len(old.text)) + LONGEST_WORD),
            _longer(old.offsets, n_words + 1, len(slots) // 2 + 1),
            _longer(old.hashes, n_words, len(slots) // 2),
        )


class TermTable:
    """The terms of the words, numbered in the order of their first appearance."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.numbers: dict[bytes, int] = {}
        self._term_of_word = array("i")

    @property
    def n_words(self) -> int:
        return len(self._term_of_word)

    @property
    def n_terms(self) -> int:
        return len(self.numbers)

    def add(self, text: bytes, offsets: list[int]) -> None:
        """Add the next words, text[offsets[i] : offsets[i + 1]]."""
        term_of, numbers = self.analysis.term_of, self.numbers
        for start, stop in pairwise(offsets):
            term = term_of(text[start:stop])
            self._term_of_word.append(NOT_INDEXED if term is None else numbers.setdefault(term, len(numbers)))

    def term_of_word(self) -> np.ndarray:
        """The number of each word's term, int32 (n_words,); `NOT_INDEXED` for one without."""
        return np.array(self._term_of_word, dtype=np.int32)

    def in_order(self) -> tuple[list[bytes], np.ndarray]:
        """The terms sorted by their bytes, and for each word the number of its term in that order, int32."""
        terms = sorted(self.numbers)
        rank = np.empty(len(terms) + 1, dtype=np.int32)
        rank[[self.numbers[term] for term in terms]] = np.arange(len(terms), dtype=np.int32)
        rank[NOT_INDEXED] = NOT_INDEXED  # the last one: words that are not indexed
        return terms, rank[np.array(self._term_of_word, dtype=np.int64)]


def _longer(array: np.ndarray, used: int, capacity: int) -> np.ndarray:
    longer = page_array(capacity, array.dtype)
    longer[:used] = array[:used]
    return longer
