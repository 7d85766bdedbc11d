"""What RankBoost is timed on: queries of the papers' shapes, without features, since bins are made directly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankwell import RankBoost
from rankwell.data.dataset import RankingDataset
from rankwell.data.shapes import Shape, shape_named
from rankwell.kernels.boosting.contract import LevelledQueries
from rankwell.rankers.pair_weights import levelled_queries


def paper_ranker(**settings: Any) -> RankBoost:
    """A RankBoost as the papers train it: every pair counts alike, the whole of α, features as they are."""
    return RankBoost(learning_rate=1.0, pair_weight="pairs", normalize="none", **settings)


def scaled_shape(name: str, *, docs: float = 1.0, features: float = 1.0) -> Shape:
    """A paper's shape with a share of its documents (and queries) and of its features."""
    shape = shape_named(name)
    return replace(
        shape,
        n_docs=max(1, round(shape.n_docs * docs)),
        n_queries=max(1, round(shape.n_queries * docs)),
        n_features=max(1, round(shape.n_features * features)),
    )


def labelled_queries(shape: Shape, *, documents_per_query: float | None = None) -> RankingDataset:
    """Judged queries with one feature that is never read: log-normal sizes, labels in the shape's shares.

    documents_per_query : replaces the shape's own mean, so that the same documents form more or fewer pairs
    """
    generator = np.random.default_rng(0)
    n_queries = shape.n_queries if documents_per_query is None else round(shape.n_docs / documents_per_query)
    sizes = np.exp(shape.size_spread * generator.standard_normal(n_queries))
    ends = np.round(np.cumsum(sizes) / sizes.sum() * shape.n_docs).astype(np.int64)
    shares = np.array(shape.level_shares) / sum(shape.level_shares)
    labels = generator.choice(len(shares), shape.n_docs, p=shares)
    return RankingDataset(np.zeros((shape.n_docs, 1), dtype=np.float32), labels, group=np.diff(ends, prepend=0))


def queries_of(shape: Shape, *, documents_per_query: float | None = None) -> LevelledQueries:
    return levelled_queries(labelled_queries(shape, documents_per_query=documents_per_query), "pairs")


def count_pairs(queries: LevelledQueries) -> int:
    """How many pairs the levels of `queries` give, without enumerating them."""
    sizes = np.diff(queries.segment_ptr)
    below = np.cumsum(sizes) - sizes
    first = np.repeat(below[queries.query_segments[:-1]], np.diff(queries.query_segments))
    return int((sizes * (below - first)).sum())
