"""What does scoring on a GPU consist of: copies, transforms of inputs, evaluation of layers?

The thesis's three rankers on 100 to 10,000 documents, from page-locked rows to scores on the host. Times are between
events on the device, launch by launch, without the product's graph of launches: shares, not what a call takes
(`evaluate_rankers_cuda`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.thesis_rankers import N_FEATURES, RANKERS, thesis_ranker
from benchmarks.tree_cases import rows_like_a_feature_set
from rankwell.scoring.cuda_scorer import CudaRankerScorer
from rankwell.scoring.scorer import RankerScorer

SIZES = (100, 1_000, 10_000)
STAGES = ("copy to the device", "transforms", "evaluation", "copy back")
RUNS = 20


def run(bench: Benchmark) -> None:
    for name in RANKERS:
        description = thesis_ranker(name, shrink=10 if bench.quick else 1)
        device, cpu = CudaRankerScorer(description), RankerScorer(description)
        for n_docs in SIZES[:1] if bench.quick else SIZES:
            rows = rows_like_a_feature_set(n_docs, N_FEATURES, seed=3)
            pinned = device.pinned_rows(n_docs)
            pinned[:] = rows
            scores, _ = staged(device, pinned)
            same = bool(np.allclose(scores, cpu.score(rows), rtol=1e-12, atol=1e-12))
            bench.check(f"{name}, {n_docs:,} documents: the CPU's scores", same)
            times = np.median([staged(device, pinned)[1] for _ in range(RUNS)], axis=0)
            for stage, milliseconds in zip(STAGES, times.tolist(), strict=True):
                bench.record(
                    f"{name}, {n_docs:,} documents, {stage}",
                    value=milliseconds,
                    unit="ms",
                    note=f"{milliseconds / times.sum():.0%} of {times.sum():.3f} ms",
                )


def staged(scorer: CudaRankerScorer, rows: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Scores, and the milliseconds of each stage."""
    import cupy

    from rankwell.kernels.cuda.buffers import copy_to_host
    from rankwell.kernels.cuda.graph import size_class
    from rankwell.kernels.scoring.cuda import launches
    from rankwell.kernels.scoring.cuda.table import INPUTS, LAYERS

    size, plan, buffers = size_class(len(rows)), scorer._plan.first_rounds(None), scorer._buffers
    with scorer.lock, cupy.cuda.Stream(non_blocking=True) as stream:
        on_device = buffers.device("rows", (size, scorer.n_columns), np.float32)
        columns = buffers.device("columns", (scorer.n_columns, size), np.float32)
        values = buffers.device("values", (plan.n_inputs, size), np.float64)
        scores = buffers.pinned("scores", (size,), np.float64)
        marks = [stream.record()]
        on_device[: len(rows)].set(rows, stream=stream)
        marks.append(stream.record())
        launches.transpose(on_device, size, columns)
        for group in plan.inputs:
            out = values[group.first : group.first + group.n_inputs]
            INPUTS[group.kind](columns, size, group.arrays, out, buffers)
        marks.append(stream.record())
        for number, layer in enumerate(plan.layers):
            values = LAYERS[layer.kind](values, size, layer.arrays, f"layer {number}", buffers)
        marks.append(stream.record())
        copy_to_host(values[0, :size], scores)
        marks.append(stream.record())
        stream.synchronize()
        times = [cupy.cuda.get_elapsed_time(*pair) for pair in pairwise(marks)]
        return scores[: len(rows)].copy(), times
