"""Dot products and cosines: the kernel against the definition, by hand, and the CUDA source compiled for the host."""

import ctypes
import math
import shutil
import subprocess

import numpy as np
import pytest

from rankwell.kernels.source_text import source_text
from rankwell.kernels.vectors import reference
from rankwell.kernels.vectors.cpu.products import vector_products
from rankwell.kernels.vectors.rules import VectorPlace

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
DIMENSIONS = [1, 2, 31, 32, 33, 64, 100, 384]

# A thread for each lane: what lanes give each other goes through an array, between two barriers.
HOST = """
#include <cmath>
#include <pthread.h>
#include <thread>
#include <vector>
#define __device__
#define __global__
using std::isnan; using std::sqrt;
struct Place { int x; };
static thread_local Place blockIdx, threadIdx;
static Place blockDim{32};
static double given[32];
static pthread_barrier_t barrier;
static double __shfl_down_sync(unsigned, double value, int half) {
  given[threadIdx.x] = value;
  pthread_barrier_wait(&barrier);
  const double other = threadIdx.x + half < 32 ? given[threadIdx.x + half] : value;
  pthread_barrier_wait(&barrier);
  return other;
}
#include "products.cu"
extern "C" void run(const float* rows, long long width, const long long* docs, int n, int start, int dimension,
                    int is_int8, const float* query, float* values) {
  pthread_barrier_init(&barrier, nullptr, 32);
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 32; ++lane)
    lanes.emplace_back([=] {
      threadIdx.x = lane;
      for (blockIdx.x = 0; blockIdx.x < n; ++blockIdx.x)
        vector_products(rows, width, docs, n, start, dimension, is_int8, query, values);
    });
  for (auto& lane : lanes) lane.join();
}
"""


def random_rows(rng, n_docs, place, *, missing=0.2):
    """Rows with other words before and after the vector; some documents have none."""
    rows = rng.integers(-(2**31), 2**31, (n_docs, place.start + place.n_words + 3), dtype=np.int64).astype(np.int32)
    own = np.zeros((n_docs, place.n_words), np.int32)
    if place.is_int8:
        own[:, 0].view(np.float32)[:] = rng.uniform(0.0, 2.0, n_docs)
        own[:, 1:] = rng.integers(-(2**31), 2**31, own[:, 1:].shape, dtype=np.int64)
    else:
        own.view(np.float32)[:] = rng.normal(size=own.shape) * 10.0 ** rng.integers(-3, 4, own.shape)
    own[rng.random(n_docs) < missing, 0] = np.array([np.nan], np.float32).view(np.int32)[0]
    rows[:, place.start : place.start + place.n_words] = own
    return rows


def cases():
    rng = np.random.default_rng(3)
    for dimension in DIMENSIONS:
        for is_int8 in (False, True):
            place = VectorPlace(int(rng.integers(0, 3)), dimension, is_int8)
            docs = rng.integers(0, 40, int(rng.integers(1, 60)))
            yield random_rows(rng, 40, place), docs, place, rng.normal(size=dimension).astype(np.float32)


def test_against_the_definition():
    for rows, docs, place, query in cases():
        values, expected = (
            vector_products(rows, docs, place, query),
            reference.vector_products(rows, docs, place, query),
        )
        assert values.dtype == np.float32
        np.testing.assert_array_equal(np.isnan(values), np.isnan(expected))
        # Of what is added up, the size decides about the error of the sum.
        size = max(float(np.abs(query).sum()), 1.0) * max(float(np.nanmax(np.abs(expected), initial=0.0)), 1.0)
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-9 * size)


def test_by_hand():
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [-3.0, -4.0], [math.nan, 1.0]], np.float32).view(np.int32)
    place, query = VectorPlace(0, 2, False), np.array([6.0, 8.0], np.float32)
    values = vector_products(rows, np.array([0, 1, 2, 3, 0]), place, query)
    np.testing.assert_array_equal(values, [[50, 1], [0, 0], [-50, -1], [math.nan, math.nan], [50, 1]])
    zero = vector_products(rows, np.array([0]), place, np.zeros(2, np.float32))
    np.testing.assert_array_equal(zero, [[0, 0]])
    packed = np.zeros((1, 2), np.int32)
    packed.view(np.float32)[0, 0] = 0.5
    packed.view(np.int8)[0, 4:7] = (2, -4, 6)
    values = vector_products(packed, np.array([0]), VectorPlace(0, 3, True), np.array([1.0, 2.0, 3.0], np.float32))
    # 0.5 · (2 − 8 + 18), and its cosine: of (1, −2, 3) and (1, 2, 3)
    np.testing.assert_array_equal(values, np.array([[6.0, 6.0 / 14.0]], np.float32))


def test_any_number_of_threads_gives_the_same():
    rng = np.random.default_rng(9)
    place = VectorPlace(0, 70, False)
    rows, query = random_rows(rng, 9000, place), rng.normal(size=70).astype(np.float32)
    docs = rng.permutation(9000)
    one, several = (vector_products(rows, docs, place, query, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, several)
    assert vector_products(rows, docs[:0], place, query).shape == (0, 2)


@pytest.fixture(scope="module")
def on_host(tmp_path_factory):
    """The kernel of CUDA, with the lanes of a warp as threads."""
    if COMPILER is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("products")
    (folder / "products.cu").write_text(source_text("vectors", "cuda", "products.cu"))
    (folder / "host.cpp").write_text(HOST)
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-pthread", "-shared", "-fPIC", "-w"]
    library = folder / "products.so"
    subprocess.run([COMPILER, *flags, "host.cpp", "-o", library], cwd=folder, check=True)
    run = ctypes.CDLL(library).run

    def products(rows, docs, place, query):
        values = np.empty((len(docs), 2), np.float32)
        docs, rows = docs.astype(np.int64), np.ascontiguousarray(rows)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows, docs, query, values)]
        run(
            pointers[0], ctypes.c_longlong(rows.shape[1]), pointers[1], len(docs), place.start, place.dimension,
            int(place.is_int8), pointers[2], pointers[3],
        )  # fmt: skip
        return values

    return products


def test_the_cuda_source_gives_the_same_bits(on_host):
    for rows, docs, place, query in cases():
        few = docs[:6]
        np.testing.assert_array_equal(on_host(rows, few, place, query), vector_products(rows, few, place, query))
