"""A tree, slowly: leaf by leaf, each time the leaf whose best cut gains most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rankwell.kernels.trees import rules
from rankwell.kernels.trees.contract import BIN_SET_WORDS, BinTree, TreeSettings
from rankwell.kernels.trees.feature_rules import GROUPS_A_WORD, FeatureRules
from rankwell.kernels.trees.reference.cuts import Cut, Leaf, LeafCuts, WholeNumbers


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
    feature_rules: FeatureRules | None = None,
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
        n_counting = max(1, int(counts.sum()))
        scaled = max(1, (2 * settings.min_docs_leaf * len(bins) + n_counting) // (2 * n_counting))
        settings = replace(settings, min_docs_leaf=scaled)
    own_rules = FeatureRules.none(bins.shape[1]) if feature_rules is None else feature_rules
    grove = Growth(bins, has_missing, numbers, settings, own_rules, allowed)
    grove.grow_levels() if settings.is_symmetric else grove.grow_leaves()
    return grove.finished() if grove.nodes else None


@dataclass
class Growth:
    """A tree in growth: its leaves by number, and its nodes."""

    bins: np.ndarray
    has_missing: np.ndarray
    numbers: WholeNumbers
    settings: TreeSettings
    feature_rules: FeatureRules
    allowed: Callable[[int], np.ndarray] | None

    def __post_init__(self) -> None:
        groups = frozenset(range(GROUPS_A_WORD * self.feature_rules.groups.shape[1]))
        l2 = math.ldexp(self.settings.l2, self.numbers.hessian_exponent)
        self.leaves = [Leaf(np.arange(len(self.bins)), groups=groups, l2=l2)]
        self.nodes: list[dict[str, float]] = []
        self.left_bins: list[frozenset[int] | None] = []
        self._above: dict[int, tuple[int, str]] = {}

    def grow_leaves(self) -> None:
        """Cut the leaf whose cut gains most, until there are enough leaves."""
        cuts = [self.best_cut(0, 0)]
        while len(self.leaves) < self.settings.n_leaves:
            leaf = int(np.argmax([0.0 if cut is None else cut.gain for cut in cuts]))
            cut = cuts[leaf]
            if cut is None:
                break
            new = len(self.leaves)
            self.divide(leaf, cut)
            cuts.append(None)
            is_deepest = self.settings.max_depth and self.leaves[leaf].depth >= self.settings.max_depth
            for which, number in ((leaf, 2 * new), (new, 2 * new + 1)):
                cuts[which] = None if is_deepest else self.best_cut(which, number)

    def grow_levels(self) -> None:
        """Cut all leaves of a level in the same way, level by level."""
        for level in range(self.settings.max_depth):
            cuts = self.best_level(level)
            if cuts is None:
                break
            for leaf, cut in enumerate(cuts):
                if cut is not None:
                    self.divide(leaf, cut)

    def cuts_of(self, leaf: int) -> LeafCuts:
        is_bounded = self.feature_rules.is_bounded
        return LeafCuts(self.bins, self.has_missing, self.numbers, self.leaves[leaf], self.settings, is_bounded)

    def features_of(self, leaf: int, number: int) -> list[int]:
        """The features that may cut a leaf."""
        chosen = np.ones(self.bins.shape[1], bool) if self.allowed is None else self.allowed(number)
        is_free = not self.feature_rules.has_groups
        return [f for f in np.flatnonzero(chosen).tolist() if is_free or self.groups_of(f) & self.leaves[leaf].groups]

    def groups_of(self, feature: int) -> frozenset[int]:
        words = self.feature_rules.groups[feature].tolist()
        bits = sum(word << GROUPS_A_WORD * k for k, word in enumerate(words))
        return frozenset(group for group in range(bits.bit_length()) if bits >> group & 1)

    def best_cut(self, leaf: int, number: int) -> Cut | None:
        """The best cut of a leaf; None if none is allowed and gains more than min_gain."""
        cuts, best = self.cuts_of(leaf), None
        for feature in self.features_of(leaf, number):
            n_categories = int(self.feature_rules.n_categories[feature])
            direction = int(self.feature_rules.direction[feature])
            tried = cuts.by_categories(feature, n_categories) if n_categories else cuts.ordered(feature, direction)
            for cut in tried:
                if cut.gain > (cuts.min_gain if best is None else best.gain) and cut.gain > 0:
                    best = cut
        return best

    def best_level(self, level: int) -> list[Cut | None] | None:
        """The best cut of all leaves together: by leaf the cut, None where it stays whole; None if there is none."""
        leaves = [self.cuts_of(leaf) for leaf in range(len(self.leaves))]
        features = [set(self.features_of(leaf, level)) for leaf in range(len(self.leaves))]
        best_total, best = 0.0, None
        for feature in sorted(set().union(*features)):
            both = any(leaf.has_missing_values(feature) for leaf in leaves)
            for missing_left in (True, False) if both else (True,):
                for b in range(0 if self.has_missing[feature] else 1, int(self.bins[:, feature].max())):
                    total, cuts, heavier = 0.0, [], 0
                    for leaf, own_features in zip(leaves, features, strict=True):
                        own = leaf.bins[:, feature]
                        is_left = own <= b if missing_left else (own <= b) & (own > 0)
                        heavier += 2 * int(leaf.h[is_left].sum()) - leaf.total_h
                        direction = int(self.feature_rules.direction[feature])
                        gain = leaf.gain(is_left, direction) if feature in own_features else None
                        is_divided = gain is not None and gain > leaf.min_gain and gain > 0
                        total += gain if is_divided and gain is not None else 0.0
                        cuts.append(Cut(gain, feature, b, missing_left, leaf.l2) if is_divided and gain else None)
                    if total > best_total:
                        goes_left = missing_left if both else heavier >= 0
                        best_total = total
                        best = [None if cut is None else replace(cut, missing_left=goes_left) for cut in cuts]
        return best

    def divide(self, leaf: int, cut: Cut) -> None:
        """Make a leaf a node with two leaves."""
        before, node, new = self.leaves[leaf], len(self.nodes), len(self.leaves)
        is_left = cut.goes_left(self.bins[before.rows, cut.feature])
        self.nodes.append(_node(cut, self.numbers, before.rows, leaf, new))
        self.left_bins.append(cut.left_bins)
        if leaf in self._above:
            parent, side = self._above[leaf]
            self.nodes[parent][side] = node
        self._above[leaf], self._above[new] = (node, "left"), (node, "right")
        groups = before.groups & self.groups_of(cut.feature) if self.feature_rules.has_groups else before.groups
        bounds = [before.bounds, before.bounds]
        direction = int(self.feature_rules.direction[cut.feature])
        if direction:
            # Decided by the documents that count, as the cut was.
            middle, (low, high) = self.cuts_of(leaf).middle(is_left), before.bounds
            bounds = [(low, middle), (middle, high)] if direction > 0 else [(middle, high), (low, middle)]
        sides = [
            Leaf(before.rows[rows], before.depth + 1, bounds[side], groups, cut.l2)
            for side, rows in enumerate((is_left, ~is_left))
        ]
        self.leaves[leaf] = sides[0]
        self.leaves.append(sides[1])

    def finished(self) -> tuple[BinTree, np.ndarray]:
        """The tree, and the leaf of each document."""
        kinds = {"missing_left": np.uint8, "gain": np.float64, "node_docs": np.int64, "node_hessian": np.float64}
        arrays = {
            name: np.array([node[name] for node in self.nodes], kinds.get(name, np.int32)) for name in self.nodes[0]
        }
        hessians = [int(self.numbers.hessian[leaf.rows].sum()) for leaf in self.leaves]
        leaf_of = np.zeros(len(self.bins), np.int64)
        for number, leaf in enumerate(self.leaves):
            leaf_of[leaf.rows] = number
        if any(left is not None for left in self.left_bins):
            arrays["left_bins"] = np.array([_bits(left or frozenset()) for left in self.left_bins], np.uint64)
        return (
            BinTree(
                **arrays,
                leaf_docs=np.array([len(leaf.rows) for leaf in self.leaves], np.int64),
                leaf_hessian=np.array([math.ldexp(h, -self.numbers.hessian_exponent) for h in hessians]),
                leaf_value=np.array([self._value(leaf) for leaf in self.leaves], np.float32),
            ),
            leaf_of,
        )

    def _value(self, leaf: Leaf) -> float:
        a, b = self.numbers.gradient_exponent, self.numbers.hessian_exponent
        gradient, hessian = (float(part[leaf.rows].sum()) for part in (self.numbers.gradient, self.numbers.hessian))
        step = rules.bounded_step(gradient, hessian, math.ldexp(self.settings.l1, a), leaf.l2, *leaf.bounds)
        return rules.leaf_value(step, math.ldexp(1.0, b - a), self.settings.learning_rate)


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


def _bits(bins: frozenset[int]) -> list[int]:
    """A set of bins as words of 64 bits."""
    bits = sum(1 << b for b in bins)
    return [bits >> 64 * k & 0xFFFFFFFFFFFFFFFF for k in range(BIN_SET_WORDS)]
