"""Progress bars: in a terminal and after a while, else not at all."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from rankwell.cli import console, progress
from rankwell.rankers.base import TrainingStep


def screen_of(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, patience: float) -> io.StringIO:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "messages", lambda: Console(file=screen, force_terminal=terminal, width=120))
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_IT_SHOWS", patience)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def use_a_bar(*, quiet: bool = False) -> None:
    with progress.progress_bar("training x", quiet=quiet) as bar:
        time.sleep(0.1)
        bar.training_step(TrainingStep(3, 10, {"loss": 0.123456789}))
        bar.describe("still training x")
        time.sleep(0.3)


def test_it_shows_steps_and_figures_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch, terminal=True, patience=0.0)
    use_a_bar()
    assert "training x" in screen.getvalue()
    assert "30%" in screen.getvalue()
    assert "loss 0.12346" in screen.getvalue()


def test_messages_go_through_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch, terminal=True, patience=0.0)
    with progress.progress_bar("training x"):
        time.sleep(0.1)
        console.say("a note")
    assert "a note" in screen.getvalue()
    assert console.messages().file is not screen


@pytest.mark.parametrize(
    ("terminal", "patience", "quiet"), [(False, 0.0, False), (True, 60.0, False), (True, 0.0, True)]
)
def test_it_is_quiet_elsewhere_and_for_what_is_quick(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, patience: float, quiet: bool
) -> None:
    screen = screen_of(monkeypatch, terminal=terminal, patience=patience)
    use_a_bar(quiet=quiet)
    assert screen.getvalue() == ""


def test_it_ends_with_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch, terminal=True, patience=0.0)

    def interrupted() -> None:
        with progress.progress_bar("training x"):
            time.sleep(0.1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    length = len(screen.getvalue())
    time.sleep(0.3)
    assert len(screen.getvalue()) == length
