"""The text of a CUDA or OpenCL source, with what it includes written out.

`#include "name"` names a file of the same folder, or else of the device's (`kernels/cuda`), or `declarations.h`, which
a subject's `declarations.py` makes from Python's own definitions. Each is included once. The compiler then needs no
folder to look in, and a cache of compiled code that goes by the text, as CuPy's, sees every change.
"""

from __future__ import annotations

import importlib
import re
from importlib.resources import files

DECLARATIONS = "declarations.h"
_INCLUDE = re.compile(r'^#include "([\w.]+)"[^\n]*\n', re.MULTILINE)


def source_text(subject: str, device: str, name: str) -> str:
    """The source `name`, as "rows.cu", of a subject's folder for a device ("cuda" or "opencl")."""
    included = {name}

    def expand(file_name: str, text: str) -> str:
        parts, end = [f'#line 1 "{file_name}"\n'], 0
        for include in _INCLUDE.finditer(text):
            parts.append(text[end : include.start()])
            end = include.end()
            if include[1] not in included:
                included.add(include[1])
                parts.append(expand(include[1], _read(subject, device, include[1])))
            parts.append(f'#line {text.count(chr(10), 0, end) + 1} "{file_name}"\n')
        return "".join([*parts, text[end:]])

    return expand(name, _read(subject, device, name))


def _read(subject: str, device: str, name: str) -> str:
    if name == DECLARATIONS:
        text: str = getattr(importlib.import_module(f"rankwell.kernels.{subject}.declarations"), device.upper())
        return text
    of_subject = files(f"rankwell.kernels.{subject}.{device}").joinpath(name)
    found = of_subject if of_subject.is_file() else files(f"rankwell.kernels.{device}").joinpath(name)
    return found.read_text(encoding="utf-8")
