"""LETOR's five folds, assembled from the parts S1 to S5 if the collections are present."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.data.synthetic import make_ranking

N_FOLDS = 5


def letor_fold(bench: Benchmark, collection: str, number: int) -> FoldData | None:
    """Fold 1 to 5 of MQ2007 or MQ2008; None if the collection is absent.

    Fold k trains on parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, cyclically from 5 to 1.
    """
    folder = bench.data(f"letor/{collection}")
    if folder is None:
        return None
    from rankwell.data.files import read

    parts = [read(folder / f"S{(number - 1 + offset) % N_FOLDS + 1}.txt.gz") for offset in range(N_FOLDS)]
    return FoldData(f"Fold{number}", joined(parts[:3]), parts[3], parts[4])


def letor_folds(bench: Benchmark, collection: str) -> list[FoldData]:
    """All folds of MQ2007 or MQ2008; none in the quick form, or if the collection is absent."""
    folds = [] if bench.quick else [letor_fold(bench, collection, number + 1) for number in range(N_FOLDS)]
    return [fold for fold in folds if fold is not None]


def synthetic_fold(scale: float) -> FoldData:
    """Synthetic queries of MQ2008's shape instead of a fold."""
    dataset = make_ranking("mq2008", scale=scale)
    thirds = np.array_split(np.arange(dataset.n_queries), 3)
    return FoldData("Fold1", *(dataset.subset(part) for part in thirds))


def joined(parts: list[RankingDataset]) -> RankingDataset:
    """Several datasets' queries, one after another."""
    return RankingDataset(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        group=np.concatenate([part.query_sizes for part in parts]),
    )
