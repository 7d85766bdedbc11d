"""A file that only grows: each piece is appended whole or not at all, by as many processes as there are."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rankwell.errors import DataError


class WriteError(DataError):
    """A file cannot be written: what was to be in it is not."""


class AppendedFile:
    """A file to append to; created if there is none. `descriptor` may be read from."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as cause:
            raise WriteError(f"cannot write {self.path}: {cause.strerror}.") from cause

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A block in which no other process appends."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def write(self, content: bytes) -> None:
        """Append all of it or, if the disk becomes full, nothing; inside `locked`."""
        before = self.size
        try:
            written = 0
            while written < len(content):
                written += os.write(self.descriptor, content[written:])
        except OSError as cause:
            os.ftruncate(self.descriptor, before)
            raise WriteError(
                f"cannot write {self.path}: {cause.strerror}. Free some space or log elsewhere."
            ) from cause

    def write_line(self, line: bytes) -> None:
        """Append a line; one before it that has no end is ended first; inside `locked`."""
        is_open = self.size > 0 and os.pread(self.descriptor, 1, self.size - 1) != b"\n"
        self.write((b"\n" if is_open else b"") + line + b"\n")

    def cut(self, size: int) -> None:
        """Cut off what follows the first `size` bytes; inside `locked`."""
        if size < self.size:
            os.ftruncate(self.descriptor, size)

    def close(self) -> None:
        os.close(self.descriptor)
