"""How CPU kernels are compiled: Numba without the interpreter lock, kept by `kernel_cache`, never a silent wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit, types

from rankwell.kernels.cpu.kernel_cache import KernelCache

logger = logging.getLogger("rankwell")

# A compilation that takes longer is announced.
_SECONDS_IN_SILENCE = 1.0


def kernel(
    function: Callable[..., Any] | None = None, *, signature: Any = None, for_any_constant: bool = False, **options: Any
) -> Any:
    """Compile a function with Numba: when it is first called, or at once for a `signature`.

    Options are those of `numba.njit`. Numba compiles a kernel that others call anew for every constant that they pass,
    and again for numbers that are not constants; with `for_any_constant` it is compiled once.

    Used as ``@kernel`` or ``@kernel(parallel=True)``.
    """

    def compiled(plain: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(plain)
        cache = KernelCache(plain)
        dispatcher._cache = cache
        dispatcher.compile = _announced(dispatcher.compile, cache, plain)
        if for_any_constant:
            dispatcher.get_call_template = _without_constants(dispatcher.get_call_template)
        if signature is not None:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher

    return compiled if function is None else compiled(function)


def inner_kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """As `kernel`, for a function that only other kernels call.

    It has no entry from Python, whose compilation takes as long as that of the function where arguments hold arrays.
    """
    return kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


def call_of(dispatcher: Any, typing_context: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """What a Numba intrinsic returns that stands for a call of a kernel which it has chosen by its arguments' types."""
    kernel_type = types.Dispatcher(dispatcher)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        call = context.get_function(kernel_type, signature)
        context.add_linking_libs(getattr(call, "libs", ()))
        return call(builder, values)

    return kernel_type.get_call_type(typing_context, arguments, {}), generate


def _announced(compile_signature: Callable[[Any], Any], cache: KernelCache, plain: Callable[..., Any]) -> Any:
    def compile_and_tell(signature: Any) -> Any:
        try:
            with _announcement.around(plain.__module__):
                return compile_signature(signature)
        finally:
            cache.release()

    return compile_and_tell


def _without_constants(template: Callable[[Any, Any], Any]) -> Any:
    """A constant among the types that a caller asks for becomes a number like any other."""

    def get_call_template(args: Any, kws: Any) -> Any:
        return template(
            [types.unliteral(one) for one in args], {name: types.unliteral(one) for name, one in kws.items()}
        )

    return get_call_template


class _Announcement:
    """Says that kernels are being compiled, once a subject, when it takes longer than a second."""

    def __init__(self) -> None:
        self._depth = threading.local()
        self._said: set[str] = set()

    @contextmanager
    def around(self, module: str) -> Iterator[None]:
        """During a compilation. Kernels compiled on the way to another one belong to that one."""
        depth = getattr(self._depth, "value", 0)
        self._depth.value = depth + 1
        timer = None
        if depth == 0 and module not in self._said:
            timer = threading.Timer(_SECONDS_IN_SILENCE, self._say, args=(module,))
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            self._depth.value = depth
            if timer is not None:
                timer.cancel()

    def _say(self, module: str) -> None:
        subject = module.removeprefix("rankwell.kernels.").split(".")[0]
        if subject not in self._said:
            self._said.add(subject)
            logger.warning("compiling kernels (%s): once on this machine, they are kept for later runs.", subject)


_announcement = _Announcement()
