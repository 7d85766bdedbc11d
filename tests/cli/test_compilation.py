"""A note while kernels are compiled, and none while they come from the cache."""

from __future__ import annotations

import logging

import pytest
from numba import njit

from rankwell.cli.compilation import NOTE, note_compilation


@pytest.mark.parametrize(("module", "notes"), [("rankwell.kernels.cpu.made_up", [NOTE]), ("someone.elses", [])])
def test_only_kernels_of_ours_are_noted_and_only_when_compiled(
    module: str, notes: list[str], caplog: pytest.LogCaptureFixture
) -> None:
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
