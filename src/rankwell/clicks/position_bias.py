"""Position bias: how much less often users look at a result the lower it is, estimated from a log.

The position-based model: a document of a query is clicked at position p with probability θ_p·γ, where θ_p, the
*examination*, depends on the position alone and γ on the document and query alone. Neither is seen, but where the same
document of a query was shown at two positions, γ is the same at both and the clicks differ by θ alone. `estimate`
uses all such pairs of positions (Agarwal et al., "Estimating position bias without intrusive interventions", WSDM
2019, section 5.3): for positions k ≠ l, the mean click rates at k and at l of the documents shown at both follow
θ_k·r and θ_l·r, with one r for the pair. θ and r together maximise the likelihood of all these rates.

Only ratios of θ can be seen, so θ of the first position is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.clicks.click_counts import ClickCounts
from rankwell.errors import DataError, Parameter, ParameterError

_MOST_ITERATIONS = 100_000
_CONVERGED = 1e-9


@dataclass(frozen=True, eq=False)
class PositionBias:
    """The examination of each position.

    examination : float64 (n_positions,)
        θ, above 0; that of position 1 is 1, and positions after the last have the last one's.
    seen : bool (n_positions,)
        Whether it was estimated; else it is taken from the curve p^-η through the others.
    """

    examination: np.ndarray
    seen: np.ndarray

    @classmethod
    def power(cls, eta: float, n_positions: int) -> PositionBias:
        """Examination p^-η, if it is known or to be assumed: η = 1 is a usual guess, η = 0 is no bias."""
        if not np.isfinite(eta) or eta < 0:
            raise ParameterError(f"must be a number from 0 on, got {eta}.", parameter="eta")
        positions = np.arange(1, n_positions + 1, dtype=np.float64)
        return cls(positions**-eta, np.zeros(n_positions, dtype=bool))

    def at(self, position: np.ndarray) -> np.ndarray:
        """The examination of these positions (1 is the first)."""
        return np.asarray(self.examination[np.minimum(position, len(self.examination)) - 1])


def estimate_position_bias(counts: ClickCounts) -> PositionBias:
    """The examination of each position of a log.

    Raises
    ------
    DataError
        If no document was shown at several positions: then nothing tells position and relevance apart.
    """
    rates = _paired_rates(counts)
    seen = _reachable(rates, counts.n_positions)
    if seen.sum() < 2:
        raise DataError(
            "position bias cannot be estimated: no document was clicked that was shown for a query at the first "
            "position and at another. Log results of more than one ranker, or results whose neighbours were exchanged "
            "at random before they were shown (`rankwell serve --use-log FILE --exchange`, or "
            "`rankwell.clicks.exchanged_neighbours`); or take a bias that you "
            "assume, ",
            Parameter("eta", 1),
            ": position p is examined 1/p times as often as the first (`PositionBias.power`).",
        )
    theta = _most_likely(rates, counts.n_positions)
    theta = np.where(seen, theta, 1.0)
    theta /= theta[0]
    positions = np.arange(1, len(theta) + 1, dtype=np.float64)
    others = seen & (positions > 1)
    logs = np.log(positions[others])
    eta = -float((logs * np.log(theta[others])).sum() / (logs * logs).sum())
    return PositionBias(np.where(seen, theta, positions ** -max(eta, 0.0)), seen)


def exchanged_neighbours(n_results: int, rng: np.random.Generator) -> np.ndarray:
    """An order in which to show results so that position bias can be estimated: int64 (n_results,), places from 0.

    Neighbours are exchanged at random, no result moves by more than one place (FairPairs: Radlinski and Joachims, AAAI
    2006). Whether places 1 and 2, 3 and 4, ... or 2 and 3, 4 and 5, ... are the neighbours is random too, so that all
    positions can be compared with each other.
    """
    order = np.arange(n_results)
    first = np.arange(int(rng.integers(2)), n_results - 1, 2)
    first = first[rng.random(len(first)) < 0.5]
    order[first], order[first + 1] = first + 1, first
    return order


@dataclass(frozen=True, eq=False)
class _PairedRates:
    """Click rates at position `here` of documents also shown at `there`, both from 0: sums over these documents."""

    pair: np.ndarray
    here: np.ndarray
    there: np.ndarray
    clicked: np.ndarray
    skipped: np.ndarray


def _paired_rates(counts: ClickCounts) -> _PairedRates:
    """Every document counts alike at a position, however often it was shown there."""
    n = counts.n_positions
    rate = counts.clicked / counts.shown
    sizes = np.bincount(counts.item, minlength=counts.n_items)
    starts = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    clicked, skipped = np.zeros((2, n, n))
    # A document shown at m positions gives m·(m - 1) ordered pairs of its counts: the count `offset` places further on.
    for offset in range(1, int(sizes.max(initial=0))):
        here = np.flatnonzero(sizes[counts.item] > offset)
        own = counts.item[here]
        there = starts[own] + (here - starts[own] + offset) % sizes[own]
        cells = counts.position[here] - 1, counts.position[there] - 1
        np.add.at(clicked, cells, rate[here])
        np.add.at(skipped, cells, 1.0 - rate[here])
    # Positions without any click at one side of a pair say nothing about their ratio.
    both = (clicked > 0) & (clicked.T > 0)
    here, there = np.nonzero(both)
    pair = np.minimum(here, there) * n + np.maximum(here, there)
    return _PairedRates(np.unique(pair, return_inverse=True)[1], here, there, clicked[both], skipped[both])


def _reachable(rates: _PairedRates, n_positions: int) -> np.ndarray:
    """The positions that pairs of positions connect with the first one."""
    seen = np.zeros(n_positions, dtype=bool)
    seen[0] = True
    while True:
        before = int(seen.sum())
        seen[rates.there[seen[rates.here]]] = True
        if int(seen.sum()) == before:
            return seen


def _most_likely(rates: _PairedRates, n_positions: int) -> np.ndarray:
    """θ, up to a factor, by expectation maximisation: examined and attractive are the hidden events of each click."""
    n_pairs = int(rates.pair.max()) + 1
    shown = rates.clicked + rates.skipped
    shown_at = np.bincount(rates.here, shown, n_positions)
    shown_in = np.bincount(rates.pair, shown, n_pairs)
    theta, attraction = np.full(n_positions, 0.5), np.full(n_pairs, 0.5)
    for _ in range(_MOST_ITERATIONS):
        examined, attractive = theta[rates.here], attraction[rates.pair]
        unclicked = rates.skipped / np.maximum(1.0 - examined * attractive, 1e-12)
        seen_anyway = rates.clicked + unclicked * examined * (1.0 - attractive)
        liked_anyway = rates.clicked + unclicked * attractive * (1.0 - examined)
        updated = np.bincount(rates.here, seen_anyway, n_positions) / np.maximum(shown_at, 1e-300)
        attraction = np.bincount(rates.pair, liked_anyway, n_pairs) / shown_in
        # The likelihood depends on products of θ and attraction alone: the largest θ stays below 1.
        change = float(np.abs(updated / max(updated[0], 1e-300) - theta / max(theta[0], 1e-300)).max())
        theta = updated
        if change < _CONVERGED:
            break
    return theta
