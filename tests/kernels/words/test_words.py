"""Words: the kernel against the rule, one character at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.kernels.words import reference as reference
from rankwell.kernels.words.character_kinds import (
    ALONE,
    LETTER,
    LONGEST_WORD,
    MARK,
    N_KINDS,
    OLD_RULE,
    PAIRED,
    RULE,
    SEPARATOR,
    kind_of,
    kind_table,
)
from rankwell.kernels.words.finding import find_words
from rankwell.kernels.words.term_table import N_WORDS, STATE_SIZE, TOO_LONG, WordKeys, number_words

LOWER = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
# Letters of one to four bytes, digits, marks, joiners, characters of their own, separators, a plane-14 selector.
AWKWARD = "aZ09é\u0301ßİǅ\u200d\u00adか\u3099カﾞ漢字𠀀𝔘한กิ़हि \t\x00-'_.…—🙂\ufe0f\U000e0100\U0010fffd½²Ⅷ"


def cut(text: str, rule: str = RULE) -> list[str]:
    data = text.encode()
    spans = np.empty(((len(data) + 1) // 2, 2), dtype=np.int64)
    n_words = find_words(np.frombuffer(data, dtype=np.uint8), kind_table(rule), spans)
    return [data[start:stop].decode() for start, stop in spans[:n_words]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,\x00\n", []),
        ("a", ["a"]),
        ("Don't stop-words 3.14", ["Don", "t", "stop", "words", "3", "14"]),
        ("naïve cafe\u0301s", ["naïve", "cafe\u0301s"]),
        ("co\u00adoperate", ["co\u00adoperate"]),
        ("日本語 text", ["日本", "本語", "text"]),
        ("か\u3099き", ["か\u3099き"]),
        ("か\u3099きく\u3099", ["か\u3099き", "きく\u3099"]),
        ("x日y", ["x", "日", "y"]),
        ("日、本語", ["日", "本語"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("ที่นี่", ["ที่นี่"]),
        ("🙂\ufe0fa", ["a"]),
        ("a🙂\ufe0fb", ["a", "b"]),
        ("안녕하세요 Привет", ["안녕", "녕하", "하세", "세요", "Привет"]),
    ],
)
def test_words_of_a_text(text, words):
    assert reference.find_words(text) == words
    assert cut(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("日本語 text", ["日", "本", "語", "text"]),
        ("か\u3099き", ["か\u3099", "き"]),
        ("안녕하세요 ภาษาไทย", ["안녕하세요", "ภาษาไทย"]),
    ],
)
def test_words_under_the_rule_of_older_indexes(text, words):
    assert reference.find_words(text, OLD_RULE) == words
    assert cut(text, OLD_RULE) == words


@pytest.mark.parametrize("rule", [OLD_RULE, RULE])
@given(
    text=st.text(alphabet=st.one_of(st.sampled_from(AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=60)
)
def test_kernel_finds_the_words_of_the_rule(rule, text):
    assert cut(text, rule) == reference.find_words(text, rule)


@pytest.mark.parametrize("rule", [OLD_RULE, RULE])
def test_table_holds_the_kind_of_every_character(rule):
    table = kind_table(rule)
    assert table.tolist() == [kind_of(chr(code), rule) for code in range(N_KINDS)]
    beyond = {kind_of(chr(code)) for code in range(N_KINDS, 0x110000)}
    assert beyond == {SEPARATOR, MARK}
    assert {chr(code) for code in range(N_KINDS, 0x110000) if kind_of(chr(code)) == MARK} == {
        chr(code) for code in range(0xE0100, 0xE01F0)
    }
    assert [kind_of(character) for character in "a9漢\u0301 "] == [LETTER, LETTER, PAIRED, MARK, SEPARATOR]
    assert kind_of("漢", OLD_RULE) == ALONE


def number(fields: list[bytes], n_slots: int, text_room: int) -> tuple[list[list[int]], list[bytes], int]:
    """Tokens of each field and the words, by a table that is made larger whenever it says so; and how often it did."""
    text = np.frombuffer(b"".join(fields), dtype=np.uint8)
    field_ptr = np.concatenate(([0], np.cumsum([len(field) for field in fields]))).astype(np.int64)
    tokens, token_ptr = np.empty(len(text) + 1, dtype=np.int32), np.zeros(len(field_ptr), dtype=np.int64)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    n_grown = 0
    while True:
        keys = WordKeys(
            np.zeros(n_slots, dtype=np.uint64),
            np.empty(text_room, dtype=np.uint8),
            np.zeros(n_slots // 2 + 1, dtype=np.int64),
            np.empty(n_slots // 2, dtype=np.uint64),
        )
        if number_words(text, field_ptr, kind_table(), LOWER, keys, tokens, token_ptr, state):
            break
        n_grown += 1
        n_slots, text_room = 2 * n_slots, 2 * text_room
        state[:] = 0  # from the start: WordTable's own growing has a test of its own
    words = [keys.text[keys.offsets[word] : keys.offsets[word + 1]].tobytes() for word in range(int(state[N_WORDS]))]
    per_field = [tokens[start:stop].tolist() for start, stop in pairwise(token_ptr)]
    return per_field, words, n_grown


def test_equal_words_have_one_number_whatever_the_case_of_ascii():
    tokens, words, _ = number([b"The cat", b"", b"the DOG, the Cat"], 16, 64)
    assert tokens == [[0, 1], [], [0, 2, 0, 1]]
    assert words == [b"the", b"cat", b"dog"]


def test_pairs_are_numbered_as_words_also_when_the_table_grows_between_them():
    tokens, words, _ = number(["日本日本語 a".encode()], 16, 64)
    assert tokens == [[0, 1, 0, 2, 3]]
    assert [word.decode() for word in words] == ["日本", "本日", "本語", "a"]
    characters = "".join(chr(0x4E00 + n) for n in range(60))
    tokens, words, n_grown = number([characters.encode()], 16, 64)
    assert n_grown > 0
    assert [word.decode() for word in words] == [a + b for a, b in pairwise(characters)]


def test_words_do_not_reach_over_the_end_of_a_field():
    assert number([b"ab", b"cd"], 16, 64)[0] == [[0], [1]]


def test_a_full_table_asks_for_more_room():
    fields = [" ".join(f"word{n}" for n in range(100)).encode()]
    tokens, words, n_grown = number(fields, 16, 64)
    assert n_grown > 0
    assert tokens == [list(range(100))]
    assert words == [f"word{n}".encode() for n in range(100)]


@pytest.mark.parametrize("length", [LONGEST_WORD - 1, LONGEST_WORD, LONGEST_WORD + 1, 100_000])
def test_a_word_that_is_too_long_has_no_number_but_a_place(length):
    tokens, words, _ = number([b"a " + b"x" * length + b" b"], 16, 1024)
    is_short = length <= LONGEST_WORD
    assert tokens == [[0, 1, 2] if is_short else [0, TOO_LONG, 1]]
    assert words == ([b"a", b"x" * length, b"b"] if is_short else [b"a", b"b"])
