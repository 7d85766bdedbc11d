"""The command itself: version, help, what it imports, usage mistakes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from tests.cli.conftest import Command

from rankwell.cli.app import app
from rankwell.cli.options import CONVENTION_NAMES, DEFAULT_CANDIDATES, DEFAULT_CONVENTION, EXPORT_FORMATS
from rankwell.data.candidates import N_CANDIDATES
from rankwell.metrics.conventions import CONVENTIONS, DEFAULT
from rankwell.scoring.exports.formats import FORMATS
from rankwell.version import __version__

COMMANDS = ("train", "predict", "evaluate", "compare", "crossval", "convert", "info", "demo")


def test_version(rankwell: Command) -> None:
    outcome = rankwell("--version")
    assert (outcome.exit_code, outcome.stdout) == (0, f"rankwell {__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_every_command(rankwell: Command, arguments: tuple[str, ...]) -> None:
    outcome = rankwell(*arguments)
    assert outcome.exit_code == 0
    assert all(command in outcome.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(rankwell: Command, command: str) -> None:
    outcome = rankwell(command, "--help")
    assert outcome.exit_code == 0
    assert f"rankwell {command}" in outcome.stdout


def test_help_names_the_default_convention_and_all_others(rankwell: Command) -> None:
    assert DEFAULT.name == DEFAULT_CONVENTION
    assert N_CANDIDATES == DEFAULT_CANDIDATES
    text = rankwell("evaluate", "--help").stdout
    assert all(name in text for name in CONVENTIONS)


@pytest.mark.parametrize("arguments", [("index",), ("index", "--help")])
def test_a_group_without_a_command_is_its_help(rankwell: Command, arguments: tuple[str, ...]) -> None:
    outcome = rankwell(*arguments)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert "build" in outcome.stdout
    assert "Verify every byte of an index" in outcome.stdout


@pytest.mark.parametrize("arguments", [("--help",), ("index", "--help"), ("index", "build", "--help"), ("info", "-h")])
def test_help_shows_flags_without_a_value(rankwell: Command, arguments: tuple[str, ...]) -> None:
    text = rankwell(*arguments).stdout
    assert "--help" in text
    assert "bool" not in text.lower()


def every_command() -> Iterator[tuple[str, Any]]:
    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        for each, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{name} {each}".strip(), inner)
        yield name, command

    return walk("", typer.main.get_command(app))


def test_names_that_the_tab_key_gives_are_those_of_the_library() -> None:
    assert tuple(CONVENTIONS) == CONVENTION_NAMES
    assert tuple(FORMATS) == EXPORT_FORMATS


def test_types_in_help_are_words() -> None:
    types = {parameter.type.name for _, command in every_command() for parameter in command.params}
    assert "path" in types
    assert not [name for name in types if "_" in name]


def test_every_output_has_the_same_letter() -> None:
    outputs = {
        name: parameter.opts
        for name, command in every_command()
        for parameter in command.params
        if "--out" in parameter.opts
    }
    assert len(outputs) > 8
    assert {name for name, options in outputs.items() if "-o" not in options} == set()


def test_the_command_imports_nothing_heavy() -> None:
    heavy = "numpy", "numba", "scipy", "sklearn", "pyarrow", "pandas", "safetensors"
    code = f"import sys, rankwell.cli.app; print(*(name for name in {heavy!r} if name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trian",), "error: No such command 'trian'."),
        (("train",), "error: Missing argument 'NAME'. See rankwell train --help.\n"),
        (("evaluate", "a", "b", "--metric", "map"), "error: No such option: --metric"),
        (("evaluate", "a"), "error: Missing argument 'SCORES|MODEL|RUN'. See rankwell evaluate --help.\n"),
        (("compare", "a", "b", "c", "--seed", "x"), "error: Invalid value for '--seed'"),
        (("train", "least-squares", "train.txt"), "error: Missing option '--out' / '-o'. See rankwell train --help.\n"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    rankwell: Command, arguments: tuple[str, ...], message: str
) -> None:
    outcome = rankwell(*arguments)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith(message)
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""
