"""Row comments: one buffer that behaves as a sequence of strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.data.comments import RowComments
from rankwell.data.row_storage import GrowingComments

texts = st.lists(st.text(), max_size=8)


@given(texts, st.data())
def test_it_behaves_as_a_list(strings: list[str], data: st.DataObject) -> None:
    strings = [text.encode("utf-8", "replace").decode() for text in strings]
    comments = RowComments.from_strings(strings)
    assert len(comments) == len(strings)
    assert list(comments) == strings
    assert comments == strings
    assert [comments[row] for row in range(-len(strings), len(strings))] == strings + strings
    part = data.draw(st.slices(len(strings)))
    assert list(comments[part]) == strings[part]
    rows = data.draw(st.lists(st.integers(0, max(0, len(strings) - 1)), max_size=5 if strings else 0))
    assert list(comments.take(np.array(rows, dtype=np.int64))) == [strings[row] for row in rows]


def test_a_place_that_is_not_there() -> None:
    with pytest.raises(IndexError):
        RowComments.from_strings(["a"])[1]


def test_a_slice_shares_the_buffer() -> None:
    comments = RowComments.from_strings(["ab", "c", "def"])
    assert np.shares_memory(comments[1:].buffer, comments.buffer)
    assert list(comments[1:]) == ["c", "def"]
    assert list(comments[1:].take(np.array([1, 0]))) == ["def", "c"]


def test_bytes_that_are_not_utf8_are_kept() -> None:
    comments = RowComments(np.frombuffer(b"caf\xe9", dtype=np.uint8), np.array([0, 4]))
    assert RowComments.from_strings(list(comments)).buffer.tobytes() == b"caf\xe9"


def test_it_differs_from_other_things() -> None:
    comments = RowComments.from_strings(["a"])
    assert comments != ["b"]
    assert comments != ["a", "a"]
    assert comments != "a"


def test_comments_that_come_a_block_at_a_time() -> None:
    growing = GrowingComments()
    text = np.frombuffer(b"one two", dtype=np.uint8)
    for _ in range(100):
        growing.append(text, np.array([[0, 3], [3, 3], [4, 7]], dtype=np.int32))
    comments = growing.finish()
    assert list(comments or []) == ["one", "", "two"] * 100


def test_nothing_but_empty_comments_are_none() -> None:
    growing = GrowingComments()
    growing.append(np.zeros(1, dtype=np.uint8), np.array([[0, 0]], dtype=np.int32))
    assert growing.finish() is None
