"""TREC's run files."""

from __future__ import annotations

import gzip

import pytest

from rankwell.data.trec_run import format_run, is_run_line, read_run
from rankwell.errors import DataError


def test_written_and_read_again(tmp_path):
    text = format_run("q1", ["d2", "d1"], [0.1 + 0.2, -1e-9]) + format_run("q2", ["d1"], [3])
    assert text.splitlines()[0] == "q1 Q0 d2 1 0.30000000000000004 rankwell"
    path = tmp_path / "run.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_run(path) == {"q1": {"d2": 0.1 + 0.2, "d1": -1e-9}, "q2": {"d1": 3.0}}
    assert all(is_run_line(line) for line in text.encode().splitlines())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 Q0 d 1 0.5", r"line 1 must be: query Q0 document rank score tag, got"),
        ("1 Q0 d 1 x t", r"line 1: the score must be a finite number, got 'x'"),
        ("1 Q0 d 1 inf t", "finite"),
        ("1 Q0 d 1 2 t\n1 Q0 d 2 1 t", r"line 2 has document 'd' of query '1' again"),
        ("\n\n", "contains no result"),
        ("1 Q0 \xff 1 2 t", "not UTF-8"),
    ],
)
def test_bad_lines(tmp_path, content, message):
    (tmp_path / "run").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        read_run(tmp_path / "run")


def test_ids_with_blanks_cannot_be_written():
    with pytest.raises(DataError, match=r"the id 'a b' must not be empty or contain one"):
        format_run("1", ["a b"], [1.0])


@pytest.mark.parametrize("line", [b"2 qid:1 1:0.5 2:1 3:1 4:2", b"1 0 d 1", b"0.5", b"", b"1 Q0 d x 0.5 t"])
def test_other_lines_are_not_of_a_run(line):
    assert not is_run_line(line)
