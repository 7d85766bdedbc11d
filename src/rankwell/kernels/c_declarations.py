"""Definitions that Python shares with CUDA and OpenCL C, generated as C: constants, enumerations, structs.

A subject's `declarations.py` makes the text `declarations.h` of these; its sources include that (`source_text.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

_NUMBERS = {
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "float": np.float32,
    "double": np.float64,
}


def constants(**values: float) -> str:
    """Macros; numbers with a point are written in hexadecimal, so that no digit is lost."""
    return "".join(f"#define {name} {_literal(value)}\n" for name, value in values.items())


def enumeration(name: str, members: Mapping[str, int] | type[IntEnum]) -> str:
    """An enumeration of members by their numbers; OpenCL C has only anonymous ones (an empty name)."""
    numbers = members if isinstance(members, Mapping) else {member.name: member.value for member in members}
    inside = ", ".join(f"{member} = {int(number)}" for member, number in numbers.items())
    return f"enum {name} {{ {inside} }};\n"


def numbered(names: Iterable[str], first: int = 0) -> dict[str, int]:
    """Names in capitals with numbers one after another, as `enumeration` takes them."""
    return {name.upper(): number for number, name in enumerate(names, first)}


@dataclass(frozen=True)
class Struct:
    """A struct that the host fills and kernels read.

    fields : (C type, name, meaning) each; a pointer's type ends with an asterisk
    alignment : bytes, if it is more than the fields'
    """

    name: str
    fields: tuple[tuple[str, str, str], ...]
    alignment: int = 0

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The layout that C gives it."""
        return np.dtype([(name, _layout(kind)) for kind, name, _ in self.fields], align=True)

    def declaration(self) -> str:
        """The struct in CUDA C++, which fails to compile if its size is not that of `dtype`."""
        aligned = f"__align__({self.alignment}) " if self.alignment else ""
        inside = "".join(f"  {kind} {name};  // {meaning}".rstrip(" /") + "\n" for kind, name, meaning in self.fields)
        size = self.dtype.itemsize
        check = f'static_assert(sizeof({self.name}) == {size}, "{self.name} has {size} bytes on the host");\n'
        return f"struct {aligned}{self.name} {{\n{inside}}};\n{check}"

    def bytes_of(self, name: str) -> slice:
        """The offset of a field in an element of `dtype`."""
        fields: Mapping[str, Any] = self.dtype.fields or {}
        layout, start = fields[name][:2]
        return slice(start, start + layout.itemsize)

    def pack(self, **values: Any) -> np.ndarray:
        """The struct as one element, to be passed by value: addresses of device arrays, and numbers."""
        packed = np.zeros(1, dtype=self.dtype)
        for kind, name, _ in self.fields:
            packed[name] = values[name].data.ptr if kind.endswith("*") else values[name]
        return packed


def _layout(kind: str) -> Any:
    return np.uint64 if kind.endswith("*") else _NUMBERS[kind]


def _literal(value: float) -> str:
    return float(value).hex() if isinstance(value, float) else str(int(value))
