"""What a round takes on this machine's CPU, measured on a sample and scaled."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import DocumentWeights, initial_weights
from rankwell.kernels.boosting.cpu.histograms import GROUP
from rankwell.kernels.threads import current_threads, kernel_threads

_SAMPLE_DOCS, _SAMPLE_FEATURES, _QUERY_DOCS = 65_536, 64, 64
_ROUNDS, _TRIES = 4, 3


@dataclass(frozen=True)
class CpuTimes:
    """Seconds per document and feature of the search, per document of π and weights, and the threads."""

    search_per_value: float
    host_per_document: float
    n_threads: int

    def round_seconds(self, n_docs: int, n_features: int) -> float:
        return n_docs * (self.search_per_value * n_features + self.host_per_document)


def measure_cpu(n_docs: int, n_features: int) -> CpuTimes:
    """Time rounds over random bins, of the sizes asked for or of a sample that is as large as caches are not.

    The search is over every feature: bounds that skip features depend on the data.
    """
    docs, features = min(n_docs, _SAMPLE_DOCS), min(n_features, _SAMPLE_FEATURES)
    queries = sample_queries(max(2, docs))
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 256, (-(-features // GROUP), queries.n_docs, GROUP), dtype=np.uint8)
    booster = LevelBooster(bins, features, 256, queries, initial_weights(queries), bounded=False)
    whole = _shortest(lambda: booster.boost(_ROUNDS)) / _ROUNDS
    with kernel_threads(None):
        documents = DocumentWeights(queries, initial_weights(queries))
        above = np.zeros(queries.n_docs, dtype=np.bool_)

        def host() -> None:
            documents.potentials()
            documents.apply(above, 1, 0)

        outside = _shortest(host)
        n_threads = current_threads()
    searched = max(whole - outside, 0.0)
    return CpuTimes(searched / (queries.n_docs * features), outside / queries.n_docs, n_threads)


def _shortest(work: object) -> float:
    """Seconds of the shortest of some calls, after one that is not counted."""
    assert callable(work)
    times = []
    for _ in range(_TRIES + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def sample_queries(n_docs: int) -> LevelledQueries:
    """Queries of 64 documents with two levels each."""
    n_queries = max(1, n_docs // _QUERY_DOCS)
    size = n_docs // n_queries
    first = np.arange(n_queries, dtype=np.int64) * size
    segments = np.append(np.stack([first, first + (size + 1) // 2], axis=1).ravel(), n_queries * size)
    n_docs = n_queries * size
    return LevelledQueries(
        rows=np.arange(n_docs, dtype=np.int64),
        segment_ptr=segments,
        query_segments=np.arange(0, 2 * n_queries + 1, 2, dtype=np.int64),
        step=np.ones(2 * n_queries),
        carry=False,
        query_weight=np.full(n_queries, 1.0 / n_queries),
        document_weight=np.ones(n_docs),
    )
