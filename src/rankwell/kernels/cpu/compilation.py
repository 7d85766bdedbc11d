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

from numba import njit


@cache
def sources_digest() -> str:
    """A digest of every Python file of `rankwell.kernels`."""
    folder = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def kernel(function: Callable[..., Any] | None = None, *, signature: Any = None, **options: Any) -> Any:
    """Compile a function with Numba: when it is first called, or at once for a `signature`.

    Options are those of `numba.njit`.

    Used as ``@kernel`` or ``@kernel(parallel=True)``.
    """

    def compiled(plain: Callable[..., Any]) -> Any:
        plain.__qualname__ = f"{plain.__qualname__}.{sources_digest()}"
        return njit(signature, cache=True, nogil=True, **options)(plain)

    return compiled if function is None else compiled(function)
