"""`rankwell demo`: every ranker in one table, and commands that work on what it leaves."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Command, Outcome

from rankwell.cli import demo
from rankwell.rankers import registry


def figures(outcome: Outcome) -> dict[str, list[str]]:
    """NDCG@10 and MAP of each row of the table."""
    rows = re.findall(r"^ *(\S.*?) +(0\.\d{4}) +(0\.\d{4}) +\S+$", outcome.stdout, re.MULTILINE)
    return {name: [ndcg, average_precision] for name, ndcg, average_precision in rows}


def test_every_ranker_is_shown_and_what_it_says_next_works(
    rankwell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fewer steps than a user sees: enough to beat a single feature.
    for settings in demo.SETTINGS.values():
        for steps in settings.keys() & {"n_rounds", "n_epochs"}:
            monkeypatch.setitem(settings, steps, settings[steps] // 8)
    monkeypatch.chdir(tmp_path)
    outcome = rankwell("demo")
    assert outcome.exit_code == 0
    shown = figures(outcome)
    assert next(iter(shown)) == "random order"
    assert list(shown)[2:] == list(registry.RANKERS)
    by_chance, by_a_feature = (float(row[0]) for row in list(shown.values())[:2])
    assert all(float(shown[name][0]) > by_a_feature > by_chance for name in registry.RANKERS)
    assert "ndcg@10 (burges)" in outcome.stdout
    assert all(f"    {name}\n" in outcome.stderr for name in registry.RANKERS)

    commands = re.findall(r"^  (\S*rankwell|\S+ -m rankwell) (.*)$", outcome.stdout, re.MULTILINE)
    assert len(commands) >= 7
    for _, arguments in commands:
        done = rankwell(*shlex.split(arguments))
        assert done.exit_code == 0, (arguments, done.stderr)


def test_a_second_run_gives_the_same_files(rankwell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RANKERS", {"least-squares": registry.RANKERS["least-squares"]})
    monkeypatch.chdir(tmp_path)

    def run() -> tuple[dict[str, list[str]], dict[str, bytes]]:
        outcome = rankwell("demo", "--out", "here", "--quiet")
        assert outcome.stderr == ""
        return figures(outcome), {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}

    first, second = run(), run()
    assert first == second
    assert set(first[1]) == {"train.txt", "vali.txt", "test.txt", "least-squares.rank", "least-squares.scores"}


def test_settings_of_rankers_are_theirs() -> None:
    for name, settings in demo.SETTINGS.items():
        if name in registry.RANKERS:
            registry.ranker_class(name)(**settings)._check_parameters()
