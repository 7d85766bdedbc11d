"""`rankwell warm`: compile kernels now, so that later commands do not wait."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.options import QuietOption


def warm(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUBJECT ...]",
            help="reading, metrics, least-squares, rankboost, lambdamart, ranksvm, networks, models, cluster, index, "
            "search or features; by default all of them.",
            show_default=False,
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Compile kernels ahead of their first use; those that are already compiled take no time.

    Kernels are kept in the folder that RANKWELL_CACHE_DIR names, or in ~/.cache/rankwell. A wheel contains compiled
    kernels.

    Example: rankwell warm rankboost search
    """
    from rankwell.kernels.cpu.kernel_cache import cache_folder
    from rankwell.warming.subjects import warm as warm_subjects

    show_log(quiet=True)
    started = time.perf_counter()
    warm_subjects(subjects or (), lambda name: say(f"compiling {name}", quiet=quiet))
    say(f"compiled in {time.perf_counter() - started:.1f} s, kept in {cache_folder()}", quiet=quiet)
