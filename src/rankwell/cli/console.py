"""Where output goes: results to stdout; notes, progress and errors to stderr."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from rankwell.cli.figures import fit_table
from rankwell.cli.naming import in_words_of_options
from rankwell.printable import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

# Columns of a table that is piped into a file or a program: more than any row has, so that each stays on one line.
_WIDTH_WITHOUT_TERMINAL = 1_000_000

_consoles_of_bars: list[Console] = []


def results() -> Console:
    """The console for results. Created anew each time, so that a redirected stdout is used."""
    return _console(sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)


def _console(file: TextIO, *, width: int | None = None) -> Console:
    """A console without markup. Every text that it prints, also in the cells of a table, is made `printable`."""
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

    return PlainConsole(file=file, width=width, markup=False, highlight=False, emoji=False)


@contextmanager
def shared_with_bar(console: Console) -> Iterator[None]:
    """`console` shows a progress bar during the block: messages printed meanwhile go through it."""
    _consoles_of_bars.append(console)
    try:
        yield
    finally:
        _consoles_of_bars.remove(console)


def show(result: RenderableType) -> None:
    """Print a result: a table, or text that is not wrapped, so that it can be pasted."""
    console = results()
    is_text = isinstance(result, str)
    if console.is_terminal:
        if not is_text and hasattr(result, "columns"):
            console.width = fit_table(cast("Table", result), console.width)
        console.print(result, soft_wrap=is_text)
        return
    with console.capture() as captured:
        console.print(result, soft_wrap=is_text)
    # Rich fills lines with blanks up to the table's width; in a file or a pipe they are noise.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def messages() -> Console:
    """The console of notes, progress and errors: stderr. While a bar is shown, the bar's own, which prints above it."""
    return _consoles_of_bars[-1] if _consoles_of_bars else _console(sys.stderr)


def say(text: str, *, quiet: bool = False) -> None:
    """One note on stderr, as it is (no markup)."""
    if not quiet:
        messages().print(text, soft_wrap=True)


def print_error(text: str) -> None:
    """Print an error as one red line; line breaks in the message become blanks."""
    messages().print(f"error: {' '.join(text.split())}", style="red", soft_wrap=True)


def print_json(content: Any) -> None:
    """`content` as JSON on stdout, and nothing else."""
    sys.stdout.write(printable_json(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


class _NoteHandler(logging.Handler):
    """What the library logs (which device `auto` picked, ...) as notes, each of them once.

    The note that kernels are being compiled is shown in a terminal only: what a program reads from stderr must not
    depend on whether kernels were compiled before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "rankwell.compilation" and not sys.stderr.isatty():
            return
        # Other handlers get the same record: it stays as it is.
        args = tuple(map(in_words_of_options, record.args)) if isinstance(record.args, tuple) else record.args
        text = str(record.msg) % args if args else str(record.msg)
        if text not in self._said:
            self._said.add(text)
            say(text)


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
    """A warning as one line, without the place in the code that Python prints."""
    say(f"warning: {' '.join(str(in_words_of_options(message)).split())}")


def show_log(*, quiet: bool) -> None:
    """Show what the library logs in this command: everything of interest, or with `quiet` only warnings."""
    warnings.showwarning = _show_warning
    logger = logging.getLogger("rankwell")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _NoteHandler)]:
        logger.removeHandler(handler)
    logger.addHandler(_NoteHandler())
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
