"""How fast does the device evaluate the thesis's rankers R-S-BLG, R-M-BGD and R-L-D on 10,000 documents?

Transfers included: rows from page-locked memory to the device, scores back. The thesis compares with a CPU that runs
each query on one thread; the comparison with all cores is recorded as well, and the number of documents from which the
device is faster.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.paper_numbers import SEARCH_CPU_MS, SEARCH_MEAN_SPEEDUP
from benchmarks.thesis_rankers import N_FEATURES, RANKERS, thesis_ranker
from benchmarks.tree_cases import rows_like_a_feature_set
from rankwell.scoring.cuda_scorer import CudaRankerScorer
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.scorer import RankerScorer

# A call after a pause (the harness collects garbage before each) has cold caches; calls in a row do not.
IN_A_ROW = 20
SIZES = (1, 10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


def run(bench: Benchmark) -> None:
    n_docs = 500 if bench.quick else 10_000
    rows = rows_like_a_feature_set(n_docs, N_FEATURES, seed=3)
    speedups, speedups_all = [], []
    for name in RANKERS:
        against_one, against_all = _measure(bench, name, rows)
        speedups.append(against_one)
        speedups_all.append(against_all)
    mean = len(speedups) / sum(1 / speedup for speedup in speedups)
    bench.record(
        "speed-up over one CPU thread per query, harmonic mean",
        value=mean,
        unit="x",
        target=SEARCH_MEAN_SPEEDUP,
        better="higher",
        paper=SEARCH_MEAN_SPEEDUP,
        note=", ".join(f"{name} {speedup:.1f}" for name, speedup in zip(RANKERS, speedups, strict=True)),
    )
    mean_all = len(speedups_all) / sum(1 / speedup for speedup in speedups_all)
    bench.record("speed-up over all CPU cores, harmonic mean", value=mean_all, unit="x", better="higher")


def _measure(bench: Benchmark, name: str, rows: np.ndarray) -> tuple[float, float]:
    import cupy

    description = thesis_ranker(name, shrink=10 if bench.quick else 1)
    cpu, device = RankerScorer(description), CudaRankerScorer(description)
    pinned = device.pinned_rows(len(rows))
    pinned[:] = rows
    scores = device.score(pinned)
    few = rows[:20]
    bench.check(
        f"{name}: the CPU's scores are the reference's",
        bool(np.allclose(cpu.score(few), reference_scores(description, few), rtol=1e-12, atol=1e-12)),
    )
    bench.check(
        f"{name}: the device's are the CPU's", bool(np.allclose(scores, cpu.score(rows), rtol=1e-12, atol=1e-12))
    )
    repeat = 5 if bench.quick else 30
    on_device = bench.time(f"{name}, device", lambda: device.score(pinned), repeat=repeat)
    in_a_row = bench.time(
        f"{name}, device, {IN_A_ROW} in a row", lambda: [device.score(pinned) for _ in range(IN_A_ROW)], repeat=5
    )
    pageable = bench.time(f"{name}, device, ordinary memory", lambda: device.score(rows), repeat=repeat)
    resident = cupy.asarray(rows)
    without = bench.time(
        f"{name}, device, rows there already", lambda: device.score_on_device(resident).get(), repeat=repeat
    )
    one = bench.time(f"{name}, one CPU thread", lambda: cpu.score(rows, n_jobs=1), repeat=5)
    every = bench.time(f"{name}, all cores", lambda: cpu.score(rows), repeat=5)
    crossings = _sweep(bench, name, cpu, device, rows)
    bench.record(
        f"{name}, {len(rows):,} documents, transfers included",
        value=on_device.minimum * 1e3,
        unit="ms",
        target=1.0,
        note=f"median {on_device.median * 1e3:.3f} ms; one of {IN_A_ROW} in a row "
        f"{in_a_row.minimum / IN_A_ROW * 1e3:.3f}; from ordinary memory {pageable.minimum * 1e3:.3f}; rows on the "
        f"device {without.minimum * 1e3:.3f}; one CPU thread {one.minimum * 1e3:.2f}, all cores "
        f"{every.minimum * 1e3:.2f}; "
        f"the device wins from {crossings['one thread']} documents on against one thread, "
        f"{crossings['all cores']} against all cores",
    )
    return one.minimum / on_device.minimum, every.minimum / on_device.minimum


def _sweep(
    bench: Benchmark, name: str, cpu: RankerScorer, device: CudaRankerScorer, rows: np.ndarray
) -> dict[str, str]:
    """Record every one of `SIZES`; returns the smallest from which on the device is faster, by what it is beside."""
    times: dict[str, dict[int, float]] = {"device": {}, "one thread": {}, "all cores": {}}
    sizes = [size for size in SIZES if size <= len(rows)]
    for size in sizes:
        pinned = device.pinned_rows(size)
        pinned[:] = rows[:size]
        part = np.ascontiguousarray(rows[:size])
        calls = {
            "device": lambda pinned=pinned: device.score(pinned),
            "one thread": lambda part=part: cpu.score(part, n_jobs=1),
            "all cores": lambda part=part: cpu.score(part),
        }
        for where, call in calls.items():
            times[where][size] = bench.time(f"{name}, {size} documents, {where}", call, repeat=5, warmup=3).minimum
            n_printed, printed_ms = SEARCH_CPU_MS.get(name, (None, None))
            bench.record(
                f"{name}, {size:,} documents, {where}",
                value=times[where][size] * 1e3,
                unit="ms",
                paper=printed_ms if where == "one thread" and size == n_printed else None,
            )
    found = {}
    for where in ("one thread", "all cores"):
        slower = [size for size in sizes if times["device"][size] >= times[where][size]]
        faster = [size for size in sizes if not slower or size > max(slower)]
        found[where] = f"{faster[0]:,}" if faster else "no number of"
    return found
