"""Generated problems for growers of trees, with the awkward cases of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankwell.kernels.trees.columns import arrange_columns
from rankwell.kernels.trees.contract import TreeProblem, TreeSettings
from rankwell.kernels.trees.declarations import BLOCK_DOCUMENTS, LONG_THREADS
from rankwell.kernels.trees.feature_rules import FeatureRules, group_bits
from rankwell.kernels.trees.slabs import fill_slabs


class TreeInput(NamedTuple):
    bins: np.ndarray
    has_missing: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    settings: TreeSettings
    feature_rules: FeatureRules | None = None

    def problem(self) -> TreeProblem:
        bins = self.bins
        columns = arrange_columns(bins.max(axis=0, initial=1), self.has_missing)
        slabs = fill_slabs(columns, len(bins), iter([(0, bins)]))
        return TreeProblem(slabs, columns, self.settings, feature_rules=self.feature_rules)

    def symmetric(self, levels: int) -> TreeInput:
        settings = replace(self.settings, is_symmetric=True, max_depth=levels, n_leaves=2**levels)
        return self._replace(settings=settings)

    def ruled(
        self,
        direction: Sequence[int] = (),
        groups: Sequence[Sequence[int]] = (),
        n_categories: Sequence[int] = (),
        **settings: float,
    ) -> TreeInput:
        """direction, n_categories : for the first features"""
        n_features = self.bins.shape[1]
        directions, categories = np.zeros(n_features, np.int8), np.zeros(n_features, np.int64)
        directions[: len(direction)], categories[: len(n_categories)] = direction, n_categories
        rules = FeatureRules(directions, categories, group_bits(groups, n_features))
        return self._replace(feature_rules=rules, settings=replace(self.settings, **settings))


def make_input(n_docs, n_values, *, missing=(), seed=0, constant_hessian=False, **settings) -> TreeInput:
    """n_values : how many values each feature has; missing : features with missing values."""
    generator = np.random.default_rng(seed)
    n_values = np.asarray(n_values)
    bins = (1 + np.floor(generator.random((n_docs, len(n_values))) ** 2 * n_values)).astype(np.uint8)
    for feature in missing:
        bins[generator.random(n_docs) < 0.3, feature] = 0
    signal = bins[:, 0] / n_values[0] + 0.5 * (bins[:, -1] > n_values[-1] / 2) * (bins[:, len(n_values) // 2] % 2)
    gradient = (signal - signal.mean() + 0.3 * generator.standard_normal(n_docs)).astype(np.float32)
    hessian = np.ones(n_docs) if constant_hessian else generator.random(n_docs) ** 3
    has_missing = np.zeros(len(n_values), bool)
    has_missing[list(missing)] = True
    return TreeInput(bins, has_missing, gradient, hessian.astype(np.float32), TreeSettings(**settings))


def _changed(made: TreeInput, **changes) -> TreeInput:
    return made._replace(**changes)


_FEW = [255, 3, 2, 1, 7, 40]
_PLAIN = make_input(700, _FEW, missing=(0, 4), n_leaves=9)
INPUTS = {
    "plain": _PLAIN,
    "two leaves": make_input(100, [5, 30], n_leaves=2),
    "one document": make_input(1, [5, 30], n_leaves=7),
    "two documents": make_input(2, [200, 30], n_leaves=7, seed=3),
    "constant features": make_input(60, [1, 1, 1], n_leaves=7),
    "gradient 0": _changed(_PLAIN, gradient=np.zeros(700, np.float32)),
    "Hessian 0": _changed(_PLAIN, hessian=np.zeros(700, np.float32)),
    "equal columns": _changed(_PLAIN, bins=np.repeat(_PLAIN.bins[:, :1], 6, axis=1), has_missing=np.ones(6, bool)),
    "constant Hessian": make_input(500, _FEW, constant_hessian=True, missing=(1,), n_leaves=15),
    "many documents a leaf": make_input(500, _FEW, missing=(2,), n_leaves=31, min_docs_leaf=40, seed=5),
    "penalties": make_input(
        600,
        _FEW,
        missing=(5,),
        n_leaves=12,
        l1=0.7,
        l2=3.0,
        min_gain=0.2,
        min_hessian_leaf=4.0,
        learning_rate=0.3,
        seed=6,
    ),
    "depth 3": make_input(600, _FEW, n_leaves=31, max_depth=3, seed=7),
    "31 leaves": make_input(900, [255, 17, 60, 2, 2, 2, 3, 255], missing=(0, 1, 3), n_leaves=31, seed=8),
    "70 columns": make_input(400, [255] * 70, missing=(60, 69), n_leaves=6, seed=9),
    "130 columns": make_input(300, [200] * 130, missing=(129,), n_leaves=5, seed=10),
    "tiny and huge": _changed(
        _PLAIN,
        gradient=(_PLAIN.gradient * np.float32(1e-30)).astype(np.float32),
        hessian=(_PLAIN.hessian * np.float32(1e30)).astype(np.float32),
    ),
    "subnormal": _changed(_PLAIN, gradient=(_PLAIN.gradient * np.float32(1e-39)).astype(np.float32)),
}
# Symmetric trees: levels of more leaves than are searched together, and than are opened together.
SYMMETRIC_INPUTS = {
    **{f"symmetric, {name}": made.symmetric(1 + number % 4) for number, (name, made) in enumerate(INPUTS.items())},
    "symmetric, 6 levels": make_input(700, [40, 9, 7, 2, 3], missing=(1,), n_leaves=2, seed=15).symmetric(6),
    "symmetric, 9 levels": make_input(1500, [2] * 9, missing=(2,), n_leaves=2, seed=16).symmetric(9),
}
_DIRECTIONS = [1, -1, 0, 1, 0, -1, 1, 0]
_INTERACTING = [[0, 1, 3], [2, 7], [7, 1, 4], [5, 6], [0, 2]]
RULED_INPUTS = {
    "rising and falling": INPUTS["31 leaves"].ruled(_DIRECTIONS),
    "rising and falling, penalties": INPUTS["penalties"].ruled([-1, 0, 1, 0, 0, 1]),
    "groups": INPUTS["31 leaves"].ruled(groups=_INTERACTING),
    "more groups than bits of a word": INPUTS["70 columns"].ruled(
        groups=[[first, (first + 7) % 70] for first in range(70)]
    ),
    "groups, rising and falling": INPUTS["31 leaves"].ruled(_DIRECTIONS, _INTERACTING),
    "symmetric, groups": INPUTS["31 leaves"].ruled(groups=_INTERACTING).symmetric(5),
    "symmetric, groups, rising and falling": INPUTS["31 leaves"].ruled(_DIRECTIONS, _INTERACTING).symmetric(5),
    "symmetric, rising and falling": INPUTS["31 leaves"].ruled(_DIRECTIONS).symmetric(5),
}
# Categories: few and many, missing ones, rare ones in the last bin, alone in a column and with other features.
_CATEGORIES = [255, 0, 58, 2, 0, 1, 3, 200]
RULED_INPUTS |= {
    "categories": INPUTS["31 leaves"].ruled(
        n_categories=_CATEGORIES, category_smoothing=2.0, category_l2=3.0, max_category_set=200
    ),
    "small sets of categories": INPUTS["31 leaves"].ruled(
        n_categories=_CATEGORIES, category_smoothing=0.0, category_l2=0.0, max_category_set=2
    ),
    "categories, groups, rising and falling": INPUTS["31 leaves"].ruled(
        [0, -1, 0, 0, 1], _INTERACTING, _CATEGORIES, category_smoothing=1.0, l1=0.1
    ),
}
# Too slow for the reference and the kernels on the host.
LARGE_INPUTS = {
    "255 leaves": make_input(30_000, [255] * 20 + [9] * 30, missing=(3, 25), n_leaves=255, min_docs_leaf=3, seed=11),
    "1024 leaves": make_input(40_000, [255, 9, 100, 255, 3], missing=(2,), n_leaves=1024, seed=14),
    "four slabs": make_input(20_000, [255] * 200, missing=(3, 150), n_leaves=15, seed=13),
    "many tiles": make_input(200_003, [255, 16, 15, 254, 100], missing=(1, 3), n_leaves=31, seed=12),
}
LARGE_SYMMETRIC_INPUTS = {
    "symmetric, 10 levels": make_input(40_000, [2] * 12 + [9] * 3, missing=(2, 13), n_leaves=2, seed=17).symmetric(10),
    "symmetric, four slabs": LARGE_INPUTS["four slabs"].symmetric(5),
    "symmetric, many tiles": LARGE_INPUTS["many tiles"].symmetric(6),
}
LARGE_RULED_INPUTS = {
    "rising and falling, many tiles": LARGE_INPUTS["many tiles"].ruled([1, -1, 0, 1, 0]),
    "rising and falling, four slabs": LARGE_INPUTS["four slabs"].ruled([1, -1, 0, 0] * 50),
    "groups, rising and falling, four slabs": LARGE_INPUTS["four slabs"].ruled(
        [1, -1, 0, 0] * 50, [list(range(first, 200, 9)) for first in range(9)]
    ),
    "categories, many tiles": LARGE_INPUTS["many tiles"].ruled(n_categories=[255, 16, 0, 250]),
    "categories, four slabs": LARGE_INPUTS["four slabs"].ruled(
        [0, 1] * 50, n_categories=[255, 0, 200, 0] * 50, category_smoothing=1.0
    ),
    "symmetric, groups, four slabs": LARGE_SYMMETRIC_INPUTS["symmetric, four slabs"].ruled(
        groups=[list(range(first, 200, 9)) for first in range(9)]
    ),
    "symmetric, rising and falling, four slabs": LARGE_SYMMETRIC_INPUTS["symmetric, four slabs"].ruled(
        [1, -1, 0, 0] * 50
    ),
}

# Empty and single queries; sizes around the lanes.
SIZES = np.array([0, 1, 2, 3, 15, 16, 17, 31, 33, 49, 5, 0])


def make_queries(seed):
    """Gains and scores; some queries with equal gains, equal scores, scores far apart, and subnormal ones."""
    generator = np.random.default_rng(seed)
    query_ptr = np.concatenate(([0], np.cumsum(SIZES)))
    n_docs = int(query_ptr[-1])
    gains = 2.0 ** generator.integers(0, 5, n_docs) - 1.0
    scores = (3.0 * generator.normal(size=n_docs)).astype(np.float32)
    gains[query_ptr[4] : query_ptr[5]] = 3.0
    scores[query_ptr[9] : query_ptr[9] + 20] = 1.0
    scores[query_ptr[8] : query_ptr[8] + 3] = -300.0
    scores[query_ptr[7] : query_ptr[8]] *= np.float32(1e-40)
    scores[query_ptr[6] : query_ptr[6] + 4] = [0.0, -0.0, 0.0, -0.0]
    return query_ptr, gains, scores


def make_edge_queries(seed):
    """The same with sizes around a warp, a block's threads and its memory; one document, equal gains, equal scores."""
    generator = np.random.default_rng(seed)
    in_memory = [BLOCK_DOCUMENTS - 1, BLOCK_DOCUMENTS, BLOCK_DOCUMENTS + 1, BLOCK_DOCUMENTS + 4]
    sizes = generator.permutation([1, 2, 31, 32, 33, 63, 64, 65, 0, 5, 7, *in_memory, LONG_THREADS * 2 + 1])
    query_ptr = np.concatenate(([0], np.cumsum(sizes)))
    n_docs = int(query_ptr[-1])
    gains = 2.0 ** generator.integers(0, 5, n_docs) * (generator.random(n_docs) < 0.3)
    scores = (4.0 * generator.normal(size=n_docs)).astype(np.float32)
    gains[query_ptr[2] : query_ptr[3]] = 0.0
    gains[query_ptr[4] : query_ptr[5]] = 3.0
    scores[query_ptr[6] : query_ptr[7]] = 0.25
    return query_ptr, gains, scores
