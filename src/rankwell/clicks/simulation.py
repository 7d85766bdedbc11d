"""Simulated users, to see what a way of learning from clicks is worth where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwell.clicks.position_bias import PositionBias, exchanged_neighbours
from rankwell.clicks.use_log import Impression
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError


def simulate_clicks(
    dataset: RankingDataset,
    scores: np.ndarray,
    bias: PositionBias,
    *,
    n_impressions: int,
    n_shown: int | None = None,
    noise: float = 0.1,
    random_state: int = 0,
) -> Iterator[Impression]:
    """Impressions of users who follow the position-based model.

    A user sees a query's documents in the order of `scores`, with neighbours exchanged (`exchanged_neighbours`),
    examines position p with probability θ_p and clicks on an examined document with probability

        noise + (1 − noise)·(2^label − 1)/(2^largest − 1)

    Queries are "0", "1", ... by place in the dataset, documents are rows of it.

    Parameters
    ----------
    n_impressions : int
        Of all queries together; queries are drawn with equal probability.
    n_shown : int, optional
        How many results are shown; all by default.
    """
    if not dataset.has_labels:
        raise DataError("simulated users need labels: pass a dataset that has them.")
    rng = np.random.default_rng(random_state)
    gains = np.exp2(dataset.labels) - 1.0
    attraction = noise + (1.0 - noise) * gains / max(float(gains.max(initial=0.0)), 1e-300)
    for query in rng.integers(dataset.n_queries, size=n_impressions).tolist():
        start, end = dataset.query_ptr[query : query + 2].tolist()
        best = start + np.argsort(-scores[start:end], kind="stable")[:n_shown]
        shown = best[exchanged_neighbours(len(best), rng)]
        examined = rng.random(len(shown)) < bias.at(np.arange(1, len(shown) + 1))
        clicked = examined & (rng.random(len(shown)) < attraction[shown])
        names = [str(row) for row in shown.tolist()]
        yield Impression(str(query), tuple(names), frozenset(names[place] for place in np.flatnonzero(clicked)))
