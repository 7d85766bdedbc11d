"""How does an epoch of ListNet grow with the length of lists: exact Top-1, Top-2 and Top-3?

The same number of documents in lists of 10 to 3,000, five labels, the thesis's network: Top-1 and Top-2 cost O(n) a
list, Top-3 O(n²), so that its epoch grows with the length.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.listnet_cases import network_problem
from benchmarks.listnet_cpu import RATE, check_step
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.device import load
from rankwell.kernels.lists.contract import NETWORK_TRAINING

LENGTHS = (10, 30, 100, 300, 1_000, 3_000)
N_DOCS, N_FEATURES = 60_000, 46


def run(bench: Benchmark) -> None:
    n_docs = 3_000 if bench.quick else N_DOCS
    for length in LENGTHS[:3] if bench.quick else LENGTHS:
        dataset = make_ranking(n_docs=n_docs, n_queries=n_docs // length, n_features=N_FEATURES)
        order = np.arange(dataset.n_queries)
        for k in (1, 2, 3):
            check_step(bench, dataset, k, f"lists of {length}")
            problem, state = network_problem(dataset, k=k)
            trainer = load(NETWORK_TRAINING, "cpu", problem)
            timing = bench.time(
                f"Top-{k}, lists of {length}",
                lambda t=trainer, s=state, o=order: t.run_epoch(s, o, RATE, 1, None),
                repeat=3 if bench.quick else 7,
            )
            bench.record(
                f"Top-{k}, lists of {length:,} documents",
                value=timing.minimum * 1e3,
                unit="ms",
                note=f"{dataset.n_queries:,} lists, the longest has {int(dataset.query_sizes.max()):,}",
            )
