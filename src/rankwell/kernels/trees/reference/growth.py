"""A tree, slowly: every cut of every leaf from sums over its documents, one document after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rankwell.kernels.trees import rules
from rankwell.kernels.trees.contract import BinTree, TreeSettings


@dataclass(frozen=True)
class WholeNumbers:
    """Gradients and Hessians in units of 2^−gradient_exponent and 2^−hessian_exponent; int64 (n_docs,) each."""

    gradient: np.ndarray
    hessian: np.ndarray
    gradient_exponent: int
    hessian_exponent: int


@dataclass(frozen=True)
class Cut:
    """The best cut of a leaf: gain in units, feature, bin, and where missing values go."""

    gain: float
    feature: int
    bin: int
    missing_left: bool


def whole_numbers(gradient: np.ndarray, hessian: np.ndarray) -> WholeNumbers | None:
    """See `rules`; None if either is 0 everywhere."""
    if not gradient.any() or not hessian.any():
        return None
    parts = []
    for values, bits in ((gradient, rules.GRADIENT_BITS), (hessian, rules.HESSIAN_BITS)):
        exact = [float(value) for value in values]
        exponent = rules.first_exponent(max(map(abs, exact)))
        total = sum(abs(round(math.ldexp(value, exponent))) for value in exact)
        exponent = rules.final_exponent(exponent, total, len(exact), bits)
        parts.append((np.array([round(math.ldexp(value, exponent)) for value in exact], np.int64), exponent))
    (g, a), (h, b) = parts
    return WholeNumbers(g, h, a, b)


def grow_tree(
    bins: np.ndarray,
    has_missing: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    settings: TreeSettings,
    *,
    counts: np.ndarray | None = None,
    allowed: Callable[[int], np.ndarray] | None = None,
) -> tuple[BinTree, np.ndarray] | None:
    """The tree, and the leaf of each document; None if there is no cut.

    bins : uint8 (n_docs, n_features), 0 for a missing value
    has_missing : bool (n_features,), whether the feature may have missing values
    counts : uint8 (n_docs,), 0 for documents that do not count
    allowed : the features, bool (n_features,), that may cut a leaf, by its number within the tree (`sampling`)
    """
    numbers = whole_numbers(gradient, hessian)
    if numbers is None:
        return None
    if counts is not None:
        numbers = replace(numbers, gradient=numbers.gradient * counts, hessian=numbers.hessian * counts)
        n_counting = int(counts.sum())
        scaled = max(1, (2 * settings.min_docs_leaf * len(bins) + n_counting) // (2 * n_counting))
        settings = replace(settings, min_docs_leaf=scaled)
    everything = np.ones(bins.shape[1], bool)

    def cut_of(rows: np.ndarray, number: int) -> Cut | None:
        features = everything if allowed is None else allowed(number)
        return best_cut(bins, has_missing, features, numbers, rows, settings)

    leaves, depths = [np.arange(len(bins))], [0]
    cuts = [cut_of(leaves[0], 0)]
    nodes: list[dict[str, float]] = []
    above: dict[int, tuple[int, str]] = {}
    while len(leaves) < settings.n_leaves:
        gains = [0.0 if cut is None else cut.gain for cut in cuts]
        leaf = int(np.argmax(gains))
        cut = cuts[leaf]
        if cut is None:
            break
        rows, node, new = leaves[leaf], len(nodes), len(leaves)
        is_left = _goes_left(bins[rows, cut.feature], cut)
        nodes.append(_node(cut, numbers, rows, leaf, new))
        if leaf in above:
            parent, side = above[leaf]
            nodes[parent][side] = node
        above[leaf], above[new] = (node, "left"), (node, "right")
        leaves[leaf], depths[leaf] = rows[is_left], depths[leaf] + 1
        leaves.append(rows[~is_left])
        depths.append(depths[leaf])
        cuts.append(None)
        is_deepest = settings.max_depth and depths[leaf] >= settings.max_depth
        for which, number in ((leaf, 2 * new), (new, 2 * new + 1)):
            cuts[which] = None if is_deepest else cut_of(leaves[which], number)
    return None if not nodes else _tree(nodes, leaves, numbers, settings, len(bins))


def best_cut(
    bins: np.ndarray,
    has_missing: np.ndarray,
    allowed: np.ndarray,
    numbers: WholeNumbers,
    rows: np.ndarray,
    settings: TreeSettings,
) -> Cut | None:
    """The best cut of the leaf with these documents; None if none is allowed and gains more than min_gain."""
    l1, l2 = math.ldexp(settings.l1, numbers.gradient_exponent), math.ldexp(settings.l2, numbers.hessian_exponent)
    g, h = numbers.gradient[rows], numbers.hessian[rows]
    total_g, total_h = int(g.sum()), int(h.sum())
    smallest = rules.least_hessian(
        total_h,
        len(rows),
        settings.min_docs_leaf,
        math.ceil(math.ldexp(settings.min_hessian_leaf, numbers.hessian_exponent)),
    )
    best = Cut(
        math.ldexp(settings.min_gain, 2 * numbers.gradient_exponent - numbers.hessian_exponent),
        -1,
        0,
        missing_left=True,
    )
    for feature in np.flatnonzero(allowed).tolist():
        own = bins[rows, feature]
        missing_g, missing_h = int(g[own == 0].sum()), int(h[own == 0].sum())
        directions = (True, False) if missing_g != 0 or missing_h != 0 else (True,)
        for missing_left in directions:
            for b in range(0 if has_missing[feature] else 1, int(own.max())):
                is_left = own <= b if missing_left else (own <= b) & (own > 0)
                g1, h1 = int(g[is_left].sum()), int(h[is_left].sum())
                if h1 < smallest or total_h - h1 < smallest:
                    continue
                gain = rules.split_gain(g1, h1, total_g - g1, total_h - h1, l1, l2)
                if gain > best.gain:
                    goes_left = missing_left if len(directions) == 2 else 2 * h1 >= total_h
                    best = Cut(gain, feature, b, goes_left)
    return None if best.feature < 0 else best


def _goes_left(own: np.ndarray, cut: Cut) -> np.ndarray:
    return np.where(own == 0, cut.missing_left, own <= cut.bin)


def _node(cut: Cut, numbers: WholeNumbers, rows: np.ndarray, leaf: int, new: int) -> dict[str, float]:
    return {
        "feature": cut.feature,
        "cut": cut.bin,
        "left": -1 - leaf,
        "right": -1 - new,
        "missing_left": cut.missing_left,
        "gain": math.ldexp(cut.gain, numbers.hessian_exponent - 2 * numbers.gradient_exponent),
        "node_docs": len(rows),
        "node_hessian": math.ldexp(int(numbers.hessian[rows].sum()), -numbers.hessian_exponent),
    }


def _tree(
    nodes: list[dict[str, float]], leaves: list[np.ndarray], numbers: WholeNumbers, settings: TreeSettings, n_docs: int
) -> tuple[BinTree, np.ndarray]:
    kinds = {"missing_left": np.uint8, "gain": np.float64, "node_docs": np.int64, "node_hessian": np.float64}
    arrays = {name: np.array([node[name] for node in nodes], kinds.get(name, np.int32)) for name in nodes[0]}
    a, b = numbers.gradient_exponent, numbers.hessian_exponent
    hessians = [int(numbers.hessian[rows].sum()) for rows in leaves]
    values = [
        rules.leaf_value(
            float(numbers.gradient[rows].sum()),
            float(h),
            math.ldexp(settings.l1, a),
            math.ldexp(settings.l2, b),
            math.ldexp(1.0, b - a),
            settings.learning_rate,
        )
        for rows, h in zip(leaves, hessians, strict=True)
    ]
    leaf_of = np.zeros(n_docs, np.int64)
    for leaf, rows in enumerate(leaves):
        leaf_of[rows] = leaf
    return (
        BinTree(
            **arrays,
            leaf_docs=np.array([len(rows) for rows in leaves], np.int64),
            leaf_hessian=np.array([math.ldexp(h, -b) for h in hessians]),
            leaf_value=np.array(values, np.float32),
        ),
        leaf_of,
    )
