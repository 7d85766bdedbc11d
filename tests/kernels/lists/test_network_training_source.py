"""The CUDA source of networks over lists, compiled for the host: a team of blocks without clusters, every placement.

`host_blocks.h` runs eight blocks of one warp each as processes and threads, which meet at the counter of the source
itself. What a GPU does beyond that (its reciprocal and logarithm, its memory's order) is for the tests marked gpu.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.kernels.lists.test_network_training import descend, make_problem

from rankwell.kernels.lists.contract import CUDA_TEAM
from rankwell.kernels.lists.cpu.top_k_loss import top_k_truth
from rankwell.kernels.lists.cuda.placement import STATIC_BYTES, most_docs, place
from rankwell.kernels.lists.cuda.trainer import _best_labels, definitions
from rankwell.kernels.lists.declarations import BUFFERS, LISTS, OPTIMIZER
from rankwell.kernels.lists.network_shape import unpack_layers
from rankwell.kernels.source_text import source_text

COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ on this machine")
# An empty query, one document, two, and more than a warp and a tile.
SIZES = [5, 0, 1, 2, 33, 70]
RATE = 0.05
# Bytes of shared memory for a 40-5-1 network and 70 documents: for all; for lists only; for neither.
PLENTY, LITTLE, NOTHING = 10**6, 6000, STATIC_BYTES

HOST = """
#include "host_blocks.h"
#include "network_training.cu"
extern "C" bool train(Lists* lists, Buffers* buffers, Optimizer* optimizer, const long long* order, int n_steps,
                      float* parameters, float* first, float* second, int most_docs, double* loss) {
#if TEAM > 1
  return run_blocks(TEAM, THREADS, [=] {
    train_queries(*lists, *buffers, *optimizer, order, n_steps, 0, parameters, first, second, most_docs, loss);
  });
#else
  return run_blocks(n_steps, THREADS, [=] { batch_gradients(*lists, *buffers, order, parameters, most_docs, loss); });
#endif
}
extern "C" bool score(Lists* lists, Buffers* buffers, const float* parameters) {
  return run_blocks(2, THREADS, [=] { score_documents(*lists, *buffers, parameters); });
}
"""


def for_host(source):
    """The source without what only a GPU has: its fast reciprocal, and shared memory whose size the launch says."""
    source = re.sub(r'asm\("rcp\.approx[^\n]*', "y = 1.0f / x;", source)
    return source.replace("extern __shared__ float memory[];", "float* memory = dynamic_memory;")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The library for a set of macros, compiled once."""
    known = {}

    def library(macros):
        if macros not in known:
            folder = tmp_path_factory.mktemp("source")
            (folder / "network_training.cu").write_text(for_host(source_text("lists", "cuda", "network_training.cu")))
            (folder / "host_blocks.h").write_text(Path(__file__).with_name("host_blocks.h").read_text())
            (folder / "host.cpp").write_text(HOST)
            options = ["-std=c++20", "-O1", "-ffp-contract=off", "-pthread", "-shared", "-fPIC", "-o", "host.so"]
            command = [str(COMPILER), *options, *(f"-D{macro}" for macro in macros), "host.cpp"]
            built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
            known[macros] = ctypes.CDLL(str(folder / "host.so"))
            known[macros].train.restype = known[macros].score.restype = ctypes.c_bool
        return known[macros]

    return library


def shared_copy(array):
    """A copy that processes share."""
    memory = mmap.mmap(-1, max(array.nbytes, 8))
    copy = np.frombuffer(memory, dtype=array.dtype, count=array.size).reshape(array.shape)
    copy[...] = array
    return copy


def train(compiled, problem, state, team, shared_memory, splits=()):
    """Parameters after an epoch (gradients where a block takes a query), scores, losses."""
    placement = place(problem.shape, most_docs(problem), shared_memory, one_step_per_query=team > 1)
    macros = definitions(problem, placement, team, clusters=False)
    library = compiled(tuple("THREADS=32" if macro.startswith("THREADS=") else macro for macro in macros))
    n_docs, n_queries, n_parameters = len(problem.labels), len(SIZES), problem.shape.n_parameters
    truth = top_k_truth(problem.loss.k, problem.labels, problem.query_ptr)
    arrays = {
        "features": problem.features,
        "feature_scale": np.ones(problem.shape.n_features, np.float32),
        "query_ptr": problem.query_ptr,
        "truth": truth.astype(np.float32),
        "best_label": _best_labels(truth, problem.query_ptr),
        "weights": problem.query_weights.astype(np.float32),
        "scores": np.zeros(n_docs, np.float32),
        "hidden": np.zeros(n_docs * max(problem.shape.n_hidden, 1), np.float32),
        "exchange": np.zeros(2 * CUDA_TEAM),
        "partial": np.zeros((2 * CUDA_TEAM, n_parameters), np.float32),
        "workspace": np.full(CUDA_TEAM * placement.workspace_floats, np.nan, np.float32),
        # The count wraps around during the epoch.
        "arrivals": np.array([2**32 - 2 * CUDA_TEAM], np.uint32),
        "order": np.arange(n_queries),
        "parameters": state.parameters,
        "first": state.first,
        "second": state.second,
        "loss": np.zeros(n_queries),
    }
    arrays = {name: shared_copy(array) for name, array in arrays.items()}
    on_device = {name: SimpleNamespace(data=SimpleNamespace(ptr=array.ctypes.data)) for name, array in arrays.items()}
    numbers = {name: getattr(problem.optimizer, name) for name in ("momentum", "beta1", "beta2", "epsilon")}
    structs = (
        LISTS.pack(**on_device, n_docs=n_docs),
        BUFFERS.pack(**on_device),
        OPTIMIZER.pack(**numbers, rate=RATE, weight_decay=problem.optimizer.weight_decay),
    )
    lists, buffers, optimizer = (ctypes.c_void_p(struct.ctypes.data) for struct in structs)
    at = {name: ctypes.c_void_p(array.ctypes.data) for name, array in arrays.items()}
    moved = at["parameters"], at["first"], at["second"]
    for first, last in pairwise((0, *splits, n_queries)):
        order = ctypes.c_void_p(arrays["order"][first:].ctypes.data)
        assert library.train(lists, buffers, optimizer, order, last - first, *moved, placement.most_docs, at["loss"])
    assert library.score(lists, buffers, at["parameters"])
    result = arrays["parameters"] if team > 1 else arrays["partial"][:n_queries]
    return result.copy(), arrays["scores"].copy(), arrays["loss"].copy()


@pytest.mark.parametrize("hidden", [(5,), ()])
@pytest.mark.parametrize("shared_memory", [PLENTY, NOTHING])
def test_a_team_without_clusters_descends(compiled, hidden, shared_memory):
    problem, state = make_problem(SIZES, hidden, "sigmoid", "sigmoid", k=3, n_features=40)
    parameters, _, losses = train(compiled, problem, state, CUDA_TEAM, shared_memory)
    expected, loss = descend(problem, state.parameters, np.arange(len(SIZES)), RATE, "sigmoid", "sigmoid", 1)
    assert losses[0] == pytest.approx(loss, rel=1e-5)
    for (weights, bias), (expected_weights, expected_bias) in zip(
        unpack_layers(problem.shape, parameters), expected, strict=True
    ):
        np.testing.assert_allclose(weights, expected_weights, rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose(bias, expected_bias, rtol=1e-4, atol=2e-5)


def test_an_epoch_in_several_launches_gives_the_same_bits(compiled):
    problem, state = make_problem(SIZES, (5,), "sigmoid", "sigmoid", k=3, n_features=40)
    found, expected = (train(compiled, problem, state, CUDA_TEAM, PLENTY, splits) for splits in ((1, 4), ()))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("team", [CUDA_TEAM, 1], ids=["a team", "a block a query"])
@pytest.mark.parametrize("shared_memory", [LITTLE, NOTHING])
def test_it_does_not_matter_where_numbers_lie(compiled, team, shared_memory):
    problem, state = make_problem(SIZES, (5,), "sigmoid", "sigmoid", k=3, n_features=40)
    found, expected = (train(compiled, problem, state, team, size) for size in (shared_memory, PLENTY))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
