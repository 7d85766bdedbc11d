"""Judgments and pairs from clicks, corrected for position bias.

Under the position-based model a document of a query that was shown n_p times at position p is examined about
Σ_p θ_p·n_p times and clicked γ times as often: `rankwell.clicks.attraction` estimates its attraction γ. Without the
correction (θ = 1), what was shown further down seems worse than it is, and a ranker learns the order that was shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from rankwell.clicks.attraction import Prior, attraction
from rankwell.clicks.click_counts import ClickCounts
from rankwell.clicks.position_bias import PositionBias
from rankwell.clicks.use_log import Impression
from rankwell.errors import DataError, ParameterError
from rankwell.parameters import is_number


def click_judgments(
    counts: ClickCounts,
    bias: PositionBias,
    *,
    grades: int | None = 3,
    prior: Prior = "log",
    min_examinations: float = 0.0,
) -> dict[str, dict[str, float]]:
    """Judgments of each document of each query, which `qrels_text` writes and rankers learn from.

    Parameters
    ----------
    grades : int, optional
        Attraction is rounded to this many grades, 0 to grades − 1: differences that are noise give no pairs to learn
        from. The highest grade is that of the attraction which 90 % of all clicks do not exceed. None keeps γ itself.
    prior : float or "log"
        What is known about a document before its own clicks, which decides about one that was hardly examined: the
        attractions of the log's documents, estimated; or the mean of the log, as so many examinations. With few
        documents, say below a hundred, there is no distribution to estimate: pass a number.
    min_examinations : float
        Documents with fewer expected examinations are left out.
    """
    if prior != "log" and not (is_number(prior) and prior >= 0):
        raise ParameterError(f"must be 'log', or a number of 0 or more, got {prior!r}.", parameter="prior")
    if grades is not None and grades < 2:
        raise ParameterError(f"must be 2 or more, or None, got {grades}.", parameter="grades")
    clicks = counts.by_item(counts.clicked)
    if clicks.sum() == 0:
        raise DataError("the log contains no click.")
    examined = counts.by_item(bias.at(counts.position) * counts.shown)
    values = attraction(clicks, examined, prior)
    if grades is not None:
        values = np.rint((grades - 1) * np.minimum(values / _high_attraction(values, clicks), 1.0))
    judgments: dict[str, dict[str, float]] = {}
    for place in np.flatnonzero(examined >= min_examinations).tolist():
        own = judgments.setdefault(counts.query_ids[place], {})
        own[counts.document_ids[place]] = float(values[place])
    return judgments


def _high_attraction(values: np.ndarray, clicks: np.ndarray) -> float:
    """The attraction that 90 % of all clicks do not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.searchsorted(np.cumsum(clicks[order]), 0.9 * clicks.sum())
    return float(values[order[min(reached, len(order) - 1)]])


def click_pairs(
    impressions: Iterable[Impression], bias: PositionBias, rows: Mapping[tuple[str, str], int]
) -> tuple[np.ndarray, np.ndarray]:
    """Preferences of clicked documents over those shown and not clicked, for `RankBoost.fit_pairs`.

    A click at position p counts 1/θ_p: as often as it would have been seen if every document were examined (Joachims,
    Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017).

    Parameters
    ----------
    rows : mapping of (query's id, document's id) to a row of the features; documents without one are left out

    Returns
    -------
    pairs : int64 (n_pairs, 2), rows: the clicked document, then the other
    weights : float64 (n_pairs,)
    """
    weights: Counter[tuple[int, int]] = Counter()
    for impression in impressions:
        own = [rows.get((impression.query_id, document)) for document in impression.document_ids]
        clicked = [document in impression.clicked for document in impression.document_ids]
        examination = bias.at(np.arange(1, len(own) + 1))
        others = [row for row, is_clicked in zip(own, clicked, strict=True) if row is not None and not is_clicked]
        for row, is_clicked, theta in zip(own, clicked, examination.tolist(), strict=True):
            if row is not None and is_clicked:
                for other in others:
                    weights[row, other] += 1.0 / theta
    pairs = np.array(sorted(weights), dtype=np.int64).reshape(-1, 2)
    return pairs, np.array([weights[first, second] for first, second in pairs.tolist()], dtype=np.float64)
