"""Options that `rankwell serve` and `rankwell node` share, and what both check."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rankwell.errors import DataError, ParameterError

_NEEDED = ("msgspec", "prometheus_client", "starlette", "uvicorn")
_LEVELS = ("debug", "info", "warning", "error")

BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch",
        metavar="N",
        min=1,
        help="How many queries are ranked together at most; by default 16, or what suits the device.",
        show_default=False,
    ),
]
WindowOption = Annotated[
    float,
    typer.Option("--batch-window", metavar="MS", min=0, max=1000, help="How long a query waits for others."),
]
QueueOption = Annotated[
    int, typer.Option("--queue", metavar="N", min=1, help="How many queries may wait; more are refused.")
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device", metavar="NAME", help="Where rankers run: cpu, cuda, or auto, which is the quicker for a batch."
    ),
]
LogLevelOption = Annotated[
    str, typer.Option("--log-level", metavar="LEVEL", help="debug (with queries' texts), info, warning or error.")
]


def check_extra(command: str) -> None:
    """Say which packages are missing, and where they are."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise DataError(
            f"rankwell {command} needs {', '.join(missing)}, which the extra 'serve' contains: "
            f"pip install 'rankwell[serve]'."
        )


def check_log_level(log_level: str) -> None:
    if log_level not in _LEVELS:
        raise ParameterError(f"must be debug, info, warning or error, got {log_level!r}.", parameter="log_level")


def read_token(file: Path | None, variable: str) -> str | None:
    """The token in a file, or in a variable of the environment; None if there is none."""
    # Bytes that are no ASCII become other characters, which are refused like those that are.
    token = os.environ.get(variable, "") if file is None else file.read_bytes().decode("latin-1").strip()
    if file is not None and not token:
        raise DataError(f"{file} is empty: a token is needed in it.")
    if not token.isascii() or not token.isprintable():
        number, wrong = next((n, one) for n, one in enumerate(token, 1) if not one.isascii() or not one.isprintable())
        raise DataError(
            f"{file or variable}: a token is printable ASCII characters, as a header can have them; number {number} is "
            f"{wrong!a}. Use letters and digits, as `openssl rand -hex 16` prints them."
        )
    return token or None
