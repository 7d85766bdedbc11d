"""Tables: one line a row in a pipe, and no number broken in a narrow terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Command

from rankwell.cli.figures import fit_table, make_table

NUMBERS = ["0.3865", "1,234", "0.00265"]


def drawn(width: int, text: str) -> str:
    table = make_table("", ["run", "caption", "mean", "documents found", "p(t)"], left=["caption"])
    table.add_row("a", text, *NUMBERS)
    console = Console(file=io.StringIO(), width=fit_table(table, width), force_terminal=True, color_system=None)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [200, 80, 60, 40, 10])
def test_numbers_are_whole_at_any_width(width: int) -> None:
    text = drawn(width, "words of a caption " * 5)
    row = next(line for line in text.splitlines() if NUMBERS[0] in line)
    assert all(number in row.split() for number in NUMBERS)


def test_it_keeps_to_sixty_columns_where_that_is_possible() -> None:
    text = drawn(60, "words of a caption " * 5)
    assert max(map(len, text.splitlines())) <= 60
    assert "words of a" in text


def test_a_wide_screen_changes_nothing() -> None:
    assert "documents found" in drawn(200, "short")
    assert "documents found" not in drawn(50, "short")


def test_a_row_is_one_line_in_a_pipe(rankwell: Command, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name = f"{'a-very-long-name-of-a-run-' * 9}.txt"
    Path(name).write_bytes(Path("scores.txt").read_bytes())
    lines = rankwell("compare", "test.txt", "scores.txt", name, "--metrics", "map").stdout.splitlines()
    row = next(line for line in lines if name in line)
    assert len(re.findall(r"\d\.\d{4}", row)) >= 2
    assert all(line == line.rstrip() for line in lines)


def test_a_narrow_terminal(files: Path) -> None:
    """The command itself, in a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    command = [sys.executable, "-m", "rankwell", "compare", "test.txt", "scores.txt", "model.rank", "--quiet"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, env=environment, check=False, timeout=120)
    os.close(theirs)
    text = re.sub(r"\x1b\[[0-9;]*m", "", os.read(ours, 100_000).decode())
    os.close(ours)
    assert done.returncode == 0
    rows = [line for line in text.splitlines() if line.strip().startswith(("scores.txt", "model.rank"))]
    assert len(rows) == 4  # two metrics, two runs
    assert all(re.search(r"\b\d\.\d{4}\b", row) for row in rows)
    # A longer line would be broken by the terminal, wherever its edge is.
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 60
