"""`rankwell serve --processes N`: what one of several processes is started with, and what needs one alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rankwell.errors import ParameterError


def check_files(folder: Path, rankers: Iterable[Path]) -> None:
    """Tell once what is wrong with an index or a ranker, before every process does."""
    from rankwell.index.reader import Index
    from rankwell.scoring.ranker_file import read_ranker_file

    Index.open(folder)
    for path in rankers:
        read_ranker_file(path)


def check_alone(needed: Sequence[str], n_indexes: int, replicas: int, spares: int) -> None:
    """Refuse what one process keeps and others would not know.

    needed : such things that were asked for
    """
    if n_indexes != 1 or replicas > 1 or spares:
        raise ParameterError(
            "is for one index: several indexes have a process each, and --replicas more.", parameter="processes"
        )
    if needed:
        raise ParameterError(
            f"cannot be used with {', '.join(needed)}: a click, vote or change would reach one process of several. "
            f"Use one process, or shards.",
            parameter="processes",
        )


def serve_command(
    folder: Path,
    host: str,
    port: int,
    rankers: Sequence[str],
    candidates: int,
    timeout: float,
    batch: int | None,
    window: float,
    queue: int,
    cache: int,
    expiry: float,
    feature_log: Path | None,
    threads: int,
    device: str,
    log_level: str,
) -> list[str]:
    """The command of one of several processes."""
    options: dict[str, object] = {
        "--host": host,
        "--port": port,
        "--candidates": candidates,
        "--timeout": timeout,
        "--batch": batch,
        "--batch-window": window,
        "--queue": queue,
        "--cache": cache,
        "--cache-expiry": expiry,
        "--feature-log": feature_log,
        "--threads": threads,
        "--device": device,
        "--log-level": log_level,
    }
    given = [str(part) for name, value in options.items() if value is not None for part in (name, value)]
    given += [part for ranker in rankers for part in ("--ranker", ranker)]
    return [sys.executable, "-m", "rankwell", "serve", str(folder), *given, "--one-of-several", "--quiet"]
