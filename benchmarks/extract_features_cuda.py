"""How fast does the device turn the hits of a batch of queries into features, and into scores?

1,000 candidates per query, 4 words, MSLR's 125 features of four streams and the whole document; scores by a ranker like
the thesis's R-M-BGD. Packing on the host and both transfers are included. The same is measured on the CPU, on one
thread and on all cores.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.hit_cases import STREAMS, web_hits
from benchmarks.thesis_rankers import thesis_ranker
from rankwell.features.cuda_extraction import CudaFeatureExtractor
from rankwell.features.extraction import extract
from rankwell.features.feature_set import make_feature_set
from rankwell.features.hits import Hits
from rankwell.kernels.extraction.cpu.features import weigh_terms
from rankwell.kernels.extraction.cuda.packing import join_queries, pack
from rankwell.scoring.cuda_scorer import CudaRankerScorer
from rankwell.scoring.ranker_cache import RankerCache
from rankwell.scoring.scorer import RankerScorer

# A call after a pause (the harness collects garbage before each) has cold caches; calls in a row do not.
IN_A_ROW = 20
BATCHES = (1, 2, 4, 8, 16, 32, 64)
_DETAILED = (1, 8, 64)


def run(bench: Benchmark) -> None:
    import cupyx

    mslr = make_feature_set("mslr", STREAMS)
    full = make_feature_set("full", STREAMS).without_feedback()
    ranker = replace(thesis_ranker("R-M-BGD", shrink=10 if bench.quick else 1), feature_names=mslr.names)
    cache = RankerCache(2**28, CudaRankerScorer)
    device, every = CudaFeatureExtractor(mslr), CudaFeatureExtractor(full)
    cpu = RankerScorer(ranker)
    scorer = cache.get("R-M-BGD", lambda: ranker)
    for n_queries in (1, 2) if bench.quick else BATCHES:
        hits = web_hits(n_queries, n_candidates=50 if bench.quick else 1000)
        rows = extract(hits, mslr)
        _check(bench, n_queries, device.extract(hits), rows)
        scores = device.score(hits, scorer)
        same = bool(np.allclose(scores, cpu.score(rows), rtol=1e-6, atol=1e-6))
        bench.check(f"{n_queries} queries: scores are the CPU's", same)
        repeat = 3 if bench.quick else 20
        on_device = bench.time(
            f"{n_queries} queries, scores", lambda hits=hits: device.score(hits, scorer), repeat=repeat, warmup=3
        )
        in_a_row = bench.time(
            f"{n_queries} queries, scores, {IN_A_ROW} in a row",
            lambda hits=hits: [device.score(hits, scorer) for _ in range(IN_A_ROW)],
        )
        note = f"median {on_device.median * 1e3:.3f} ms; one of {IN_A_ROW} in a row "
        note += f"{in_a_row.minimum / IN_A_ROW * 1e3:.3f}"
        if bench.quick or n_queries in _DETAILED:
            n_bytes = len(_packed(hits, lambda size: cupyx.empty_pinned(size, np.uint8)))
            note += f"; {n_bytes / 2**20:.2f} MiB to the device" + _beside(bench, n_queries, hits, device, every, cpu)
        bench.record(
            f"{n_queries} queries x {hits.n_candidates // n_queries:,} candidates: hits in, scores out",
            value=on_device.minimum * 1e3,
            unit="ms",
            note=note,
        )


def _check(bench: Benchmark, n_queries: int, rows: np.ndarray, expected: np.ndarray) -> None:
    equal = rows == expected
    near = np.allclose(rows, expected, rtol=2.0**-23, atol=0.0)
    bench.check(
        f"{n_queries} queries: features are the CPU's, logarithms to the last place of float32",
        bool(near),
        f"{np.count_nonzero(~equal)} of {equal.size} differ in the last place",
    )


def _packed(hits: Hits, room) -> np.ndarray:
    arrays = hits.for_kernels()
    queries = join_queries([arrays])
    return pack([arrays], queries, weigh_terms(queries, hits.n_docs), room)


def _beside(
    bench: Benchmark,
    n_queries: int,
    hits: Hits,
    device: CudaFeatureExtractor,
    every: CudaFeatureExtractor,
    cpu: RankerScorer,
) -> str:
    """The parts of the time, and the time of the CPU for the same."""
    import cupyx

    buffer = cupyx.empty_pinned(len(_packed(hits, lambda size: np.empty(size, np.uint8))), np.uint8)
    packing = bench.time(f"{n_queries} queries, packing", lambda: _packed(hits, lambda _: buffer))
    rows = bench.time(f"{n_queries} queries, 125 features", lambda: device.extract(hits), warmup=3)
    all_rows = bench.time(f"{n_queries} queries, all features", lambda: every.extract(hits), warmup=3)
    repeat = 2 if n_queries > 8 else 5
    mslr, full = device.feature_set, every.feature_set
    cpu_rows = {
        n_jobs: bench.time(
            f"{n_queries} queries, 125 features, CPU {n_jobs}",
            lambda n_jobs=n_jobs: extract(hits, mslr, n_jobs=n_jobs),
            repeat=repeat,
        )
        for n_jobs in (1, None)
    }
    cpu_all = bench.time(f"{n_queries} queries, all features, CPU", lambda: extract(hits, full), repeat=repeat)
    cpu_scores = {
        n_jobs: bench.time(
            f"{n_queries} queries, scores, CPU {n_jobs}",
            lambda n_jobs=n_jobs: cpu.score(extract(hits, mslr, n_jobs=n_jobs), n_jobs=n_jobs),
            repeat=repeat,
        )
        for n_jobs in (1, None)
    }
    ms = {
        "packing": packing,
        "features back instead of scores": rows,
        f"all {len(full)} features back": all_rows,
        "CPU, 125 features, one thread": cpu_rows[1],
        "all cores": cpu_rows[None],
        f"CPU, all {len(full)}, all cores": cpu_all,
        "CPU, scores, one thread": cpu_scores[1],
        "scores, all cores": cpu_scores[None],
    }
    return "".join(f"; {name} {timing.minimum * 1e3:.2f} ms" for name, timing in ms.items())
