"""The CUDA source of pair losses, compiled for the host: the same bits as the CPU's kernels."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.kernels.trees.device_inputs import make_queries
from tests.kernels.trees.test_growth_source import shared_bytes, shared_copy

from rankwell.kernels.source_text import source_text
from rankwell.kernels.trees.cpu.lambdas import pair_gradient_source
from rankwell.kernels.trees.cuda import gradients
from rankwell.kernels.trees.losses import PAIR_LOSSES, RankingLoss, judged_queries

COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None or platform.machine() != "x86_64", reason="this needs g++ on x86-64")
HOST = """
#include "fiber_blocks.h"
#include "lambdas.cu"
extern "C" bool run_short(int n_blocks, Queries* queries) {
  return run_blocks(n_blocks, QUERY_THREADS, [=] { short_query_gradients(*queries); });
}
extern "C" bool run_long(int n_blocks, Queries* queries, float* memory, int length) {
  return run_blocks(n_blocks, LONG_THREADS, [=] { long_query_gradients(*queries, memory, length); });
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The library for a loss, compiled once."""
    known = {}

    def library(loss):
        if loss.kind not in known:
            folder = tmp_path_factory.mktemp("source")
            text = source_text("trees", "cuda", "lambdas.cu")
            text = text.replace("#define LONG_THREADS 512", "#define LONG_THREADS 64")
            memory = "float4* query_memory = reinterpret_cast<float4*>(dynamic_memory);"
            (folder / "lambdas.cu").write_text(text.replace("extern __shared__ float4 query_memory[];", memory))
            (folder / "fiber_blocks.h").write_text((Path(__file__).parents[1] / "cuda" / "fiber_blocks.h").read_text())
            (folder / "host.cpp").write_text(HOST)
            macros = [f"-D{macro}" for macro in gradients.definitions(loss)]
            options = ["-std=c++20", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", "host.so", "host.cpp"]
            command = [str(COMPILER), *macros, *options]
            built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
            known[loss.kind] = ctypes.CDLL(str(folder / "host.so"))
            known[loss.kind].run_short.restype = known[loss.kind].run_long.restype = ctypes.c_bool
        return known[loss.kind]

    return library


def run(library, loss, queries, scores):
    placed = {"scores": shared_copy(scores)}
    placed |= {name: shared_copy(np.full(len(scores), np.nan, np.float32)) for name in ("gradient", "hessian")}
    short, long = gradients.place_queries(queries.query_ptr)
    for places, is_long in ((short, False), (long, True)):
        struct, held = gradients.pack_queries(loss, queries, places, placed, shared_copy)
        address = ctypes.c_void_p(struct.ctypes.data)
        if is_long and len(places.order):
            table = shared_bytes(4 * gradients.LONG_FIELDS * places.length)
            assert library.run_long(len(places.order), address, ctypes.c_void_p(table.ctypes.data), places.length)
        elif not is_long and len(places.order):
            assert library.run_short(len(places.block_ptr) - 1, address)
        del held
    return (np.array(placed[name]).view(np.float32) for name in ("gradient", "hessian"))


@pytest.mark.parametrize("name", PAIR_LOSSES)
@pytest.mark.parametrize(("normalize", "truncation", "sigma"), [(1, 30, 1.0), (0, 5, 2.0), (1, 10_000, 0.5)])
@pytest.mark.parametrize("block_documents", [gradients.BLOCK_DOCUMENTS, 64, 16])
def test_gradients_have_the_bits_of_the_cpu(compiled, monkeypatch, name, normalize, truncation, sigma, block_documents):
    # Fewer documents in a block: several blocks, and queries that are long.
    monkeypatch.setattr(gradients, "BLOCK_DOCUMENTS", block_documents)
    query_ptr, gains, scores = make_queries(seed=truncation)
    loss = RankingLoss(PAIR_LOSSES[name], truncation, sigma, normalize)
    weights = None if normalize else np.linspace(0.1, 3.0, len(scores))
    queries = judged_queries(loss, query_ptr, gains, weights)
    expected = np.full((2, len(scores)), np.nan, np.float32)
    pair_gradient_source(loss, queries)(scores, *expected)
    for own, theirs in zip(run(compiled(loss), loss, queries, scores), expected, strict=True):
        np.testing.assert_array_equal(own.view(np.int32), theirs.view(np.int32))
