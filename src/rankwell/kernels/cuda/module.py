"""CUDA C++ sources, compiled at run time.

Each `.cu` file of a subject is one module; CuPy compiles it with NVRTC for the current device and keeps the binary in
its own cache on disk. Nothing is imported or compiled before `cuda_module` is called.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rankwell.kernels.source_text import source_text

COMPILE_OPTIONS = ("-std=c++17", "--extra-device-vectorization")


@cache
def cuda_module(source: str, *definitions: str, fuse: bool = True, cooperative: bool = False) -> Any:
    """The compiled module of a subject's `.cu` file, a `cupy.RawModule`.

    Parameters
    ----------
    source : str
        The subject and the file's name without its ending: "pair_loss/rows" is `kernels/pair_loss/cuda/rows.cu`.
    definitions : str
        Macros to define, as ``"N_BINS=256"``: one module is compiled for each set of them.
    fuse : bool
        Whether a product and a sum may become one instruction that rounds once. If the bits must equal the CPU's,
        they may not.
    cooperative : bool
        Whether the blocks of a launch wait for each other: then a launch with more blocks than can run at the same
        time is an error.
    """
    import cupy

    subject, name = source.split("/")
    options = [*COMPILE_OPTIONS, *(f"-D{definition}" for definition in definitions)]
    if not fuse:
        options.append("-fmad=false")
    text = source_text(subject, "cuda", f"{name}.cu")
    return cupy.RawModule(code=text, options=tuple(options), enable_cooperative_groups=cooperative)
