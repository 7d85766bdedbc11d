"""One writer at a time: a lock that the operating system releases when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from rankwell.errors import IndexLockedError

LOCK_NAME = "writer.lock"


class WriterLock:
    """Held from construction to `release`. Readers never look at it."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            if holder == str(os.getpid()):
                raise IndexLockedError(
                    f"this process has another writer open on {folder}. An index takes one writer at a time: close "
                    f"that one first, or use it."
                ) from cause
            by = f" (process {holder})" if holder.isdigit() else ""
            raise IndexLockedError(
                f"another writer{by} is working on {folder}. An index takes one writer at a time: wait until it has "
                f"finished, or stop it; readers need not wait."
            ) from cause
        # Only for the message above; the lock itself is the operating system's and works on a full disk, too.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock. The file stays: removing it would let two writers lock two files of one name."""
        os.close(self._descriptor)
