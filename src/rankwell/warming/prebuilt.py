"""Machine code for a wheel: every kernel that a public call can reach, compiled for several processor levels.

    python -m rankwell.warming.prebuilt FOLDER [LEVEL ...]

First the calls of `subjects` run, and the kernels that Python calls are recorded with the types of their arguments.
Then one process per level compiles these without running them: so a wheel for processors with AVX-512 can be built on a
machine without it. The machine code of a kernel includes the kernels it calls, so kernels that only kernels call have
no files of their own.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

LEVELS = {"x86_64": ("x86-64-v3", "x86-64-v4"), "aarch64": ("generic",)}


def prebuild(folder: Path, levels: Sequence[str] = ()) -> None:
    """Fill `folder` with machine code for `levels`, by default all levels of this kind of processor."""
    from rankwell.kernels.cpu.kernel_cache import VERSIONS_FILE, runnable_levels, versions

    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        noted = scratch / "noted"
        chosen = tuple(levels) or LEVELS[os.uname().machine]
        # The calls run on machine code of one of the levels, so that it is compiled only once.
        at_hand = next((level for level in chosen if level in runnable_levels()), None)
        _finish(_start("note", str(noted), **_compiling_for(at_hand, scratch)), "the calls that record the kernels")
        processes = {
            level: _start("compile", str(noted), str(folder / level), **_compiling_for(level, scratch))
            for level in chosen
        }
        for level, process in processes.items():
            _finish(process, f"compiling kernels for {level}")
    (folder / VERSIONS_FILE).write_text(json.dumps(versions()), encoding="utf-8")


def _compiling_for(level: str | None, scratch: Path) -> dict[str, str]:
    """The environment in which Numba compiles for `level`, and stores the machine code in `scratch`."""
    environment = {"RANKWELL_CACHE_DIR": str(scratch / str(level))}
    return environment if level is None else environment | {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}


def _start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rankwell.warming.prebuilt", *arguments], env=os.environ | environment
    )


def _finish(process: subprocess.Popen[bytes], task: str) -> None:
    if process.wait() != 0:
        raise RuntimeError(f"{task} failed: see the messages above.")


def note_kernels(path: Path) -> None:
    """Run the calls of all subjects and record which kernels Python called, with the types of their arguments."""
    from numba.core.serialize import dumps

    from rankwell.kernels.cpu.compilation import called_kernels
    from rankwell.warming.subjects import warm

    warm()
    path.write_bytes(dumps([(kernel.module, kernel.name, kernel.signature) for kernel in called_kernels()]))


def compile_kernels(noted: Path, folder: Path) -> None:
    """Compile the kernels listed in `noted` for the configured processor, into `folder`."""
    from rankwell.kernels.cpu.compilation import kernel_of

    folder.mkdir(parents=True, exist_ok=True)
    for module, name, signature in pickle.loads(noted.read_bytes()):
        import_module(module)
        dispatcher = kernel_of(module, name)
        dispatcher.compile(signature)
        file = dispatcher._cache.path_of(signature, dispatcher.targetctx.codegen())
        shutil.copy(file, folder / file.name)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["note", path]:
            note_kernels(Path(path))
        case ["compile", noted, folder]:
            compile_kernels(Path(noted), Path(folder))
        case [folder, *levels]:
            prebuild(Path(folder), levels)
        case _:
            sys.exit(__doc__)
