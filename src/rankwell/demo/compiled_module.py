"""Modules written in C: their documentation is read from the running interpreter, since there is no source to parse."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

from rankwell.demo.definitions import Definition

# Importing any of these only adds names: nothing is opened, started, registered or printed.
HARMLESS = (
    *("_bisect", "_collections", "_csv", "_datetime", "_decimal", "_functools", "_heapq", "_io", "_json", "_operator"),
    *("_random", "_signal", "_socket", "_struct", "_thread", "_tracemalloc", "_weakref", "array", "atexit", "binascii"),
    *("builtins", "cmath", "errno", "faulthandler", "fcntl", "gc", "grp", "itertools", "marshal", "math", "mmap"),
    *("posix", "pwd", "resource", "select", "sys", "syslog", "termios", "time", "unicodedata", "zlib"),
)

# `join(iterable, /)` or `gmtime([seconds]) -> tuple` as the first line of a docstring.
_SIGNATURE_LINE = re.compile(r"\A\w[\w.]*(\(.*\))(?:\s*->\s*[^\n]*)?\s*(?:\n|\Z)")

# The parts of a text signature for `self` and the module, which a caller does not write; and a parameter's default.
_BOUND = re.compile(r"\$\w+(?:, /)?(?:, )?")
_DEFAULT = re.compile(r"=[^,)\]]*")


def compiled_definitions(name: str) -> list[Definition]:
    """The module, its documented public classes, methods and functions; nothing for a module that is absent."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return []
    found = [Definition(name, name, "module", inspect.cleandoc(module.__doc__))] if module.__doc__ else []
    for local_name, value in sorted(vars(module).items()):
        if not local_name.startswith("_"):
            found.extend(_definitions(local_name, value, module))
    return found


def _definitions(local_name: str, value: object, module: ModuleType) -> Iterator[Definition]:
    if inspect.isclass(value):
        if value.__name__ == local_name:
            yield from _definition(f"{module.__name__}.{local_name}", module.__name__, "class", value)
            for member_name, member in sorted(vars(value).items()):
                if not member_name.startswith("_") and _is_documented_member(member):
                    name = f"{module.__name__}.{local_name}.{member_name}"
                    yield from _definition(name, module.__name__, "function", member)
    elif inspect.isbuiltin(value):
        yield from _definition(f"{module.__name__}.{local_name}", module.__name__, "function", value)


def _is_documented_member(member: object) -> bool:
    kinds = inspect.ismethoddescriptor, inspect.isgetsetdescriptor, inspect.ismemberdescriptor, inspect.isroutine
    return any(is_kind(member) for is_kind in kinds)


def _definition(name: str, module: str, kind: str, value: object) -> Iterator[Definition]:
    documented = getattr(value, "__doc__", None)
    if not isinstance(documented, str):
        return
    text = inspect.cleandoc(documented)
    line = _SIGNATURE_LINE.match(text)
    signature = getattr(value, "__text_signature__", None) or (line.group(1) if line else "")
    text = text[line.end() :].strip() if line else text
    if text:
        signature = " ".join(_BOUND.sub("", signature).split())
        n_parameters = len(re.findall(r"[A-Za-z_]\w*", _DEFAULT.sub("", signature)))
        yield Definition(name, module, "class" if kind == "class" else "function", text, signature, n_parameters)
