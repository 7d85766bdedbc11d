"""A word about kernels being compiled: the first run of a release takes longer than all later ones."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

NOTE = "compiling kernels: once for this release on this machine, up to a minute for each kind of ranker"

logger = logging.getLogger(__name__)


@cache
def note_compilation() -> None:
    """From now on, log a note when a kernel of ours has to be compiled; the command shows equal notes once.

    Kernels that are found in the cache are not compiled, and nothing is said.
    """
    from numba.core import event

    class Compilation(event.Listener):
        def on_start(self, event: Any) -> None:
            if event.data["dispatcher"].py_func.__module__.startswith("rankwell."):
                logger.info(NOTE)

        def on_end(self, event: Any) -> None:
            """Nothing is said then."""

    event.register("numba:compile", Compilation())
