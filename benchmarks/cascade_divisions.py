"""Does a cascade rank MQ2007 as well as the full ranker at a quarter of its cost, however its queries are divided?

As `cascade`, whose five folds are one division of the queries. Two rankers that learnt from other queries order a query
differently by chance, so the difference of one division has a standard error of 0.003, as much as may be lost. Here all
queries are divided into five random parts, several times; each part tests a full ranker and a cascade that learnt, and
whose features were chosen, on the other four. A query's figure is its mean over the divisions. The standard error is
that of queries, and the note has the difference of every division.

Nothing was chosen by these figures: the cascades are those of `cascade`, as they were when its results were stored.
"""

from __future__ import annotations

import numpy as np

from benchmarks.cascade import LETOR_KEEPS, LOSS, METRIC, N_FOLDS, N_INNER, SHARE, Fold, measure_fold, standard_error
from benchmarks.harness import Benchmark
from benchmarks.letor_folds import joined, letor_folds
from rankwell.data.dataset import RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.scoring.costs import FeatureCosts

N_DIVISIONS = 4


def run(bench: Benchmark) -> None:
    folds = letor_folds(bench, "MQ2007")
    name = "MQ2007" if folds else "synthetic"
    data = joined([fold.test for fold in folds]) if folds else make_ranking("mq2007", scale=0.05)
    divisions = [measure_division(bench, data, seed) for seed in range(1, (1 if bench.quick else N_DIVISIONS) + 1)]
    full, cascade, full_of_seeds = (np.mean([by_query[k] for by_query, _ in divisions], axis=0) for k in range(3))
    n_queries, error = standard_error(full - cascade)
    each = ", ".join(f"{np.nanmean(by_query[0] - by_query[1]):+.4f}" for by_query, _ in divisions)
    bench.record(
        f"{name}, {METRIC}: full ranker less cascade, mean of {len(divisions)} divisions",
        value=float(np.nanmean(full - cascade)),
        unit="",
        target=None if bench.quick else LOSS,
        note=f"full {np.nanmean(full):.4f}, cascade {np.nanmean(cascade):.4f}, ± {error:.4f}; {n_queries} queries; "
        f"by division {each}",
    )
    bench.record(
        f"{name}, {METRIC}: full ranker of 4 models less cascade, mean of {len(divisions)} divisions",
        value=float(np.nanmean(full_of_seeds - cascade)),
        unit="",
        note=f"{np.nanmean(full_of_seeds):.4f}, ± {standard_error(full_of_seeds - cascade)[1]:.4f}",
    )
    shares = [fold.share for _, folds in divisions for fold in folds]
    bench.record(
        f"{name}, cost: share of the full ranker's",
        value=float(np.mean(shares)),
        unit="",
        target=None if bench.quick else SHARE,
        note="every feature costs 1 µs a document, and models what they take",
    )
    bench.check("the budget is kept", max(shares) <= SHARE, f"{max(shares):.3f} at most")


def measure_division(bench: Benchmark, data: RankingDataset, seed: int) -> tuple[np.ndarray, list[Fold]]:
    """The metric of each query by the full ranker, the cascade and the full ranker of several models, float64
    (3, n_queries); and the folds."""
    part_of = np.random.default_rng(seed).permutation(np.arange(data.n_queries) % N_FOLDS)
    by_query = np.full((3, data.n_queries), np.nan)
    folds = []
    for part in range(N_FOLDS):
        train, test = data.subset(part_of != part), data.subset(part_of == part)
        folds.append(measure_fold(train, test, FeatureCosts(), LETOR_KEEPS, N_INNER, quick=bench.quick))
        by_query[:, part_of == part] = folds[-1].full, folds[-1].cascade, folds[-1].full_of_seeds
    return by_query, folds
