"""What an exception is to the user: a line with a remedy and an exit code, or a bug."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rankwell.cli.app import RankwellGroup
from rankwell.cli.failure import explain
from rankwell.errors import DataError, DeviceError, FileFormatError, ParameterError


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (DataError("bad data."), "bad data.", 1),
        (FileFormatError("bad file."), "bad file.", 1),
        (DeviceError("no device."), "no device.", 1),
        (ParameterError("bad parameter."), "bad parameter.", 2),
        (FileNotFoundError(errno.ENOENT, "x", "a.txt"), "there is no file a.txt. Check the path", 1),
        (IsADirectoryError(errno.EISDIR, "x", "a"), "a is a folder, a file is needed. Give the path", 1),
        (NotADirectoryError(errno.ENOTDIR, "x", "a/b"), "a/b cannot exist: a part of this path is a file", 1),
        (PermissionError(errno.EACCES, "x", "a.txt"), "a.txt may not be read or written by this user. Check", 1),
        (OSError(errno.ENOSPC, "x", "a.txt"), "the disk is full, a.txt was not written. Free some space", 1),
        (OSError(errno.ENOSPC, "x"), "the disk is full, the output was not written.", 1),
        (OSError(errno.EROFS, "x", "a.txt"), "a.txt lies on a disk that may only be read. Choose", 1),
        (OSError(errno.EIO, "Input/output error", b"a.txt"), "a.txt cannot be read or written: Input/output error.", 1),
        (MemoryError("Unable to allocate 3 TiB"), "there is not enough memory for this (Unable to allocate 3 TiB).", 1),
    ],
)
def test_mistakes_have_a_line_and_a_code(error: BaseException, line: str, code: int) -> None:
    failure = explain(error)
    assert failure is not None
    assert failure.line.startswith(line)
    assert failure.exit_code == code


def test_an_error_of_the_system_behind_ours_adds_its_remedy() -> None:
    error = DataError("cannot write a.txt: No space left on device.")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    failure = explain(error)
    assert failure is not None
    assert failure.line == f"{error} Free some space or choose another path."


def test_anything_else_is_a_bug() -> None:
    assert explain(ValueError("?")) is None
    assert explain(KeyError("?")) is None


def outcome_of(error: BaseException) -> tuple[int, str]:
    """The exit code and stderr of a command that ends with `error`."""
    app = typer.Typer(cls=RankwellGroup, pretty_exceptions_enable=False)

    @app.callback()
    def group() -> None: ...

    @app.command()
    def fail() -> None:
        raise error

    result = CliRunner().invoke(app, ["fail"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stderr


def test_a_message_of_several_lines_becomes_one() -> None:
    assert outcome_of(DataError("one\n  two\nthree")) == (1, "error: one two three\n")


def test_a_long_message_stays_on_one_line() -> None:
    assert outcome_of(DataError("word " * 100)) == (1, f"error: {'word ' * 99}word\n")


def test_what_looks_like_markup_is_printed_as_it_is() -> None:
    assert outcome_of(DataError("[red]x[/red] :smile: [/]")) == (1, "error: [red]x[/red] :smile: [/]\n")


def test_an_interrupt_says_nothing() -> None:
    assert outcome_of(KeyboardInterrupt()) == (130, "")


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        outcome_of(ZeroDivisionError())


def test_paths_are_named_as_given() -> None:
    with pytest.raises(FileNotFoundError) as raised:
        Path("no/such/file").read_bytes()
    failure = explain(raised.value)
    assert failure is not None
    assert failure.line.startswith("there is no file no/such/file.")
