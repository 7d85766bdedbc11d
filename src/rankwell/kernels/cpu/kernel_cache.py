"""Where compiled kernels are stored: in the wheel, and in a folder of the user.

Each kernel is one file, named after the function and a digest of everything its machine code depends on: the sources of
the kernel and of its imports from `rankwell.kernels`, the types of its arguments, the processor it is for, and the
versions of Python, Numba and llvmlite. A file with the right name is therefore never out of date, wherever it was
written: a change recompiles only the kernels that depend on it.

A file that is damaged, truncated or unreadable counts as absent, as does one that other users can write (it holds
code), and nothing is stored in a folder that is not writable; none of it is an error. Of two processes that need the
same kernel at the same time, one waits for the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import pickle
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import llvmlite  # type: ignore[import-untyped]
import numba
from llvmlite import binding as llvm
from numba import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

logger = logging.getLogger("rankwell")

PREBUILT = Path(__file__).parents[1] / "prebuilt"
VERSIONS_FILE = "versions.json"
_KERNELS = Path(__file__).parents[1]
_MAGIC = b"rankwell kernel 1\n"
_CHECKSUM_BYTES = 16
_UNUSED_DAYS = 90
# The processor features that machine code of a level needs; the highest level first.
_LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}


def versions() -> dict[str, str]:
    """What Numba's machine code depends on besides its source and the processor."""
    return {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
    }


@cache
def runnable_levels() -> tuple[str, ...]:
    """The levels of machine code that wheels contain and this processor supports, the highest first."""
    if os.uname().machine == "aarch64":
        return ("generic",)
    features = llvm.get_host_cpu_features()
    lowest_first = reversed(_LEVELS.items())
    return tuple(
        reversed([level for level, _ in takewhile(lambda item: all(map(features.get, item[1])), lowest_first)])
    )


def cache_folder() -> Path | None:
    """Where kernels compiled on this machine are stored: $RANKWELL_CACHE_DIR, or the user's folder for caches."""
    named = os.environ.get("RANKWELL_CACHE_DIR")
    if named:
        return Path(named)
    user = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(user) / "rankwell" if user else Path.home() / ".cache" / "rankwell"
    except RuntimeError:  # there is no home folder
        return None


@cache
def source_digest(module: str) -> str:
    """A digest of the sources of a module of `rankwell.kernels` and of all that it imports from there."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(_import_closure(module)):
        digest.update(name.encode() + b"\0" + _source(name)[0] + b"\0")
    return digest.hexdigest()


def _import_closure(module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_source(name)[1])
    return found


# Modules that kernels import, but that do not affect machine code.
_WITHOUT_EFFECT = {f"rankwell.kernels.{name}" for name in ("cpu.kernel_cache", "threads", "device")}
_IMPORT = re.compile(rb"^\s*from (rankwell\.kernels[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAME = re.compile(rb"\b(\w+)\b(?: as \w+)?")


@cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """A module's source, and the modules of `rankwell.kernels` that it imports."""
    path = _path_of(module)
    if path is None:
        return b"", ()
    source = path.read_bytes()
    imported = []
    for package, names in _IMPORT.findall(source):
        imported.append(package.decode())
        imported += [f"{package.decode()}.{name.decode()}" for name in _NAME.findall(names)]
    return source, tuple(name for name in imported if name not in _WITHOUT_EFFECT and _path_of(name) is not None)


@cache
def _path_of(module: str) -> Path | None:
    """The file of a module of `rankwell.kernels`, or of a kernel that is defined elsewhere (in a test)."""
    parts = module.split(".")
    if parts[:2] != ["rankwell", "kernels"]:
        file = getattr(sys.modules.get(module), "__file__", None)
        return None if file is None else Path(file)
    path = _KERNELS.joinpath(*parts[2:]).with_suffix(".py")
    return path if len(parts) > 2 and path.is_file() else None


class KernelCache:
    """Numba's interface to the cache: it loads compiled kernels from here and saves them here.

    Parameters
    ----------
    function : the plain Python function of the kernel
    options : what it is compiled with
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._function = function
        self._options = options
        self._lock: IO[bytes] | None = None

    @property
    def cache_path(self) -> str | None:
        folder = cache_folder()
        return None if folder is None else str(folder)

    def enable(self) -> None:
        """Always on."""

    def disable(self) -> None:
        """Always on."""

    def flush(self) -> None:
        """Does nothing: there is no buffer."""

    def load_overload(self, signature: Any, target_context: Any) -> CompileResult | None:
        """The kernel for `signature`; None if it is not stored, and then other processes wait until `release`."""
        target_context.refresh()
        for level in runnable_levels() if _prebuilt_fits() else ():
            prebuilt = PREBUILT / level / self._file_name(signature, (level, ""))
            found = _load(prebuilt, target_context, is_installed=True)
            if found is not None:
                return found
        path = self.path_of(signature, target_context.codegen())
        if path is None:
            return None
        found = _load(path, target_context)
        if found is None and self._take_lock(path):
            found = _load(path, target_context)
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a compiled kernel, if possible."""
        path = self.path_of(signature, result.codegen)
        if path is None or result.library.has_dynamic_globals or any(not lifted.can_cache for lifted in result.lifted):
            return
        try:
            _prune(path.parent)
            _write(path, dumps(result._reduce()))
        except OSError as cause:
            _say_once(f"compiled kernels are not cached: {path.parent} cannot be written to ({cause.strerror}).")

    def release(self) -> None:
        """Release the lock that other processes wait for."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            with contextlib.suppress(OSError):
                os.unlink(lock.name)
            lock.close()

    def path_of(self, signature: Any, codegen: Any) -> Path | None:
        """The file for a kernel compiled on this machine; None if there is no folder for it."""
        folder = cache_folder()
        if folder is None:
            _say_once("compiled kernels are not cached: there is no home folder. Set RANKWELL_CACHE_DIR.")
            return None
        _, processor, features = codegen.magic_tuple()
        return folder / self._file_name(signature, (processor, features))

    def _file_name(self, signature: Any, processor: tuple[str, str]) -> str:
        function = self._function
        key = [
            function.__module__,
            function.__qualname__,
            source_digest(function.__module__),
            hashlib.sha256(function.__code__.co_code).hexdigest(),
            str(signature),
            *processor,
            *versions().values(),
            str(_bounds_checked()),
            str(sorted(self._options.items())),
        ]
        if function.__closure__ is not None:
            content = dumps(tuple(cell.cell_contents for cell in function.__closure__))
            key.append(hashlib.sha256(content).hexdigest())
        digest = hashlib.blake2b("\0".join(key).encode(), digest_size=16).hexdigest()
        subject = function.__module__.removeprefix("rankwell.kernels.")
        return f"{subject}.{function.__name__}-{digest}"

    def _take_lock(self, path: Path) -> bool:
        """Whether this process must compile the kernel of `path`, or has waited for another that compiled it.

        Kernels call each other in one direction, so that waiting for a callee's lock cannot deadlock.
        """
        import fcntl

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = open(path.with_name(path.name + ".lock"), "wb")  # noqa: SIM115
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            lock.close()
            return False
        self._lock = lock
        return True


def _bounds_checked() -> bool:
    """Whether Numba was asked to check every index (NUMBA_BOUNDSCHECK), which gives different machine code."""
    return bool(config.BOUNDSCHECK)  # type: ignore[attr-defined]


@cache
def _prebuilt_fits() -> bool:
    """Whether the machine code of this installation was built for these versions; logs once if not."""
    if _bounds_checked():
        return False
    try:
        built_for = json.loads((PREBUILT / VERSIONS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False  # a checkout has no machine code
    different = {name: value for name, value in versions().items() if built_for.get(name) != value}
    if different:
        have = ", ".join(f"{name} {value}" for name, value in different.items())
        want = ", ".join(f"{name} {built_for.get(name)}" for name in different)
        logger.warning(
            "the compiled kernels of this installation are for %s, but this is %s: kernels are compiled on first use.",
            want,
            have,
        )
    return not different


@cache
def _say_once(text: str) -> None:
    logger.info(text)


def _load(path: Path, target_context: Any, *, is_installed: bool = False) -> CompileResult | None:
    """The kernel in a file; None if the file is absent, damaged, invalid or, unless it is part of the installation,
    not trusted.
    """
    try:
        with open(path, "rb") as file:
            if not (is_installed or _is_trusted(file)):
                return None
            content = file.read()
    except OSError:
        return None
    start = len(_MAGIC) + _CHECKSUM_BYTES
    payload = content[start:]
    if content[:start] != _MAGIC + _checksum(payload):
        return None
    try:
        result = CompileResult._rebuild(target_context, *pickle.loads(payload))
    except Exception as cause:
        logger.debug("%s could not be loaded: %r", path, cause)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return result


def _is_trusted(file: IO[bytes]) -> bool:
    """Whether nobody but this user and root can have written a file: it holds code that will run."""
    status = os.fstat(file.fileno())
    is_trusted = status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not is_trusted:
        _say_once(f"compiled kernels in {Path(file.name).parent} are ignored: other users can write them.")
    return is_trusted


def _write(path: Path, payload: bytes) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _replaced_whole(path) as file:
        file.write(_MAGIC + _checksum(payload) + payload)


@contextlib.contextmanager
def _replaced_whole(path: Path) -> Iterator[IO[bytes]]:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECKSUM_BYTES).digest()


@cache
def _prune(folder: Path) -> None:
    """Once per process that compiles: delete files not used for a long time, such as kernels of earlier releases."""
    oldest = time.time() - _UNUSED_DAYS * 86_400
    if folder.is_dir():
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
