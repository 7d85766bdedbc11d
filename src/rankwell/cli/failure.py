"""What went wrong, in one line, and the exit code that goes with it.

0 is success, 1 a failure, 2 a wrong command line (an unknown option, a missing argument, a value that is not allowed),
130 an interrupt. What is not listed here is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from rankwell.cli.naming import option_of
from rankwell.errors import ParameterError, RankwellError

FAILED = 1
USAGE = 2
INTERRUPTED = 130

_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Failure:
    """A line for the user and the exit code."""

    line: str
    exit_code: int


def explain(error: BaseException) -> Failure | None:
    """The failure that `error` is to the user, or None where it is a bug."""
    if isinstance(error, RankwellError):
        line = error.in_words_of(option_of)
        if isinstance(error.__cause__, OSError):
            line = f"{line} {_remedy(error.__cause__)}"
        return Failure(line, USAGE if isinstance(error, ParameterError) else FAILED)
    if isinstance(error, OSError):
        return Failure(f"{_complaint(error)} {_remedy(error)}", FAILED)
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return Failure(f"there is not enough memory for this{detail}. Use less data or a larger machine.", FAILED)
    return None


def _complaint(error: OSError) -> str:
    name = "the output" if error.filename is None else os.fsdecode(error.filename)
    if isinstance(error, FileNotFoundError):
        return f"there is no file {name}."
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder, a file is needed."
    if isinstance(error, NotADirectoryError):
        return f"{name} cannot exist: a part of this path is a file, not a folder."
    if isinstance(error, PermissionError):
        return f"{name} may not be read or written by this user."
    if error.errno in _FULL:
        return f"the disk is full, {name} was not written."
    if error.errno == errno.EROFS:
        return f"{name} lies on a disk that may only be read."
    return f"{name} cannot be read or written: {error.strerror or error or type(error).__name__}."


def _remedy(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"Check the path; it is looked for from {os.getcwd()}."
    if isinstance(error, IsADirectoryError):
        return "Give the path of a file in it."
    if isinstance(error, NotADirectoryError):
        return "Check the path."
    if isinstance(error, PermissionError):
        return "Check its permissions (ls -l) or choose another path."
    if error.errno in _FULL:
        return "Free some space or choose another path."
    if error.errno == errno.EROFS:
        return "Choose another path."
    return "Check the file and its disk."
