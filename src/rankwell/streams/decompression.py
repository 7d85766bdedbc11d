"""Byte streams: a file or standard input, decompressed if its first bytes say that it is compressed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankwell.errors import DataError

STANDARD_STREAM = "-"

# By suffix: the codec's name in pyarrow, and the bytes that its files start with.
CODECS = {".gz": ("gzip", b"\x1f\x8b"), ".bz2": ("bz2", b"BZh"), ".zst": ("zstd", b"\x28\xb5\x2f\xfd")}
LONGEST_SIGNATURE = 4


class ByteStream(io.RawIOBase):
    """The bytes of a file, or of standard input for ``-``, to be read once from start to end.

    Attributes
    ----------
    name : str
        Its name in messages.
    size : int or None
        Its size on disk in bytes; None if that is not known.
    is_plain_file : bool
        Whether it is a file with exactly these bytes, so that it can be read a second time.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.name = "standard input" if path == STANDARD_STREAM else path
        self._opened: Any = None
        if path == STANDARD_STREAM and sys.stdin is None:
            raise DataError("standard input is closed. Give the path of a file, or provide standard input.")
        with named_errors(self.name):
            self._opened = sys.stdin.buffer if path == STANDARD_STREAM else open(path, "rb")  # noqa: SIM115
            self.size = os.path.getsize(path) if os.path.isfile(path) else None
            head = _read_fully(self._opened, LONGEST_SIGNATURE)
            if self.size is not None:
                self._opened.seek(0)
        self._file: Any = self._opened if self.size is not None else io.BufferedReader(_Rewound(head, self._opened))
        codec = self._codec(head)
        self.is_plain_file = codec is None and self.size is not None
        self._source: Any = self._file if codec is None else self._decompressed(codec)
        self._ahead = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if self.path != STANDARD_STREAM and self._opened is not None:
            self._opened.close()
        super().close()

    def peek(self, n_bytes: int) -> bytes:
        """The next `n_bytes` (fewer at the end), which are not consumed."""
        with named_errors(self.name):
            self._ahead += _read_fully(self._source, n_bytes - len(self._ahead))
        return self._ahead[:n_bytes]

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`, or less of it at the end; returns how many bytes were read."""
        view = memoryview(buffer)
        filled = min(len(self._ahead), len(view))
        view[:filled] = self._ahead[:filled]
        self._ahead = self._ahead[filled:]
        with named_errors(self.name):
            while filled < len(view):
                n_bytes = self._source.readinto(view[filled:])
                if not n_bytes:
                    break
                filled += n_bytes
        return filled

    def bytes_taken(self) -> int:
        """How many of the `size` bytes on disk have been read."""
        return int(self._file.tell()) if self.size is not None else 0

    def _codec(self, head: bytes) -> str | None:
        for codec, signature in CODECS.values():
            if head.startswith(signature):
                return codec
        for suffix, (codec, signature) in CODECS.items():
            if self.path.endswith(suffix):
                raise DataError(
                    f"{self.name} is named {suffix} but starts with {head!r}, while {codec} files start with "
                    f"{signature!r}: it is damaged or has the wrong name."
                )
        return None

    def _decompressed(self, codec: str) -> Any:
        import pyarrow

        if not pyarrow.Codec.is_available(codec):
            raise DataError(f"{self.name} is compressed with {codec}, which this build of pyarrow cannot read.")
        return pyarrow.CompressedInputStream(pyarrow.PythonFile(self._file, mode="r"), codec)


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Convert errors in reading a file (absent, truncated, damaged) to a DataError that names it."""
    try:
        yield
    except Exception as cause:
        if not isinstance(cause, OSError) and type(cause).__module__.partition(".")[0] != "pyarrow":
            raise
        reason = getattr(cause, "strerror", None) or str(cause).strip().partition("\n")[0]
        if "runcated" in reason:
            reason += ": it ends too early, so download or create it again"
        raise DataError(f"cannot read {name}: {reason.rstrip('.')}.") from cause


class _Rewound(io.RawIOBase):
    """A stream that cannot seek, with the bytes already read from it put back at its start."""

    def __init__(self, head: bytes, file: Any) -> None:
        super().__init__()
        self._head = head
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return int(self._file.readinto1(buffer))
        n_bytes = min(len(buffer), len(self._head))
        buffer[:n_bytes] = self._head[:n_bytes]
        self._head = self._head[n_bytes:]
        return n_bytes


def _read_fully(source: Any, n_bytes: int) -> bytes:
    """`n_bytes` from a source that may return fewer at a time."""
    data = b""
    while len(data) < n_bytes:
        piece = source.read(n_bytes - len(data))
        if not piece:
            break
        data += piece
    return data
