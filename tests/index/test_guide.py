"""The Python code in the guides to the index and to searching runs as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "index.md"


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)
    assert "['n2'] call the dentist on Tuesday" in capsys.readouterr().out


def test_filters_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.with_name("search.md")
    (example,) = re.findall(r"```python\n([^`]*shop\.idx[^`]*)```", page.read_text())
    exec(compile(example, str(page), "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["['1'] 1 {'Acme': 1}", "['2', '1']"]
