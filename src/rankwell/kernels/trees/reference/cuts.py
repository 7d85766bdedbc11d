"""The cuts of a leaf, slowly: each from sums over its documents, one document after another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankwell.kernels.trees import rules
from rankwell.kernels.trees.contract import TreeSettings

UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True)
class WholeNumbers:
    """Gradients and Hessians in units of 2^−gradient_exponent and 2^−hessian_exponent; int64 (n_docs,) each."""

    gradient: np.ndarray
    hessian: np.ndarray
    gradient_exponent: int
    hessian_exponent: int


@dataclass(frozen=True)
class Cut:
    """A cut: gain in units, feature, bin, and where missing values go; the bins on the left if they are categories.

    l2 : in units, of the values of both sides
    """

    gain: float
    feature: int
    bin: int
    missing_left: bool
    l2: float
    left_bins: frozenset[int] | None = None

    def goes_left(self, own: np.ndarray) -> np.ndarray:
        """Which bins, uint8 (n,), go left."""
        if self.left_bins is not None:
            return np.isin(own, list(self.left_bins))
        return np.where(own == 0, self.missing_left, own <= self.bin)


@dataclass(frozen=True)
class Leaf:
    """A leaf: its documents, its depth, the bounds of its step, the groups that all features on its path are in."""

    rows: np.ndarray
    depth: int = 0
    bounds: tuple[float, float] = UNBOUNDED
    groups: frozenset[int] = frozenset()
    l2: float = 0.0


class LeafCuts:
    """The cuts of one leaf.

    bins : uint8 (n_docs, n_features), of all documents; has_missing : bool (n_features,)
    is_bounded : whether the tree has rising or falling features
    """

    def __init__(
        self,
        bins: np.ndarray,
        has_missing: np.ndarray,
        numbers: WholeNumbers,
        leaf: Leaf,
        settings: TreeSettings,
        is_bounded: bool,
    ) -> None:
        self.bins, self._has_missing, self._bounds, self._is_bounded = (
            bins[leaf.rows],
            has_missing,
            leaf.bounds,
            is_bounded,
        )
        self._all_bins = bins
        self._settings = settings
        a, b = numbers.gradient_exponent, numbers.hessian_exponent
        self.l1, self.l2 = math.ldexp(settings.l1, a), math.ldexp(settings.l2, b)
        self.min_gain = math.ldexp(settings.min_gain, 2 * a - b)
        self.g, self.h = numbers.gradient[leaf.rows], numbers.hessian[leaf.rows]
        self.total_g, self.total_h, n_docs = int(self.g.sum()), int(self.h.sum()), len(leaf.rows)
        least = math.ceil(math.ldexp(settings.min_hessian_leaf, b))
        self._smallest = rules.least_hessian(self.total_h, n_docs, settings.min_docs_leaf, least)
        self._mean_hessian = self.total_h / n_docs

    def has_missing_values(self, feature: int) -> bool:
        """Whether documents with missing values count."""
        is_missing = self.bins[:, feature] == 0
        return bool(self.g[is_missing].sum() or self.h[is_missing].sum())

    def gain(self, is_left: np.ndarray, direction: int = 0, l2: float | None = None) -> float | None:
        """The gain of this division; None if it is not allowed. l2 : of the sides, if not the settings'"""
        g1, h1 = int(self.g[is_left].sum()), int(self.h[is_left].sum())
        g2, h2 = self.total_g - g1, self.total_h - h1
        if h1 < self._smallest or h2 < self._smallest:
            return None
        of_sides = self.l2 if l2 is None else l2
        if not self._is_bounded:
            before = rules.objective(self.total_g, self.total_h, self.l1, self.l2)
            return rules.sides_objective(g1, h1, g2, h2, self.l1, of_sides) - before
        before = self._bounded(self.total_g, self.total_h, self.l2)[1]
        (step1, objective1), (step2, objective2) = (self._bounded(g, h, of_sides) for g, h in ((g1, h1), (g2, h2)))
        return (objective1 + objective2) - before if (step2 - step1) * direction >= 0 else None

    def _bounded(self, gradient: int, hessian: int, l2: float) -> tuple[float, float]:
        step = rules.bounded_step(gradient, hessian, self.l1, l2, *self._bounds)
        return step, rules.bounded_objective(gradient, hessian, self.l1, l2, step)

    def middle(self, is_left: np.ndarray) -> float:
        """The mean of the steps of both sides."""
        g1, h1 = int(self.g[is_left].sum()), int(self.h[is_left].sum())
        sides = (g1, h1), (self.total_g - g1, self.total_h - h1)
        steps = [self._bounded(g, h, self.l2)[0] for g, h in sides]
        return (steps[0] + steps[1]) / 2.0

    def heavier_left(self, is_left: np.ndarray) -> bool:
        return 2 * int(self.h[is_left].sum()) >= self.total_h

    def ordered(self, feature: int, direction: int) -> Iterator[Cut]:
        """The allowed cuts by a feature whose bins have an order; of equal ones the first is taken."""
        own, both = self.bins[:, feature], self.has_missing_values(feature)
        for missing_left in (True, False) if both else (True,):
            # Of all documents: after the highest bin of a leaf's own, missing values may still go to the right alone.
            for b in range(0 if self._has_missing[feature] else 1, int(self._all_bins[:, feature].max())):
                is_left = own <= b if missing_left else (own <= b) & (own > 0)
                gain = self.gain(is_left, direction)
                if gain is not None:
                    yield Cut(gain, feature, b, missing_left if both else self.heavier_left(is_left), self.l2)

    def by_categories(self, feature: int, n_categories: int) -> Iterator[Cut]:
        """The allowed cuts by sets of categories."""
        own = self.bins[:, feature]
        lowest = 0 if self._has_missing[feature] else 1
        bins = range(lowest, n_categories + 1)
        sums = {b: (int(self.g[own == b].sum()), int(self.h[own == b].sum())) for b in bins}
        l2 = self.l2
        sets: list[list[int]] = [[b] for b in bins]
        if len(bins) > rules.FEW_CODES:
            l2 = l2 + self._settings.category_l2 * self._mean_hessian
            smoothing = self._settings.category_smoothing * self._mean_hessian
            usual = [b for b in bins if sums[b][1] > 0 and sums[b][1] >= smoothing]
            usual.sort(key=lambda b: sums[b][0] / (sums[b][1] + smoothing))
            most = min((len(usual) + 1) // 2, self._settings.max_category_set)
            sets = [usual[:size] for size in range(1, most + 1)] + [usual[-size:] for size in range(1, most + 1)]
        for left in sets:
            gain = self.gain(np.isin(own, left), l2=l2)
            if gain is not None:
                yield Cut(gain, feature, -1, 0 in left, l2, frozenset(left))
