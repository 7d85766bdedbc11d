"""Judged queries as a dataset and as files of parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import write


def make_queries(
    n_queries: int = 30, n_features: int = 20, seed: int = 0, *, longest: int = 25, missing: float = 0.05
) -> RankingDataset:
    """Queries of 1 to `longest` documents, labels 0 to 3, some of them equal throughout; ties, missing values."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, longest, n_queries)
    features = generator.standard_normal((sizes.sum(), n_features)).astype(np.float32).round(2)
    features[:, n_features // 2] = features[:, 0]  # an exact tie in every round
    relevance = features[:, 0] + 0.5 * features[:, 1] + generator.standard_normal(len(features))
    labels = np.digitize(relevance, [0.0, 1.0, 2.0]).astype(np.float64)
    labels[: sizes[0]] = 1.0
    features[generator.random(features.shape) < missing] = np.nan
    qid = np.repeat(np.arange(n_queries) + 100, sizes)
    return RankingDataset(features, labels, qid=qid)


def in_parts(dataset: RankingDataset, n_parts: int) -> list[RankingDataset]:
    """Whole queries, in order."""
    numbers = np.arange(dataset.n_queries)
    return [dataset.subset(part) for part in np.array_split(numbers, n_parts)]


def write_parts(dataset: RankingDataset, folder: Path, n_parts: int, suffix: str = ".parquet") -> list[Path]:
    paths = []
    for number, part in enumerate(in_parts(dataset, n_parts)):
        path = folder / f"part-{number}{suffix}"
        write(part, path)
        paths.append(path)
    return paths
