"""Is one ranking better than another, or is the difference chance? Paired tests over queries.

Fisher's randomisation test: if the two rankings were the same, each query's difference could as well have the other
sign. The p-value is the share of sign assignments whose sum is at least as far from 0 as the one observed; all of them
are counted if they are at most `n_resamples`, otherwise `n_resamples` of them are drawn. Smucker, Allan and Carterette,
"A comparison of statistical significance tests for information retrieval evaluation", CIKM 2007, recommend it; the
paired t-test is reported as well. Both are two-sided.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.metrics.evaluation import Evaluation

# Differences this small are rounding: the two rankings tie on the query.
_TIE = 1e-12


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: a against b, over the queries where both have a figure.

    Attributes
    ----------
    metric, convention : str
        Empty if plain arrays were compared.
    n_queries, n_left_out : int
        Queries compared, and those without a figure on either side.
    mean_a, mean_b, difference : float
        `difference` is mean_a − mean_b; means over the compared queries, each counted once.
    wins, ties, losses : int
        Queries where a is better, equal, worse.
    fisher_p : float
        Two-sided p-value of the randomisation test.
    exact : bool
        Whether all sign assignments were counted; otherwise `n_resamples` were drawn.
    n_resamples : int
    t_statistic, t_p : float
        Paired t-test, two-sided. NaN for a single query.
    """

    metric: str
    convention: str
    n_queries: int
    n_left_out: int
    mean_a: float
    mean_b: float
    difference: float
    wins: int
    ties: int
    losses: int
    fisher_p: float
    exact: bool
    n_resamples: int
    t_statistic: float
    t_p: float

    def __str__(self) -> str:
        what = f"{self.metric} ({self.convention})" if self.metric else "difference"
        return (
            f"{what}: {self.mean_a:.4f} - {self.mean_b:.4f} = {self.difference:+.4f} over {self.n_queries} queries "
            f"({self.wins} won, {self.ties} equal, {self.losses} lost), p = {self.fisher_p:.4g} (Fisher), "
            f"{self.t_p:.4g} (t)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; a figure that does not exist is None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def compare(
    a: Evaluation | Any,
    b: Evaluation | Any,
    *,
    metric: str | None = None,
    n_resamples: int = 100_000,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare two rankings of the same queries.

    Parameters
    ----------
    a, b : Evaluation, or float array (n_queries,)
        Queries where either is NaN are left out.
    metric : str, optional
        Which metric of the evaluations; needed if they have several.
    n_resamples : int
        The number of sign assignments to draw; if there are at most that many in all, they are counted exactly.
    random_state : int
        The same seed gives the same p-value, on any number of threads.
    n_jobs : int, optional
        Threads; None or -1 is every core.

    Examples
    --------
    >>> import rankwell
    >>> comparison = rankwell.compare([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.7, 0.4])  # one figure per query
    >>> comparison.wins, comparison.ties, comparison.losses
    (3, 1, 0)
    >>> comparison.fisher_p, comparison.exact
    (0.25, True)
    """
    if n_resamples < 1:
        raise ParameterError(f"must be 1 or more, got {n_resamples}.", parameter="n_resamples")
    if random_state < 0:
        raise ParameterError(f"must be a whole number of 0 or more, got {random_state}.", parameter="random_state")
    name = _common_metric(a, b, metric)
    of_a, of_b = _values(a, name), _values(b, name)
    if of_a.shape != of_b.shape or of_a.ndim != 1:
        raise DataError(f"a and b must each have one figure per query: got shapes {of_a.shape} and {of_b.shape}.")
    both = ~(np.isnan(of_a) | np.isnan(of_b))
    if not both.any():
        raise DataError("a and b share no query with a figure: there is nothing to compare.")
    of_a, of_b = of_a[both], of_b[both]
    differences = of_a - of_b
    differences[np.abs(differences) <= _TIE] = 0.0
    fisher_p, exact, n_used = fisher_randomisation(differences, n_resamples, random_state, n_jobs)
    t_statistic, t_p = paired_t(differences)
    return Comparison(
        metric=name or "",
        convention=a.convention.name if isinstance(a, Evaluation) else "",
        n_queries=len(differences),
        n_left_out=int((~both).sum()),
        mean_a=float(of_a.mean()),
        mean_b=float(of_b.mean()),
        difference=float(differences.mean()),
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
        fisher_p=fisher_p,
        exact=exact,
        n_resamples=n_used,
        t_statistic=t_statistic,
        t_p=t_p,
    )


def fisher_randomisation(
    differences: np.ndarray, n_resamples: int, random_state: int, n_jobs: int | None = None
) -> tuple[float, bool, int]:
    """The two-sided p-value, whether it is exact, and how many sign assignments were counted.

    A drawn p-value is (extreme + 1) / (drawn + 1): the observed assignment is one of them, so it is never 0 (Phipson
    and Smyth, "Permutation p-values should never be zero", 2010).
    """
    from rankwell.kernels.ranking_metrics.sign_flips import count_extreme_sums
    from rankwell.kernels.threads import kernel_threads

    different = differences[differences != 0.0]
    if len(different) == 0:
        return 1.0, True, 1
    # Sums that differ from the observed one only by rounding are as extreme.
    threshold = abs(float(different.sum())) - 1e-12 * float(np.abs(different).sum())
    # Changing all signs keeps the absolute sum, so the last sign need not change.
    exact = len(different) <= 62 and 2 ** (len(different) - 1) <= n_resamples
    n_used = 2 ** (len(different) - 1) if exact else n_resamples
    with kernel_threads(n_jobs):
        n_extreme = int(count_extreme_sums(different, threshold, n_used, np.uint64(random_state), exact))
    return (n_extreme / n_used if exact else (n_extreme + 1) / (n_used + 1)), exact, n_used


def paired_t(differences: np.ndarray) -> tuple[float, float]:
    """Student's t of the differences and its two-sided p-value; 0 and 1 where nothing differs."""
    from scipy.special import stdtr

    n = len(differences)
    if not differences.any():
        return 0.0, 1.0
    if n < 2:
        return math.nan, math.nan
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    mean = float(differences.mean())
    statistic = mean / error if error > 0 else math.copysign(math.inf, mean)
    return statistic, float(2.0 * stdtr(n - 1, -abs(statistic)))


def _common_metric(a: Any, b: Any, metric: str | None) -> str | None:
    if isinstance(a, Evaluation) != isinstance(b, Evaluation):
        raise DataError("a and b must both be evaluations, or both arrays of figures.")
    if not isinstance(a, Evaluation):
        return metric
    if a.convention != b.convention:
        raise DataError(
            f"a was counted under {a.convention} and b under {b.convention}: evaluate both under one convention."
        )
    if len(a.query_ids) != len(b.query_ids) or not np.array_equal(a.query_ids, b.query_ids):
        raise DataError("a and b must be evaluations of the same queries, in the same order.")
    shared = [name for name in a.per_query if name in b.per_query]
    if metric is None and len(shared) == 1:
        return shared[0]
    if metric not in shared:
        got = "none was named" if metric is None else f"got {metric!r}"
        raise ParameterError(f"metric must be one that both evaluations have ({', '.join(shared)}); {got}.")
    return metric


def _values(run: Any, metric: str | None) -> np.ndarray:
    if isinstance(run, Evaluation):
        return run.per_query[str(metric)]
    return np.asarray(run, dtype=np.float64)
