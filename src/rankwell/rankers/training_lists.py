"""The lists that a network is trained on: whether there is something to learn from, and how much each counts."""

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


def check_lists(dataset: RankingDataset, weights: np.ndarray) -> None:
    """Refuse data without a query, of weight above 0, whose labels and whose features differ."""
    labels_differ = False
    for query, rows in enumerate(dataset.queries()):
        labels = dataset.labels[rows]
        if weights[query] == 0 or len(labels) < 2 or (labels == labels[0]).all():
            continue
        labels_differ = True
        if _varies(dataset.features[rows]):
            return
    if not labels_differ:
        raise DataError(
            "there are no pairs to learn from: within every query all labels are equal, or the weights are 0. "
            "Check that y matches qid (or group)."
        )
    raise DataError(
        "there is nothing to learn from: no feature varies within a query whose labels differ, so that every ranker "
        "would score all of its documents alike. Check the features and ",
        Parameter("normalize"),
        ".",
    )


def _varies(features: np.ndarray) -> bool:
    """Whether any feature has two values; missing values count as 0, as in training."""
    values = features.toarray() if hasattr(features, "toarray") else features
    values = np.nan_to_num(values, nan=0.0)
    return bool((values != values[0]).any())
