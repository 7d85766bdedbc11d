"""Metric: a family (NDCG, average precision, ...) and a cut-off; or a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwell.errors import ParameterError


@dataclass(frozen=True)
class MetricFamily:
    """What is measured, apart from the cut-off.

    Attributes
    ----------
    name : str
        The part before the ``@``.
    kind : int
        Its code in `rankwell.kernels.ranking_metrics.rules`.
    cutoff : ``"required"``, ``"optional"`` or ``"none"``
    reads_gains : bool
        Labels are converted to gains, so negative ones matter.
    pooled : bool
        The overall figure counts all pairs of all queries together, not the mean of the queries' figures.
    """

    name: str
    kind: int
    cutoff: Literal["required", "optional", "none"]
    reads_gains: bool = False
    pooled: bool = False

    @property
    def spellings(self) -> str:
        """How it is written, for messages: ``ndcg, ndcg@K``."""
        return {"required": f"{self.name}@K", "optional": f"{self.name}, {self.name}@K", "none": self.name}[self.cutoff]


@dataclass(frozen=True)
class Metric:
    """A family and its cut-off; None is the whole list. All metrics are better when larger."""

    family: MetricFamily
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.cutoff is None and self.family.cutoff == "required":
            raise ParameterError(f"{self.family.name} needs a cut-off: write {self.family.name}@10.")
        if self.cutoff is not None and self.family.cutoff == "none":
            raise ParameterError(f"{self.family.name} takes no cut-off: write {self.family.name}.")
        if self.cutoff is not None and not 1 <= self.cutoff < 2**31:
            raise ParameterError(f"the cut-off of {self.family.name} must be 1 or more, got {self.cutoff}.")

    @property
    def name(self) -> str:
        return self.family.name if self.cutoff is None else f"{self.family.name}@{self.cutoff}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FunctionMetric:
    """A metric that a function computes: of one query's labels and scores, both float64 (n_docs,), a number.

    The larger, the better; NaN leaves the query out of the mean. Conventions do not apply to it.
    """

    function: Callable[[np.ndarray, np.ndarray], float]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def of_query(self, labels: np.ndarray, scores: np.ndarray) -> float:
        """The function's value, checked."""
        value = self.function(labels, scores)
        try:
            return float(value)
        except (TypeError, ValueError) as cause:
            raise ParameterError(
                f"the metric {self.name} must return one number for the labels and scores of a query, it returned "
                f"{value!r}."
            ) from cause

    def __str__(self) -> str:
        return self.name
