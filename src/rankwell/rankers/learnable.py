"""Whether training data has something to learn from: the same question, and the same answer, for every ranker."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from rankwell.data.agreement import ALONE, Agreement
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter
from rankwell.scoring.description import default_feature_names

logger = logging.getLogger(__name__)

# Pairs of a list that are compared at a time.
_PAIRS = 65_536
_FIRST_ROWS = 64
_MOST_NAMED = 5

# What a query that can be learnt from has: nothing, labels that differ, features that differ too.
_NOTHING, _LABELS, _FEATURES = range(3)


def check_learnable(dataset: RankingDataset, *, missing_is_zero: bool, agreement: Agreement = ALONE) -> None:
    """Refuse data without a query in which documents, of weight above 0, differ by label and by any feature.

    missing_is_zero : whether the ranker takes missing values for 0
    """
    found = int(agreement.largest(np.array([_learnable(dataset, missing_is_zero)]))[0])
    if found == _NOTHING:
        raise DataError(
            "there are no pairs to learn from: within every query all labels are equal, or the weights are 0. "
            "Check that y matches qid (or group)."
        )
    if found == _LABELS:
        raise _alike("a query whose labels differ")


def warn_of_empty_features(dataset: RankingDataset) -> None:
    """Log the features that no row has a value of, if the data is in memory: their source fits nothing."""
    if dataset.is_sparse or dataset.is_on_disk or dataset.n_docs == 0:
        return
    # A few rows rule out nearly all features.
    suspects = np.flatnonzero(np.isnan(dataset.features[:_FIRST_ROWS]).all(axis=0)).tolist()
    empty = [column for column in suspects if np.isnan(dataset.features[:, column]).all()]
    if empty:
        names = dataset.feature_names or default_feature_names(dataset.n_features)
        shown = ", ".join(names[column] for column in empty[:_MOST_NAMED])
        logger.warning(
            "%s: no row of the training data has a value. Check where it comes from, or leave it out.",
            shown if len(empty) <= _MOST_NAMED else f"{shown}, ... ({len(empty)} features)",
        )


def _learnable(dataset: RankingDataset, missing_is_zero: bool) -> int:
    found = _NOTHING
    for query, rows in enumerate(dataset.queries()):
        if dataset.query_weights is not None and dataset.query_weights[query] == 0:
            continue
        counted = np.arange(rows.start, rows.stop)
        if dataset.document_weights is not None:
            counted = counted[dataset.document_weights[rows] > 0]
        labels = dataset.labels[counted]
        if len(labels) < 2 or (labels == labels[0]).all():
            continue
        found = _LABELS
        values = _values(dataset.features[counted], missing_is_zero)
        if _differ(values, values[:1]):
            return _FEATURES
    return found


def check_learnable_pairs(features: Any, higher: np.ndarray, lower: np.ndarray, *, missing_is_zero: bool) -> None:
    """Refuse a list of pairs of rows that are alike in every feature."""
    for start in range(0, len(higher), _PAIRS):
        part = slice(start, start + _PAIRS)
        if _differ(_values(features[higher[part]], missing_is_zero), _values(features[lower[part]], missing_is_zero)):
            return
    raise _alike("any of the pairs")


def _values(features: Any, missing_is_zero: bool) -> np.ndarray:
    values: np.ndarray = features.toarray() if hasattr(features, "toarray") else features
    return np.nan_to_num(values, nan=0.0) if missing_is_zero else values


def _differ(these: np.ndarray, those: np.ndarray) -> bool:
    """Whether any number differs from its partner; two missing values do not."""
    return bool(((these != those) & ~(np.isnan(these) & np.isnan(those))).any())


def _alike(where: str) -> DataError:
    return DataError(
        f"there is nothing to learn from: no feature varies within {where}, so that every ranker would score all of "
        "its documents alike. Check the features and ",
        Parameter("normalize"),
        ".",
    )
