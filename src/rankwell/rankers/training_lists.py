"""The lists that a network is trained on: how much each counts."""

from __future__ import annotations

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter


def list_weights(dataset: RankingDataset) -> np.ndarray:
    """The weight of every query, float64 (n_queries,).

    A weight of documents is the query's if all its documents have the same one; a loss over a list has no place for
    others.
    """
    weights = np.ones(dataset.n_queries) if dataset.query_weights is None else dataset.query_weights.astype(np.float64)
    if dataset.document_weights is None:
        return weights
    for query, rows in enumerate(dataset.queries()):
        own = dataset.document_weights[rows]
        if len(own) == 0:
            continue
        if (own != own[0]).any():
            raise DataError(
                Parameter("sample_weight"),
                f" differs within query {dataset.query_ids[query]}: a network is trained on whole lists. Pass one "
                "weight per query, or train a RankBoost or RankSVM, which weigh documents.",
            )
        weights[query] *= own[0]
    return weights
