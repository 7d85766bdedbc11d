"""Files that commands write: checked before the work, written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rankwell.errors import DataError, ParameterError
from rankwell.streams.whole_files import replace_file, why_not_writable

# Formats of drawings that a message names first.
_DRAWN = ("png", "svg", "pdf")


def check_output(path: Path, *, option: str = "--out", inputs: Sequence[Path | None] = ()) -> None:
    """Refuse a path that cannot be written before the work (perhaps an hour of training) starts.

    Also refused is one that would replace a file that the command reads, under any name or link, or that is in the
    folder of an index that it reads. Missing folders are created when the file is written.
    """
    if str(path) == "-":
        return
    for source in inputs:
        if source is not None and _would_replace(path, source):
            raise DataError(f"{option} {path} would replace {source}, which this command reads. Choose another path.")
    if reason := why_not_writable(path):
        raise DataError(f"{option} {path} {reason}")


def check_data_output(path: Path, *, option: str = "--out", inputs: Sequence[Path | None] = ()) -> None:
    """The same for a file of rows, whose ending says in which format they are written."""
    from rankwell.data.files import written_format

    check_output(path, option=option, inputs=inputs)
    written_format(path)


def check_drawing(path: Path, *, option: str = "--out", inputs: Sequence[Path | None] = ()) -> None:
    """The same for a drawing, which also needs Matplotlib, and an ending that is a format it draws."""
    from rankwell.rankers.history_plot import new_figure

    check_output(path, option=option, inputs=inputs)
    formats = new_figure(height=1.0).canvas.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in formats:
        got = f"got {path.suffix!r}" if path.suffix else "it has none"
        raise ParameterError(
            f"{option} {path}: the ending says how to draw, it must be {', '.join(f'.{one}' for one in _DRAWN)} or "
            f"another format of Matplotlib, {got}."
        )


def _would_replace(path: Path, source: Path) -> bool:
    """Whether to write `path` is to write to the file `source`, or into the index `source`."""
    if source.is_dir():
        from rankwell.index.commits.manifest import MANIFEST_NAME

        return (source / MANIFEST_NAME).exists() and source.resolve() in path.resolve().parents
    return source.is_file() and path.exists() and path.samefile(source)


def write_output(path: Path, content: bytes) -> None:
    """Write `content` to `path` (``-`` is stdout), through a temporary file and a rename.

    A device or a pipe (/dev/null, /dev/stdout) is written directly: renaming would replace it by a plain file.
    """
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    elif path.exists() and not path.is_file():
        with open(path, "wb") as stream:
            stream.write(content)
    else:
        # The file that a link names: renaming to the path of the link would replace the link.
        replace_file(path.resolve(), content)
