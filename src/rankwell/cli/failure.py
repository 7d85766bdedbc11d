"""What went wrong, in one line, and the exit code that goes with it.

0 is success, 1 a failure, 2 a wrong command line (an unknown option, a missing argument, a value that is not allowed),
130 an interrupt. What is not listed here is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from rankwell.errors import ParameterError, RankwellError

FAILED = 1
USAGE = 2
INTERRUPTED = 130


@dataclass(frozen=True)
class Failure:
    """A line for the user and the exit code."""

    line: str
    exit_code: int


def explain(error: BaseException) -> Failure | None:
    """The failure that `error` is to the user, or None where it is a bug."""
    if isinstance(error, RankwellError):
        return Failure(str(error), USAGE if isinstance(error, ParameterError) else FAILED)
    if isinstance(error, OSError):
        return Failure(_explain_system_error(error), FAILED)
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return Failure(f"there is not enough memory for this{detail}. Use less data or a larger machine.", FAILED)
    return None


def _explain_system_error(error: OSError) -> str:
    name = "the output" if error.filename is None else os.fspath(error.filename)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if error.filename2 is not None:
        name = f"{name} or {error.filename2}"
    if isinstance(error, FileNotFoundError):
        return f"there is no file {name}. Check the path; it is looked for from {os.getcwd()}."
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder, a file is needed. Give the path of a file in it."
    if isinstance(error, NotADirectoryError):
        return f"{name} cannot exist: a part of this path is a file, not a folder. Check the path."
    if isinstance(error, PermissionError):
        return f"{name} may not be read or written by this user. Check its permissions (ls -l) or choose another path."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full, {name} was not written. Free some space or choose another path."
    if error.errno == errno.EROFS:
        return f"{name} lies on a disk that may only be read. Choose another path."
    reason = error.strerror or str(error) or type(error).__name__
    return f"{name} cannot be read or written: {reason}. Check the file and its disk."
