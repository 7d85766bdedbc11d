"""A word about kernels being compiled: the first run of a release takes longer than all later ones.

It is for whoever sits there and waits, as a progress bar is. What a program reads from stderr must not depend on
whether kernels were compiled before.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any

NOTE = "compiling kernels: once for this release on this machine, up to a minute for each kind of ranker"

logger = logging.getLogger(__name__)


@cache
def note_compilation() -> None:
    """From now on, log a note when a kernel of ours has to be compiled and stderr is a terminal.

    The command shows equal notes once.

    Kernels that are found in the cache are not compiled, and nothing is said.
    """
    from numba.core import event

    class Compilation(event.Listener):
        def on_start(self, event: Any) -> None:
            if sys.stderr.isatty() and event.data["dispatcher"].py_func.__module__.startswith("rankwell."):
                logger.info(NOTE)

        def on_end(self, event: Any) -> None:
            """Nothing is said then."""

    event.register("numba:compile", Compilation())
