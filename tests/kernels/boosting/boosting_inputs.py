"""Generated inputs for RankBoost's kernels: small enough for the reference, with every awkward case."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.rankers.pair_weights import levelled_queries

N_BINS = 16


@dataclass(frozen=True)
class Problem:
    """A dataset, its queries in factorised form, and bins in the layouts and the order that kernels read."""

    dataset: RankingDataset
    pair_weight: str = "pairs"
    n_bins: int = N_BINS

    # Worked out when first asked for, so that collecting the tests compiles nothing.
    @cached_property
    def binner(self):
        return Binner(self.n_bins).fit(self.dataset)

    @cached_property
    def rows(self):
        return self.binner.transform(self.dataset)

    @cached_property
    def interleaved(self):
        return self.binner.transform(self.dataset, "interleaved16", rows=self.queries.rows)

    @cached_property
    def by_feature(self):
        return self.binner.transform(self.dataset, "features", rows=self.queries.rows)

    @cached_property
    def queries(self):
        return levelled_queries(self.dataset, self.pair_weight)

    @property
    def n_features(self):
        return self.dataset.n_features

    def pairs(self):
        """lower, higher, initial weight of every pair, from the definitions."""
        from rankwell.kernels.boosting.reference import pairs_of_labels

        data = self.dataset
        lower, higher = pairs_of_labels(data.labels, data.query_ptr)
        query = data.query_of_rows()[lower]
        weight = np.ones(len(lower))
        if self.pair_weight == "difference":
            weight = data.labels[higher] - data.labels[lower]
        if data.document_weights is not None:
            weight = weight * data.document_weights[lower] * data.document_weights[higher]
        if self.pair_weight == "queries":
            weight = weight / np.bincount(query, weight, data.n_queries)[query]
        if data.query_weights is not None:
            weight = weight * data.query_weights[query]
        counts = weight > 0
        return lower[counts], higher[counts], weight[counts]


def make_dataset(seed, sizes, n_features, n_levels, *, missing=0.1, decimals=None, **extra):
    """Random queries of the given sizes; feature 0 goes with the label."""
    generator = np.random.default_rng(seed)
    n_docs = int(np.sum(sizes))
    X = generator.normal(size=(n_docs, n_features)).astype(np.float32)
    if decimals is not None:
        X = np.round(X, decimals)
    y = generator.integers(0, n_levels, n_docs).astype(float)
    X[:, 0] += y.astype(np.float32)
    X[generator.random(X.shape) < missing] = np.nan
    return RankingDataset(X, y, group=sizes, **extra)


def _awkward():
    """Empty queries, single documents, equal labels, a constant, an empty, a doubled and a mirrored feature, huge and
    tiny values."""
    base = make_dataset(3, [0, 1, 7, 0, 12, 5, 1, 9], 6, 3)
    X = base.features.copy()
    X[:, 1] = 3.0
    X[:, 2] = np.nan
    X[:, 3] = X[:, 0]
    X[:, 4] = -X[:, 0]
    X[:, 5] *= np.float32(1e37)
    X[::3, 5] *= np.float32(1e-37)
    y = base.labels.copy()
    y[20:25] = 1.0
    return RankingDataset(X, y, group=base.query_sizes)


def _every_document_its_own_level():
    base = make_dataset(5, [40, 33, 3], 4, 2)
    y = np.random.default_rng(5).permutation(base.n_docs) * 1e300 / base.n_docs - 5e299
    return RankingDataset(base.features, y, group=base.query_sizes)


def _weighted():
    sizes = [6, 9, 8, 4]
    weights = np.random.default_rng(6).choice([0.0, 0.5, 1.0, 3.0], sum(sizes))
    return make_dataset(6, sizes, 5, 3, query_weights=[1.0, 0.0, 2.5, 1e-3], document_weights=weights)


PROBLEMS = {
    "two levels": Problem(make_dataset(0, [10, 20, 15], 5, 2)),
    "five levels": Problem(make_dataset(1, [10, 20, 15, 30], 7, 5), "queries"),
    "whole numbers, so ties": Problem(make_dataset(2, [12, 9, 14], 8, 3, decimals=0), "difference"),
    "awkward": Problem(_awkward()),
    "a level a document": Problem(_every_document_its_own_level()),
    "a level a document, by difference": Problem(_every_document_its_own_level(), "difference"),
    "weights": Problem(_weighted(), "queries"),
    "one long query": Problem(make_dataset(7, [65], 3, 4)),
    "two bins": Problem(make_dataset(8, [20, 20], 4, 2), n_bins=2),
    "all bins": Problem(make_dataset(9, [30, 30], 3, 2), n_bins=256),
    **{
        f"{n_docs} documents, {n_features} features": Problem(make_dataset(n_docs, [7] * (n_docs // 7), n_features, 3))
        for n_docs, n_features in ((14, 15), (21, 16), (28, 17), (35, 33))
    },
}
