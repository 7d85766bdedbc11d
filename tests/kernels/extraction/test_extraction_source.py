"""The CUDA source of feature extraction, compiled for the host: its task for one thread needs no GPU to be checked.

Threads run one after another here; they share nothing, so the order cannot matter.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from tests.features.random_hits import (
    FIVE_STREAMS,
    hits_of_documents,
    join_hits,
    random_documents,
    random_hits,
    scattered_hits,
)
from tests.kernels.extraction.packed_hits import packed_parts

from rankwell.features.extraction import extract
from rankwell.features.feature_set import make_feature_set
from rankwell.features.hits import Hits
from rankwell.kernels.extraction.rules import FeatureColumns
from rankwell.kernels.source_text import source_text

FULL = make_feature_set("full", FIVE_STREAMS, ("rank", "age")).without_feedback()
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

HOST = """
#include <algorithm>
#include <cmath>
#include <cstring>
#define __device__
#define __global__
using std::max; using std::min; using std::signbit;
static struct { int x, y; } blockIdx, blockDim, threadIdx;
static float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
static unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
#include "extraction.cu"
extern "C" void run(int size, const char* packed, int n_streams, int n_statics, const int* column_of,
                    const double* parameters, const int* static_column, const int* bm25f_column, const double* bm25f,
                    unsigned* places, double* gathered, long long stride, float* features) {
  blockDim.x = 1;
  for (blockIdx.y = 0; blockIdx.y < n_streams + 2; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < size; ++blockIdx.x) {
      extract_features(packed, n_streams, n_statics, column_of, parameters, static_column, bm25f_column, bm25f, places,
                       gathered, stride, features);
    }
  }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("there is no C++ compiler on this machine")
    folder = tmp_path_factory.mktemp("source")
    (folder / "extraction.cu").write_text(source_text("extraction", "cuda", "extraction.cu"))
    (folder / "host.cpp").write_text(HOST)
    command = [COMPILER, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", "host.so", "host.cpp"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return ctypes.CDLL(str(folder / "host.so"))


def extract_by_source(library, parts, feature_set):
    hits = parts[0]
    columns = FeatureColumns(*map(np.ascontiguousarray, feature_set.columns(hits.streams, hits.static_names)))
    packed, n_candidates = packed_parts(parts), sum(part.n_candidates for part in parts)
    n_cells, stride = sum(int(part.cell_base[-1]) for part in parts), n_candidates + 3
    features = np.full((len(feature_set), stride), -12345, np.float32)
    scratch = np.full(3 * n_cells + 1, 77, np.uint32), np.full(n_cells + 1, 5.0)
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in (packed, *columns, *scratch, features)]
    numbers = map(ctypes.c_int, (n_candidates, len(hits.streams), len(hits.static_names)))
    size, n_streams, n_statics = numbers
    library.run(size, addresses[0], n_streams, n_statics, *addresses[1:8], ctypes.c_longlong(stride), addresses[8])
    assert (features[:, n_candidates:] == -12345).all()
    return features[:, :n_candidates].T


def assert_same_as_the_cpu(library, hits, feature_set):
    parts = [hits] if isinstance(hits, Hits) else hits
    plain = [column for column, feature in enumerate(feature_set.features) if feature.expression is None]
    features, expected = extract_by_source(library, parts, feature_set), extract(join_hits(parts), feature_set)
    np.testing.assert_array_equal(features[:, plain], expected[:, plain])


@pytest.mark.parametrize("seed", range(8))
def test_awkward_queries(library, seed):
    assert_same_as_the_cpu(library, random_hits(seed, n_docs=9 * seed), FULL)


@pytest.mark.parametrize("seed", range(4))
def test_terms_that_share_places(library, seed):
    assert_same_as_the_cpu(library, scattered_hits(seed), make_feature_set("full", FIVE_STREAMS).without_feedback())


def test_many_terms_and_long_documents(library):
    rng = np.random.default_rng(0)
    documents = random_documents(rng, 3, streams=("body",), longest=2000, vocabulary=40)
    queries = [rng.integers(0, 50, 30).tolist(), list(range(70)), [1, 2]]
    feature_set = make_feature_set("full", ("body",)).without_feedback()
    assert_same_as_the_cpu(library, hits_of_documents(documents, queries, streams=("body",)), feature_set)


def test_some_features_and_other_parameters(library):
    parameters = {"k1": 0.9, "b": 0.4, "b.title": 1.0, "mu": 10, "lambda": 0.1, "delta": 0.3, "weight.title": 3}
    hits = random_hits(77)
    full = make_feature_set("full", FIVE_STREAMS, ("rank", "age"), parameters).without_feedback()
    assert_same_as_the_cpu(library, hits, full)
    assert_same_as_the_cpu(library, hits, make_feature_set("mslr", FIVE_STREAMS))


def test_a_batch_in_parts(library):
    assert_same_as_the_cpu(library, [random_hits(seed, n_docs=7 * seed) for seed in (2, 0, 3, 1)], FULL)
