"""Scores files: one number per line; an error names the line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.data.scores import format_scores, read_scores
from rankwell.errors import DataError


def write(folder: Path, content: bytes) -> Path:
    path = folder / "scores.txt"
    path.write_bytes(content)
    return path


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_scores_read_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    path = write(tmp_path_factory.mktemp("scores"), format_scores(np.array(values, dtype=np.float64)))
    assert read_scores(path, n_docs=len(values)).tobytes() == np.array(values, dtype=np.float64).tobytes()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"1\n2\n", [1.0, 2.0]),
        (b"1\n2", [1.0, 2.0]),
        (b"1\r\n-2e-3\r\n", [1.0, -0.002]),
        (b"  1 \n\t2\n\n\n", [1.0, 2.0]),
        (b"", []),
    ],
)
def test_what_a_scores_file_may_look_like(tmp_path: Path, content: bytes, expected: list[float]) -> None:
    assert read_scores(write(tmp_path, content)).tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\nnan\n3\n", "line 2: expected one finite number, got 'nan'."),
        (b"1\n2\ninf\n", "line 3: expected one finite number, got 'inf'."),
        (b"1\n\n3\n", "line 2: expected one finite number, got an empty line."),
        (b"1\nhello\n3\n", "line 2: expected one finite number, got 'hello'."),
        (b"1\n1_0\n3\n", "line 2: expected one finite number, got '1_0'."),
        (b"1\n\xff\xfe\n3\n", "line 2: expected one finite number"),
        (b"1\t0\t0.5\n", "line 1: expected one finite number, got '1\\t0\\t0.5'. There are 3 columns"),
        (b"x" * 100, "got 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'."),
        (b"1\n\0\n", "is not a scores file: it contains binary data"),
        (b"1\n2\n", "has 2 scores, the data has 3 rows: it ends after line 2."),
        (b"1\n2\n3\n4\n", "has 4 scores, the data has 3 rows: line 4 is the first that is too many."),
        (b"", "has 0 scores, the data has 3 rows"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError) as raised:
        read_scores(write(tmp_path, content), n_docs=3)
    assert message in str(raised.value)
    assert "scores.txt" in str(raised.value)


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0.5\n0.25\n")))
    assert read_scores("-").tolist() == [0.5, 0.25]


def test_scores_that_are_not_numbers_are_not_written() -> None:
    with pytest.raises(DataError, match="the score of row 2 is nan"):
        format_scores(np.array([1.0, np.nan]))
