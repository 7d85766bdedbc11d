"""`rankwell demo`: BM25 and every ranker in one table, and commands that work on what it leaves."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, Outcome

from rankwell.cli import demo
from rankwell.demo import contest, lightgbm_model, preparation
from rankwell.rankers import registry


@pytest.fixture(autouse=True)
def _small_and_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer queries and steps than a user sees, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SIZES", {"train": 200, "vali": 60, "test": 140})
    # Tests compile in their own process.
    monkeypatch.setattr(preparation, "start_preparation", lambda: subprocess.Popen(["true"]))
    for name in ("rankboost", "lambdamart"):
        monkeypatch.setitem(contest.SETTINGS, name, contest.SETTINGS[name] | {"n_rounds": 30})
    monkeypatch.setitem(contest.SETTINGS, "ranksvm", contest.SETTINGS["ranksvm"] | {"C": 1e-3})


def figures(outcome: Outcome) -> dict[str, list[float]]:
    """NDCG and reciprocal rank of each row of the table."""
    rows = re.findall(r"^ *(\S.*?) +(0\.\d{4}) +(0\.\d{4}) +\S+ +\S+$", outcome.stdout, re.MULTILINE)
    return {name: [float(ndcg), float(reciprocal_rank)] for name, ndcg, reciprocal_rank in rows}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_table_and_what_it_says_next(rankwell: Command, tmp_path: Path) -> None:
    outcome = rankwell("demo")
    assert outcome.exit_code == 0, outcome.stderr
    shown = figures(outcome)
    ours = ["least-squares", "rankboost", "lambdamart", "ranksvm", "listnet"]
    assert list(shown) == ["bm25", *ours, *(["lightgbm"] if lightgbm_model.IS_INSTALLED else [])]
    # What chance gives is below 0.1, what can be reached is bounded by what the first pass finds.
    assert all(0.2 < ndcg < 0.7 and 0.2 < reciprocal_rank < 0.7 for ndcg, reciprocal_rank in shown.values())
    assert "ndcg@10 (burges)" in outcome.stdout
    assert "140 test queries" in outcome.stdout
    assert all(f"==> training {name}\n" in outcome.stderr for name in ours)

    first = files(tmp_path / "demo-output")
    again = rankwell("demo", "--quiet")
    assert figures(again) == shown
    assert again.stderr == ""
    assert files(tmp_path / "demo-output") == first

    commands = re.findall(r"^  (\S*rankwell|\S+ -m rankwell) (.*)$", outcome.stdout, re.MULTILINE)
    assert len(commands) >= 6
    for _, arguments in commands:
        done = rankwell(*shlex.split(arguments))
        assert done.exit_code == 0, (arguments, done.stderr)
    _check_the_walk(rankwell)
    # The same extraction as the demonstration's own, and the same figure as the table's.
    assert (tmp_path / "demo-output" / "mine.txt").read_bytes() == first["test.txt"]
    assert f"{shown['bm25'][1]:.4f}" in rankwell(*shlex.split(commands[4][1])).stdout


def _check_the_walk(rankwell: Command) -> None:
    """The commands of the page about the demonstration work as they are."""
    page = (Path(__file__).parents[2] / "docs" / "guide" / "getting-started.md").read_text()
    commands = re.findall(r"^\$ rankwell (.*)$", page, re.MULTILINE)
    assert len(commands) >= 7
    for arguments in commands:
        done = rankwell(*shlex.split(arguments))
        assert done.exit_code == 0, (arguments, done.stderr)
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "getting-started.md", "exec"), names)
    assert len(names["result"].ids) == 5


def test_without_lightgbm_it_says_so(rankwell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lightgbm_model, "IS_INSTALLED", False)
    for name in ("rankboost", "lambdamart", "ranksvm", "listnet"):
        monkeypatch.delitem(contest.SETTINGS, name)
    outcome = rankwell("demo", "--out", "there")
    assert list(figures(outcome)) == ["bm25", "least-squares"]
    assert "pip install lightgbm" in outcome.stderr
    assert not (tmp_path / "there" / "lightgbm.rank").exists()


def test_parts_share_all_queries() -> None:
    # 200 : 60 : 140 of 400, and of 100 where the library gives no more.
    assert demo.part_numbers(400) == {"train": range(200), "vali": range(200, 260), "test": range(260, 400)}
    assert demo.part_numbers(100) == {"train": range(50), "vali": range(50, 65), "test": range(65, 100)}


def test_settings_of_rankers_are_theirs() -> None:
    for name, settings in contest.SETTINGS.items():
        registry.ranker_class(name)(**settings)._check_parameters()


def test_a_folder_with_files_of_the_user_is_refused(rankwell: Command, files: Path) -> None:
    before = (files / "train.txt").read_bytes()
    outcome = rankwell("demo", "--out", str(files))
    assert outcome.exit_code == 1
    assert "is neither empty nor the folder of an earlier demo" in outcome.stderr
    assert (files / "train.txt").read_bytes() == before
    assert "is a file. Give a folder" in rankwell("demo", "--out", "train.txt").stderr
