"""UBJSON, draft 12, the subset that XGBoost writes. The reader runs no code and cannot be made to allocate more than
the bytes it is given.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError

_DEEPEST = 64
_NUMBERS = {"i": "i1", "U": "u1", "I": "i2", "l": "i4", "L": "i8", "d": "f4", "D": "f8"}
_CONSTANTS = {"Z": None, "T": True, "F": False}


def read_ubjson(content: bytes) -> Any:
    """The value that `content` holds: dict, list, NumPy array (a list of one number type), str, number, bool, None."""
    reader = _Reader(content)
    try:
        value = reader.value(reader.marker(), 0)
    except (IndexError, struct.error, UnicodeDecodeError, RecursionError) as cause:
        raise FileFormatError(f"the UBJSON is damaged or cut short at byte {reader.place} ({cause}).") from cause
    if reader.place != len(content):
        raise FileFormatError(f"the UBJSON ends at byte {reader.place}, but it has {len(content)} bytes.")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def marker(self) -> str:
        """The next marker; N is padding and is skipped."""
        while True:
            found = chr(self._content[self.place])
            self.place += 1
            if found != "N":
                return found

    def value(self, marker: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise FileFormatError(f"the UBJSON is nested more than {_DEEPEST} deep at byte {self.place}.")
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker in _NUMBERS:
            return self._numbers(marker, 1)[0].item()
        if marker in ("S", "H"):
            return self._text(self.marker())
        if marker == "C":
            return self._take(1).decode()
        if marker == "[":
            return self._array(depth)
        if marker == "{":
            return self._object(depth)
        raise FileFormatError(f"the UBJSON has an unknown marker {marker!r} at byte {self.place - 1}.")

    def _take(self, length: int) -> bytes:
        if length < 0 or self.place + length > len(self._content):
            raise IndexError(f"{length} bytes expected, {len(self._content) - self.place} are left")
        taken = self._content[self.place : self.place + length]
        self.place += length
        return taken

    def _numbers(self, marker: str, count: int) -> np.ndarray:
        dtype = np.dtype(_NUMBERS[marker]).newbyteorder(">")
        return np.frombuffer(self._take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))

    def _length(self, marker: str) -> int:
        if marker not in _NUMBERS or marker in "dD":
            raise FileFormatError(f"the UBJSON has no length at byte {self.place}, but {marker!r}.")
        length = int(self._numbers(marker, 1)[0])
        if length < 0:
            raise FileFormatError(f"the UBJSON has a length of {length} at byte {self.place}.")
        return length

    def _text(self, marker: str) -> str:
        return self._take(self._length(marker)).decode()

    def _array(self, depth: int) -> Any:
        marker = self.marker()
        kind = None
        if marker == "$":
            kind, marker = self.marker(), self.marker()
            if marker != "#":
                raise FileFormatError(f"the UBJSON has a typed array without a length at byte {self.place}.")
        if marker == "#":
            count = self._length(self.marker())
            if kind in _NUMBERS:
                return self._numbers(kind, count)
            self._check_count(count, kind)
            return [self.value(kind or self.marker(), depth + 1) for _ in range(count)]
        items = []
        while marker != "]":
            items.append(self.value(marker, depth + 1))
            marker = self.marker()
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        marker = self.marker()
        if marker in "$#":
            kind = self.marker() if marker == "$" else None
            if marker == "$" and self.marker() != "#":
                raise FileFormatError(f"the UBJSON has a typed object without a length at byte {self.place}.")
            count = self._length(self.marker())
            self._check_count(count, None)
            for _ in range(count):
                name = self._text(self.marker())
                items[name] = self.value(kind or self.marker(), depth + 1)
            return items
        while marker != "}":
            name = self._text(marker)
            items[name] = self.value(self.marker(), depth + 1)
            marker = self.marker()
        return items

    def _check_count(self, count: int, kind: str | None) -> None:
        """An item takes at least one byte, except the constants of a typed array, which take none."""
        if kind in _CONSTANTS or count > len(self._content) - self.place:
            raise FileFormatError(f"the UBJSON declares {count} items at byte {self.place}, more than its bytes hold.")
