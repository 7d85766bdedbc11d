"""A note in a terminal while kernels are compiled, and none while they come from the cache."""

from __future__ import annotations

import logging
import sys

import pytest
from numba import njit

from rankwell.cli.compilation import NOTE, note_compilation


@pytest.mark.parametrize(
    ("module", "is_terminal", "notes"),
    [
        ("rankwell.kernels.cpu.made_up", True, [NOTE]),
        ("rankwell.kernels.cpu.made_up", False, []),
        ("someone.elses", True, []),
    ],
)
def test_only_kernels_of_ours_are_noted_and_only_when_compiled(
    module: str,
    is_terminal: bool,
    notes: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)

    def double(value):  # type: ignore[no-untyped-def]
        return 2 * value

    double.__module__ = module
    kernel = njit(double)
    note_compilation()
    note_compilation()
    with caplog.at_level(logging.INFO, logger="rankwell"):
        assert kernel(3) == 6
        assert caplog.messages == notes
        assert kernel(4) == 8
        assert caplog.messages == notes
