"""What the library logs, as a command shows it."""

import logging
import sys

import pytest

from rankwell.cli.console import show_log


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_compilation_is_told_to_whoever_waits_at_a_terminal(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    show_log(quiet=False)
    logging.getLogger("rankwell.compilation").warning("compiling kernels of boosting")
    logging.getLogger("rankwell").info("device='auto' picked cpu")
    said = capsys.readouterr().err
    assert ("compiling kernels of boosting" in said) == is_terminal
    assert "picked cpu" in said
