"""Generated bins, gradients and settings of trees, awkward ones among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.kernels.trees.columns import arrange_columns
from rankwell.kernels.trees.contract import TreeProblem, TreeSettings
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.feature_rules import FeatureRules, group_bits
from rankwell.kernels.trees.slabs import fill_slabs


@dataclass(frozen=True)
class TreeCase:
    """bins : uint8 (n_docs, n_features), 0 for missing; n_value_bins : int (n_features,)"""

    bins: np.ndarray
    n_value_bins: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    settings: TreeSettings
    feature_rules: FeatureRules | None = None

    @property
    def has_missing(self) -> np.ndarray:
        return (self.bins == 0).any(axis=0) & (self.n_value_bins > 0)

    def problem(self) -> TreeProblem:
        columns = arrange_columns(self.n_value_bins, self.has_missing)
        slabs = fill_slabs(columns, len(self.bins), iter([(0, self.bins)]))
        return TreeProblem(slabs, columns, self.settings, feature_rules=self.feature_rules)

    def booster(self, n_jobs: int = 1) -> CpuTreeBooster:
        return CpuTreeBooster(self.problem(), np.zeros(len(self.bins), np.float32), n_jobs=n_jobs)


def random_case(seed: int, n_docs: int | None = None, n_features: int | None = None, most_bins: int = 30) -> TreeCase:
    """Features of 0 to `most_bins` bins, half of them with missing values; ties, zeros and limits by seed."""
    generator = np.random.default_rng(seed)
    n_docs = int(generator.integers(1, 200)) if n_docs is None else n_docs
    n_features = int(generator.integers(1, 40)) if n_features is None else n_features
    n_bins = generator.integers(0, most_bins, n_features)
    bins = generator.integers(1, np.maximum(n_bins, 1) + 1, (n_docs, n_features)) * (n_bins > 0)
    bins *= (generator.random((n_docs, n_features)) > 0.2) | (generator.random(n_features) < 0.5)
    gradient = generator.normal(size=n_docs)
    hessian = np.abs(generator.normal(size=n_docs))
    if seed % 3 == 0:  # many equal gains
        gradient, hessian = np.round(gradient), np.ones(n_docs)
    if seed % 5 == 0:  # documents that do not count
        hessian[gradient > 0.5] = gradient[gradient > 0.5] = 0.0
    if seed % 7 == 0:
        gradient, hessian = gradient * 1e-20, hessian * 1e20
    settings = TreeSettings(
        n_leaves=int(generator.integers(2, 12)),
        max_depth=int(generator.integers(0, 5)),
        min_docs_leaf=int(generator.integers(1, 10)),
        min_hessian_leaf=0.5 * (seed % 2),
        l1=0.1 * (seed % 4),
        l2=0.3 * (seed % 3),
        min_gain=0.01 * (seed % 2),
    )
    return TreeCase(bins.astype(np.uint8), n_bins, gradient.astype(np.float32), hessian.astype(np.float32), settings)


def random_rules(case: TreeCase, seed: int, what: str) -> FeatureRules:
    """Rules for the case's features: what is "directions", "categories", "groups" or "all"."""
    generator = np.random.default_rng(seed)
    n_features = len(case.n_value_bins)
    direction, n_categories = np.zeros(n_features, np.int8), np.zeros(n_features, np.int64)
    groups: list[list[int]] = []
    if what in ("categories", "all"):
        # The last bin of some holds all rare categories.
        chosen = generator.random(n_features) < 0.6
        n_categories[chosen] = np.maximum(case.n_value_bins - generator.integers(0, 2, n_features), 0)[chosen]
    if what in ("directions", "all"):
        direction[:] = generator.integers(-1, 2, n_features) * (n_categories == 0)
    if what in ("groups", "all"):
        # More groups than a word has bits.
        sizes = generator.integers(1, 4, 70)
        groups = [generator.choice(n_features, min(size, n_features), replace=False).tolist() for size in sizes]
        groups = groups[: 70 if seed % 2 else 5]
    return FeatureRules(direction, n_categories, group_bits(groups, n_features))
