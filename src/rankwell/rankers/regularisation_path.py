"""The path over C: one training after another with growing C, each from the weights of the one before.

Neighbours on the path are close, so a warm start saves most of the solver's steps; the features are prepared (and on a
GPU transferred) once for all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankwell.errors import FileFormatError, ParameterError
from rankwell.kernels.pair_loss.contract import PairLoss
from rankwell.rankers.ranksvm_data import LinearScores
from rankwell.rankers.validation import Validation
from rankwell.solvers.trust_region_newton import NewtonResult

# C·(number of pairs) where no validation data can tell: of 1, 10, 100, ..., 10,000 the best on the validation folds of
# four text collections, and close to the best on LETOR's.
_RELATIVE_C = 10.0
# C·(number of pairs) = 2⁰, 2², ..., 2²⁴: from weights kept near 0 to almost unregularised weights, for features of
# about unit size and any number of pairs. The first eight are always tried: on the collections at hand the validation
# figure has its maximum among them and does not rise again, so that a higher one later would be chance. For features of
# small size the path goes on while the last C is the best.
_DEFAULT_EXPONENTS = range(0, 26, 2)
_ALWAYS_TRIED = 8


@dataclass(frozen=True)
class TrainingOutcome:
    """One minimisation: the weights kept (of normalised features), where the solver stopped, and the history."""

    weights: np.ndarray
    result: NewtonResult
    history: dict[str, list[float]]


@dataclass(frozen=True)
class PathPoint:
    """One C of the path.

    validation : the validation metric's mean
    objective, relative_gradient : where the solver stopped
    n_iterations, n_products : outer iterations and Hessian-vector products it took
    seconds : how long, validation included; None for a path from a file
    outcome : the weights and the history; None for a path from a file
    """

    C: float
    validation: float
    objective: float
    relative_gradient: float
    n_iterations: int
    n_products: int
    seconds: float | None = None
    outcome: TrainingOutcome | None = field(default=None, repr=False)


# The figures of a point that a ranker file keeps; times would make the same training give different files.
_KEPT = ("C", "validation", "objective", "relative_gradient", "n_iterations", "n_products")


@dataclass(frozen=True)
class RegularisationPath:
    """The points in the order of growing C; `best` is the first of those with the highest validation metric."""

    points: tuple[PathPoint, ...]
    metric: str
    convention: str

    @property
    def best(self) -> PathPoint:
        return max(self.points, key=lambda point: -math.inf if math.isnan(point.validation) else point.validation)

    def to_array(self) -> np.ndarray:
        """What a ranker file keeps: float64 (n_points, 6), the figures of each point in the order of `PathPoint`."""
        return np.array([[getattr(point, name) for name in _KEPT] for point in self.points], dtype=np.float64)

    @classmethod
    def from_array(cls, array: np.ndarray, metric: str, convention: str) -> RegularisationPath:
        """The inverse of `to_array`, without times and weights."""
        if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] != len(_KEPT):
            raise FileFormatError("the path of C in the ranker file is damaged: its shape is wrong. Train it again.")
        points = (
            PathPoint(C, validation, objective, gradient, int(n_iterations), int(n_products))
            for C, validation, objective, gradient, n_iterations, n_products in array.tolist()
        )
        return cls(tuple(points), metric, convention)

    def table(self) -> str:
        """The path as text, one C per line, the best one marked."""
        lines = [
            f"{'C':>12}  {self.metric} ({self.convention})  {'objective':>14}  {'iterations':>10}  {'products':>8}"
        ]
        width = len(self.metric) + len(self.convention) + 3
        for point in self.points:
            mark = " *" if point is self.best else ""
            lines.append(
                f"{point.C:12.6g}  {point.validation:>{width}.4f}  {point.objective:14.6g}  {point.n_iterations:10d}  "
                f"{point.n_products:8d}{mark}"
            )
        return "\n".join(lines)


def relative_C(loss: PairLoss) -> float:
    """The C for data without a validation set. L(0) is the number of pairs, each counted by its weight."""
    n_pairs = loss.loss_and_gradient(loss.to_device(np.zeros(loss.n_features)))[0]
    return _RELATIVE_C / float(n_pairs)


def default_Cs(n_pairs: int) -> tuple[float, ...]:
    """Powers of two that suit a number of pairs."""
    base = round(math.log2(max(n_pairs, 1)))
    return tuple(2.0 ** (exponent - base) for exponent in _DEFAULT_EXPONENTS)


def check_Cs(Cs: Sequence[float]) -> tuple[float, ...]:
    """The values of C in growing order, or an error."""
    values = sorted({float(C) for C in Cs})
    if not values:
        raise ParameterError("must hold at least one value of C.", parameter="Cs")
    for C in values:
        if not (math.isfinite(C) and C > 0):
            raise ParameterError(f"every C must be a finite number above 0, got {C}.")
    return tuple(values)


def follow_path(
    train: Callable[[float, np.ndarray | None], TrainingOutcome],
    validation: Validation,
    scores: LinearScores,
    Cs: Sequence[float],
    start: np.ndarray | None = None,
    *,
    to_the_end: bool = True,
) -> RegularisationPath:
    """Train for each C, each from the weights of the one before, until the end or until a callback stops it.

    Parameters
    ----------
    train : callable
        A function of C and the initial weights (None is 0).
    validation, scores :
        Measure the weights of each C: the metric, and the scores of the validation documents.
    Cs : sequence of float
        In growing order.
    start : float64 array (n_features,), optional
    to_the_end : bool
        Otherwise the path ends where the last C is no longer the best, but not before some have been tried.
    """
    points: list[PathPoint] = []
    weights = start
    for C in Cs:
        begun = time.perf_counter()
        outcome = train(C, weights)
        weights = outcome.weights
        metric = validation.measure(scores.under(weights))
        result = outcome.result
        points.append(
            PathPoint(
                C,
                metric,
                result.value,
                result.relative_gradient,
                result.n_iterations,
                result.n_products,
                time.perf_counter() - begun,
                outcome,
            )
        )
        path = RegularisationPath(tuple(points), validation.metric, validation.convention)
        is_over = not to_the_end and len(points) >= _ALWAYS_TRIED and path.best is not points[-1]
        if result.stopped_by == "callback" or is_over:
            break
    return path
