"""How kernels are compiled: Numba without the interpreter lock, cached on disk under a name that cannot go stale.

Numba's cache looks at the file that defines a kernel, but the machine code also holds what the kernel calls and the
constants it reads from other files. Kernels therefore carry a digest of all sources of `rankwell.kernels` in the name
they are cached under: after any change, or an upgrade, they are compiled anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit, types


@cache
def sources_digest() -> str:
    """A digest of every Python file of `rankwell.kernels`."""
    folder = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def kernel(
    function: Callable[..., Any] | None = None, *, signature: Any = None, for_any_constant: bool = False, **options: Any
) -> Any:
    """Compile a function with Numba: when it is first called, or at once for a `signature`.

    Options are those of `numba.njit`. Numba compiles a kernel that others call anew for every constant that they pass,
    and again for numbers that are none; with `for_any_constant` it is compiled once.

    Used as ``@kernel`` or ``@kernel(parallel=True)``.
    """

    def compiled(plain: Callable[..., Any]) -> Any:
        plain.__qualname__ = f"{plain.__qualname__}.{sources_digest()}"
        dispatcher = njit(signature, cache=True, nogil=True, **options)(plain)
        return _without_constants(dispatcher) if for_any_constant else dispatcher

    return compiled if function is None else compiled(function)


def _without_constants(dispatcher: Any) -> Any:
    """A constant among the types that a caller asks for becomes a number like any other."""
    template = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template(
            [types.unliteral(one) for one in args], {name: types.unliteral(one) for name, one in kws.items()}
        )

    dispatcher.get_call_template = get_call_template
    return dispatcher
