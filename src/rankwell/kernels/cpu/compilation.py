"""How CPU kernels are compiled: by Numba, without the interpreter lock, cached by `kernel_cache`."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from numba import njit, types

from rankwell.kernels.cpu.compiler import PartCompiler, compare_options_by_what_is_set, start_without_scipy
from rankwell.kernels.cpu.kernel_cache import KernelCache

start_without_scipy()
compare_options_by_what_is_set()

COMPILATION_LOG = "rankwell.compilation"
"""The logger for compilations of more than a second."""

# The seconds that the kernels of a common call take to compile, by subject, on one core of an AMD EPYC.
SECONDS = {
    "letor_text": 2,
    "ranking_metrics": 2,
    "scoring": 2,
    "binning": 2,
    "boosting": 10,
    "trees": 8,
    "pair_loss": 6,
    "lists": 8,
    "selection": 6,
    "extraction": 8,
    "postings": 4,
    "words": 1,
}

logger = logging.getLogger(COMPILATION_LOG)

# A compilation that takes longer is announced, once per subject.
_SECONDS_IN_SILENCE = 1.0
_OBJECTS_PER_COLLECTION = 200_000


class CalledKernel(NamedTuple):
    """A kernel that Python called: where it is defined, and the types of its arguments."""

    module: str
    name: str
    signature: Any


_kernels: dict[tuple[str, str], Any] = {}
_called: list[CalledKernel] = []


def called_kernels() -> list[CalledKernel]:
    """The kernels that Python has called in this process, each once for every set of types."""
    return list(_called)


def kernel_of(module: str, name: str) -> Any:
    """Import a module and return its kernel of that name."""
    return _kernels[module, name]


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    for_any_constant: bool = False,
    allocates: bool | None = None,
    **options: Any,
) -> Any:
    """Compile a function with Numba when it is first called.

    Used as ``@kernel`` or ``@kernel(error_model="numpy")``.

    Parameters
    ----------
    for_any_constant : Numba compiles a kernel that others call anew for every constant that they pass, and once more
        for numbers that are not constants; with this it is compiled once.
    allocates : False for a function that makes no array and returns none. Numba counts a reference for every view that
        a loop takes (``out[row]``, ``values[first:last]``), by an atomic instruction, and cannot always remove the
        counting, which is a fifth of the time in loops over documents; without arrays of its own a function need not
        count. None: as the first kernel that calls it.
    options : those of `numba.njit`
    """
    options = _with_counting(options, allocates)

    def make_dispatcher(plain: Callable[..., Any]) -> Any:
        dispatcher = _dispatcher(plain, options)
        _kernels[plain.__module__, plain.__qualname__] = dispatcher
        if "inline" not in options:
            _call_as_part(dispatcher, lambda: _part_dispatcher(plain, options))
        return dispatcher

    return _decorator(function, make_dispatcher, for_any_constant)


def inner_kernel(
    function: Callable[..., Any] | None = None,
    *,
    for_any_constant: bool = False,
    allocates: bool | None = None,
    **options: Any,
) -> Any:
    """Like `kernel`, for a function that only other kernels call: it is compiled as a part of them (see `compiler`)."""
    options = _with_counting(options, allocates)
    return _decorator(function, lambda plain: _part_dispatcher(plain, options), for_any_constant)


def inlined_kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Like `inner_kernel`, for a function that is copied to every place where it is called."""
    return inner_kernel(function, forceinline=True, for_any_constant=True, **options)


def _with_counting(options: dict[str, Any], allocates: bool | None) -> dict[str, Any]:
    return options if allocates is None else {**options, "_nrt": allocates}


def _decorator(function: Callable[..., Any] | None, make_dispatcher: Callable[..., Any], for_any_constant: bool) -> Any:
    def decorated(plain: Callable[..., Any]) -> Any:
        dispatcher = make_dispatcher(plain)
        if for_any_constant:
            dispatcher.get_call_template = _without_constants(dispatcher.get_call_template)
        return dispatcher

    return decorated if function is None else decorated(function)


def _dispatcher(plain: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What Numba makes of a function, with our cache. No kernel is called by its address, so none has a C function."""
    decorate: Any = njit
    dispatcher = decorate(nogil=True, no_cfunc_wrapper=True, **options)(plain)
    kernel_cache = KernelCache(plain, options)
    dispatcher._cache = kernel_cache
    dispatcher.compile = _announced(dispatcher.compile, kernel_cache, plain)
    return dispatcher


def _part_dispatcher(plain: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What Numba makes of a function that is compiled as a part of others."""
    decorate: Any = njit
    # Numba gives a function the options of its first caller: unlike the others, this one must not be passed on.
    return decorate(
        nogil=True,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=True,
        pipeline_class=PartCompiler,
        **{"forceinline": False, **options},
    )(plain)


def _call_as_part(dispatcher: Any, make_part: Callable[[], Any]) -> None:
    """Let kernels call a kernel as a part of theirs, unless Python has called it with these types."""
    own_template, own_overload = dispatcher.get_call_template, dispatcher.get_overload
    part = cache(make_part)

    def get_call_template(args: Any, kws: Any) -> Any:
        return (own_template if tuple(args) in dispatcher.overloads else part().get_call_template)(args, kws)

    def get_overload(args: Any) -> Any:
        return (own_overload if tuple(args) in dispatcher.overloads else part().get_overload)(args)

    dispatcher.get_call_template, dispatcher.get_overload = get_call_template, get_overload


def call_of(dispatcher: Any, typing_context: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """The result of a Numba intrinsic that calls a kernel chosen by the types of its arguments."""
    kernel_type = types.Dispatcher(dispatcher)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        call = context.get_function(kernel_type, signature)
        context.add_linking_libs(getattr(call, "libs", ()))
        return call(builder, values)

    return kernel_type.get_call_type(typing_context, arguments, {}), generate


def _announced(compile_signature: Callable[[Any], Any], cache: KernelCache, plain: Callable[..., Any]) -> Any:
    def compile_and_tell(signature: Any) -> Any:
        try:
            with _announcement.around(plain.__module__) as is_outermost:
                if not is_outermost:
                    return compile_signature(signature)
                _called.append(CalledKernel(plain.__module__, plain.__qualname__, signature))
                with _rare_garbage_collection():
                    return compile_signature(signature)
        finally:
            cache.release()

    return compile_and_tell


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely inside the block: the compiler's objects stay. It saves an eighth of the time."""
    threshold = gc.get_threshold()
    gc.set_threshold(max(threshold[0], _OBJECTS_PER_COLLECTION), *threshold[1:])
    try:
        yield
    finally:
        gc.set_threshold(*threshold)


def _without_constants(template: Callable[[Any, Any], Any]) -> Any:
    """Treats a constant among the requested types as an ordinary number."""

    def get_call_template(args: Any, kws: Any) -> Any:
        return template(
            [types.unliteral(one) for one in args], {name: types.unliteral(one) for name, one in kws.items()}
        )

    return get_call_template


class _Announcement:
    """Logs that kernels are being compiled, once per subject, if it takes longer than a second."""

    def __init__(self) -> None:
        self._depth = threading.local()
        self._said: set[str] = set()

    @contextmanager
    def around(self, module: str) -> Iterator[bool]:
        """Enclose a compilation; yields whether Python requested it, as opposed to the compilation of another
        kernel.
        """
        depth = getattr(self._depth, "value", 0)
        self._depth.value = depth + 1
        timer = None
        if depth == 0 and module not in self._said:
            timer = threading.Timer(_SECONDS_IN_SILENCE, self._say, args=(module,))
            timer.daemon = True
            timer.start()
        try:
            yield depth == 0
        finally:
            self._depth.value = depth
            if timer is not None:
                timer.cancel()

    def _say(self, module: str) -> None:
        subject = module.removeprefix("rankwell.kernels.").split(".")[0]
        if subject not in self._said:
            self._said.add(subject)
            logger.warning(
                "compiling kernels of %s: about %d s, once. They are cached for later runs; see `rankwell warm`.",
                subject,
                SECONDS.get(subject, 10),
            )


_announcement = _Announcement()
