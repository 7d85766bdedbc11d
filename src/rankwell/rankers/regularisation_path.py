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

from rankwell.errors import ParameterError
from rankwell.rankers.ranksvm_data import LinearScores
from rankwell.rankers.validation import Validation
from rankwell.solvers.trust_region_newton import NewtonResult

# C·(number of pairs) = 2⁰, 2², ..., 2²⁴: from weights held near 0 to weights that are all but free, for features of
# about unit size, whatever the number of pairs is.
_DEFAULT_EXPONENTS = range(0, 26, 2)


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
    seconds : how long, validation included
    outcome : the weights and the history
    """

    C: float
    validation: float
    objective: float
    relative_gradient: float
    n_iterations: int
    n_products: int
    seconds: float
    outcome: TrainingOutcome = field(repr=False)


@dataclass(frozen=True)
class RegularisationPath:
    """The points in the order of growing C; `best` is the first of those with the highest validation metric."""

    points: tuple[PathPoint, ...]
    metric: str
    convention: str

    @property
    def best(self) -> PathPoint:
        return max(self.points, key=lambda point: -math.inf if math.isnan(point.validation) else point.validation)

    def table(self) -> str:
        """The path as text, one C a line, the best one marked."""
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
) -> RegularisationPath:
    """Train for each C, each from the weights of the one before, until the end or a callback's wish.

    Parameters
    ----------
    train : callable
        Of C and the weights to start from (None is 0).
    validation, scores :
        Measure the weights of each C: the metric, and the scores of the validation documents.
    Cs : sequence of float
        In growing order.
    start : float64 array (n_features,), optional
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
        if result.stopped_by == "callback":
            break
    return RegularisationPath(tuple(points), validation.metric, validation.convention)
