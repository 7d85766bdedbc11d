"""What tells functions apart, so that a run is continued with the functions that it began with, in another process too.

A Python function is its module and name, its instructions and constants, its default arguments, and the values and
functions that it finds in scopes around it. Of any other object it is what pickles.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import pickle
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwell.errors import Parameter, ParameterError

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")


def function_identity(function: Any, parameter: str) -> str:
    """A digest of what the function computes, as far as it can be told; an error if it cannot.

    parameter : the one that it is the value of
    """
    try:
        return _digest(_parts(function, ()))
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError) as cause:
        raise ParameterError(
            f"is {function!r}, and nothing tells a run that resumes from a checkpoint that it is the same function "
            f"({cause}). Use a function that reads plain values only, or leave out ",
            Parameter("checkpoint"),
            ".",
            parameter=parameter,
        ) from cause


def _digest(parts: Iterator[Any]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()


def _parts(value: Any, within: tuple[int, ...]) -> Iterator[Any]:
    """What is told of a value, text and bytes; `within` are the functions that it is found in."""
    yield type(value).__qualname__
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, types.FunctionType):
        yield f"{value.__module__}.{value.__qualname__}"
        if id(value) not in within:
            yield from _of_function(value, (*within, id(value)))
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _parts((value.co_names, value.co_varnames), within)
        yield from _parts(value.co_consts, within)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    elif isinstance(value, types.MethodType):
        yield from _parts((value.__func__, value.__self__), within)
    elif isinstance(value, functools.partial):
        yield from _parts((value.func, value.args, value.keywords), within)
    elif isinstance(value, tuple | list):
        yield from (_digest(_parts(item, within)) for item in value)
    elif isinstance(value, set | frozenset):
        yield from sorted(_digest(_parts(item, within)) for item in value)
    elif isinstance(value, dict):
        yield from _parts(list(value.items()), within)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype.str}{value.shape}"
        yield np.ascontiguousarray(value).tobytes()
    else:
        call = getattr(type(value), "__call__", None)  # noqa: B004
        if isinstance(call, types.FunctionType):
            yield from _parts(call, within)
        yield pickle.dumps(value)


def _of_function(function: types.FunctionType, within: tuple[int, ...]) -> Iterator[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _parts((function.__code__, function.__defaults__, function.__kwdefaults__, cells), within)
    # What a package's own functions find in their module belongs to its release.
    if _is_installed(function):
        return
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield name
            yield from _parts(function.__globals__[name], within)


def _global_names(code: types.CodeType) -> list[str]:
    """The names that a function, and those within it, look up in its module."""
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in _GLOBALS}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= set(_global_names(constant))
    return sorted(names)


def _is_installed(function: types.FunctionType) -> bool:
    return "site-packages" in function.__code__.co_filename
