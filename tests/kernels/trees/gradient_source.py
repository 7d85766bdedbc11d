"""The CUDA sources of gradients, compiled for the host and run there by fibers (`fiber_blocks.h`)."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.kernels.trees.test_growth_source import shared_bytes, shared_copy

from rankwell.kernels.source_text import source_text
from rankwell.kernels.trees.cuda import gradients

COMPILER = shutil.which("g++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or platform.machine() != "x86_64", reason="this needs g++ on x86-64"
)
_QUERIES = """
extern "C" bool run_short(int n_blocks, Queries* queries) {
  return run_blocks(n_blocks, QUERY_THREADS, [=] { short_query_gradients(*queries); });
}
template <class Number>
bool run_long(void (*kernel)(Queries, Number*, int), int n_blocks, Queries* queries, void* memory, int length) {
  return run_blocks(n_blocks, LONG_THREADS, [=] { kernel(*queries, static_cast<Number*>(memory), length); });
}
extern "C" bool run_long(int n_blocks, Queries* queries, void* memory, int length) {
  return run_long(long_query_gradients, n_blocks, queries, memory, length);
}
"""


def compile_source(folder, source, host, macros=()):
    """The library of a source of trees and of C++ that calls what it defines."""
    text = source_text("trees", "cuda", source)
    text = text.replace("#define LONG_THREADS 512", "#define LONG_THREADS 64")
    memory = r"\1* query_memory = reinterpret_cast<\1*>(dynamic_memory);"
    (folder / "source.cu").write_text(re.sub(r"extern __shared__ (\w+) query_memory\[\];", memory, text))
    (folder / "fiber_blocks.h").write_text((Path(__file__).parents[1] / "cuda" / "fiber_blocks.h").read_text())
    (folder / "host.cpp").write_text('#include "fiber_blocks.h"\n#include "source.cu"\n' + host)
    options = ["-std=c++20", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", "host.so", "host.cpp"]
    command = [str(COMPILER), *(f"-D{macro}" for macro in macros), *options]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return ctypes.CDLL(str(folder / "host.so"))


def compile_gradients(folder, loss):
    kernels = gradients.kernels_of(loss)
    library = compile_source(folder, f"{kernels.source.removeprefix('trees/')}.cu", _QUERIES, kernels.definitions)
    library.run_short.restype = library.run_long.restype = ctypes.c_bool
    return library


def run_gradients(library, loss, queries, scores, tree=0):
    """Gradient and Hessian, float32 (n_docs,) each."""
    placed = {"scores": shared_copy(scores)}
    placed |= {name: shared_copy(np.full(len(scores), np.nan, np.float32)) for name in ("gradient", "hessian")}
    short, long = gradients.place_queries(queries.query_ptr)
    for places, is_long in ((short, False), (long, True)):
        struct, held = gradients.pack_queries(loss, queries, places, placed, shared_copy)
        struct["tree"] = tree
        address = ctypes.c_void_p(struct.ctypes.data)
        if is_long and len(places.order):
            table = shared_bytes(gradients.kernels_of(loss).long_bytes * places.length)
            assert library.run_long(len(places.order), address, ctypes.c_void_p(table.ctypes.data), places.length)
        elif not is_long and len(places.order):
            assert library.run_short(len(places.block_ptr) - 1, address)
        del held
    return tuple(np.array(placed[name]).view(np.float32) for name in ("gradient", "hessian"))


def assert_same_bits(own, expected):
    for ours, theirs in zip(own, expected, strict=True):
        np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32))
