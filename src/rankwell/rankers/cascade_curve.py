"""The curve of quality against cost: what a cascade could be, and which of the possibilities is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rankwell.errors import ParameterError

# How much more a loss counts than a gain when a cascade is to be as good as the full ranker.
_CAREFULNESS = 0.05


@dataclass(frozen=True)
class CascadePoint:
    """One possible cascade, measured on validation data.

    first, second : the features that each pass reads; `first` is empty if there is one pass only
    first_size, second_size : how many features each was trained on
    keep : how many documents the first pass keeps; None for one pass
    from_kept : whether the second pass learnt from documents that a first pass kept, or from all
    first_cost, second_cost : microseconds a query
    metric : the mean over validation queries; by_query : each query's, NaN where it does not count
    first_pass, second_pass : how each was made (`cascade_passes`); `first_pass` is None if there is one pass only
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    first_size: int
    second_size: int
    keep: int | None
    from_kept: bool
    first_cost: float
    second_cost: float
    metric: float
    by_query: np.ndarray = field(repr=False, compare=False)
    first_pass: Any = field(default=None, repr=False)
    second_pass: Any = field(default=None, repr=False)

    @property
    def cost(self) -> float:
        return self.first_cost + self.second_cost

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        for name in ("by_query", "first_pass", "second_pass"):
            del content[name]
        return {**content, "first": list(self.first), "second": list(self.second), "cost": self.cost}


def best_points(points: Sequence[CascadePoint]) -> list[CascadePoint]:
    """The points that no other one beats in cost and quality, by cost: the curve."""
    curve: list[CascadePoint] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.metric)):
        if not curve or point.metric > curve[-1].metric:
            curve.append(point)
    return curve


def choose_point(
    points: Sequence[CascadePoint], full: CascadePoint, *, budget: float | None, tolerance: float
) -> CascadePoint:
    """The point within a budget that falls least short of the full ranker; without one, the cheapest that is as good.

    What a point falls short is the part of the full ranker's metric that it loses, query by query, in the mean over
    validation queries; what it gains in other queries does not count. By the mean difference alone, the luckiest of
    many points would be chosen. As good means that the mean difference, less a twentieth of what the point falls
    short, is at least -tolerance. On held-out queries of MQ2007 that lost 0.002 at 19 % of the cost; a quarter, which
    was right while features had been chosen on all training queries, lost 0.003 at 39 %.
    """
    if budget is not None:
        within = [point for point in points if point.cost <= budget]
        if not within:
            cheapest = min(point.cost for point in points)
            raise ParameterError(
                f"must be at least {cheapest:.1f} microseconds a query, what the cheapest cascade takes, got "
                f"{budget:g}.",
                parameter="budget",
            )
        return min(within, key=lambda point: (_shortfall(point, full), -_differences(point, full).sum(), point.cost))
    good = [point for point in points if _careful_difference(point, full) >= -tolerance]
    return min(good, key=lambda point: (point.cost, -point.metric)) if good else full


def _differences(point: CascadePoint, full: CascadePoint) -> np.ndarray:
    """To the full ranker's metric, of each query that counts."""
    differences = point.by_query - full.by_query
    return np.asarray(differences[~np.isnan(differences)])


def _shortfall(point: CascadePoint, full: CascadePoint) -> float:
    """What the point loses to the full ranker in the queries in which it is worse, summed."""
    return float(np.maximum(0.0, -_differences(point, full)).sum())


def _careful_difference(point: CascadePoint, full: CascadePoint) -> float:
    """The mean difference to the full ranker over queries, in which losses count more than gains."""
    differences = _differences(point, full)
    return float(differences.sum() - _CAREFULNESS * _shortfall(point, full)) / max(1, len(differences))
