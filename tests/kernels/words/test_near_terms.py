from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwell.kernels.words.near_terms import near_terms
from rankwell.kernels.words.reference import edit_distance

WORD = st.text(alphabet="abcdéü日😀", max_size=7)


def found(terms: list[str], word: str, most: int) -> dict[str, int]:
    encoded = sorted({term.encode() for term in terms})
    text = np.frombuffer(b"".join(encoded), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(term) for term in encoded]))).astype(np.int64)
    numbers, distances = np.empty(len(encoded), np.int64), np.empty(len(encoded), np.int64)
    for array in (text, offsets):
        array.flags.writeable = False
    n = near_terms(text, offsets, np.array([ord(one) for one in word], np.int64), most, numbers, distances)
    return {encoded[number].decode(): int(d) for number, d in zip(numbers[:n].tolist(), distances[:n], strict=True)}


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "", 0),
        ("abc", "", 3),
        ("abc", "abc", 0),
        ("recieve", "receive", 1),
        ("abc", "cab", 2),
        ("kitten", "sitting", 3),
    ],
)
def test_the_definition(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == distance


@given(terms=st.lists(WORD.filter(bool), max_size=40), word=WORD.filter(bool), most=st.integers(0, 3))
@example(["a" * 260, "a" * 255, "b"], "a" * 254, 2)
def test_every_term_that_is_near(terms: list[str], word: str, most: int) -> None:
    distances = {term: edit_distance(term, word) for term in terms if len(term) <= 255}
    assert found([term for term in terms if len(term) <= 255], word, most) == {
        term: distance for term, distance in distances.items() if distance <= most
    }
