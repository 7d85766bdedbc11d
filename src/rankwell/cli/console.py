"""Where words go: results to stdout, everything said on the way (notes, progress, errors) to stderr."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Columns of a table that is piped into a file or a program: wide enough that nothing is cut or folded.
_WIDTH_WITHOUT_TERMINAL = 200


def results() -> Console:
    """The console of what was asked for. Made anew each time, so that a redirected stdout is seen."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def show(result: RenderableType) -> None:
    """Print what was asked for: a table, or text that is not broken into lines, so that it can be pasted."""
    console = results()
    is_text = isinstance(result, str)
    if console.is_terminal:
        console.print(result, soft_wrap=is_text)
        return
    with console.capture() as captured:
        console.print(result, soft_wrap=is_text)
    # Rich fills lines with blanks up to the table's width; in a file or a pipe they are noise.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def messages() -> Console:
    """The console of notes, progress and errors: stderr."""
    from rich.console import Console

    return Console(file=sys.stderr, markup=False, highlight=False, emoji=False)


def say(text: str, *, quiet: bool = False) -> None:
    """One note on stderr, as it is (no markup)."""
    if not quiet:
        messages().print(text, soft_wrap=True)


def print_error(text: str) -> None:
    """A user's mistake: one red line, whatever the message's own line breaks."""
    messages().print(f"error: {' '.join(text.split())}", style="red", soft_wrap=True)


def print_json(content: Any) -> None:
    """`content` as JSON on stdout, and nothing else."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


class _NoteHandler(logging.Handler):
    """What the library logs (which device `auto` picked, ...) as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def show_log(*, quiet: bool) -> None:
    """Show what the library logs from now on: everything of interest, or with `quiet` only warnings."""
    logger = logging.getLogger("rankwell")
    if not any(isinstance(handler, _NoteHandler) for handler in logger.handlers):
        logger.addHandler(_NoteHandler())
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
