"""Numba's compiler as kernels use it: without work that Numba does several times, or for nothing.

Numba optimises every function by itself and translates it to machine code, and does both again inside each function
that calls it: a function five calls deep is optimised six times. A *part* of a kernel is a function that stops at
LLVM's intermediate code, so that LLVM sees a kernel and all its parts once, as one program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.targetconfig import TargetConfig
from numba.np import linalg


class PartLibrary(JITCodeLibrary):
    """The intermediate code of a part and of the parts that it calls."""

    def finalize(self) -> None:
        """Link what the part calls; optimisation and machine code are left to the kernels that call the part."""
        for library in dict.fromkeys(self._linking_libraries):
            # What the code needs to be loaded: later versions of Numba have it.
            if hasattr(self, "_reload_init"):
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class PartCompiler(Compiler):
    """Numba's compiler, up to LLVM's intermediate code."""

    def compile_extra(self, func: Callable[..., Any]) -> CompileResult:
        """The compiled part; only kernels can call it."""
        self.state.library = PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.flags.no_compile = True
        result = super().compile_extra(func)
        # Numba looks a function up by an object that Python can call; this one has no address, and never is called.
        key = _dynfunc.make_function(
            result.fndesc.lookup_module(), func.__name__, "", 0, result.environment, (result.library,)
        )
        result.target_context.insert_user_function(key, result.fndesc, [result.library])
        return result._replace(entry_point=key)


def compare_options_by_what_is_set() -> None:
    """Let Numba compare the options of two functions by those that are set, not by all that there are.

    It compares them for every function that each operator might mean, which takes a quarter of the time before LLVM.
    """

    def equal(self: TargetConfig, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self._values, other._values
        return mine == theirs or all(
            getattr(self, name) == getattr(other, name) for name in mine.keys() | theirs.keys()
        )

    TargetConfig.__eq__ = equal  # type: ignore[method-assign]
    TargetConfig.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]


def start_without_scipy() -> None:
    """Let Numba start without importing SciPy, which it imports only to check for a BLAS (0.2 s).

    SciPy is a dependency of rankwell, so there is one; kernels that call BLAS import it then.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    look_for_blas = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        arraymath = import_module("numba.np.arraymath")
        arraymath.ensure_blas = look_for_blas  # type: ignore[attr-defined]
    finally:
        linalg.ensure_blas = look_for_blas
