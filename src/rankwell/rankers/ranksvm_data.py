"""RankSVM's data as the kernels take it, and the loss on its device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.threads import kernel_threads
from rankwell.scoring.normaliser import Normaliser


def pair_data(dataset: RankingDataset, normaliser: Normaliser, n_jobs: int | None = None) -> PairData:
    """The dataset as a pair loss takes it.

    Under `standard` the dataset comes as it is, and the division by the standard deviation goes into `column_scale`;
    under any other normaliser it comes normalised.
    """
    from rankwell.kernels.pair_loss.cpu.preparation import label_levels

    levels, n_levels = np.empty(dataset.n_docs, dtype=np.int32), np.empty(dataset.n_queries, dtype=np.int32)
    with kernel_threads(n_jobs):
        label_levels(dataset.labels, dataset.query_ptr, levels, n_levels)
    return PairData(
        features=trainable_features(dataset.features, normaliser, n_jobs),
        levels=levels,
        n_levels=n_levels,
        query_ptr=dataset.query_ptr,
        query_weights=dataset.query_weights,
        document_weights=dataset.document_weights,
        column_scale=column_scale(normaliser),
    )


def column_scale(normaliser: Normaliser) -> np.ndarray | None:
    """What each feature counts times, where the features themselves stay as they are."""
    return 1.0 / normaliser.arrays["scale"] if normaliser.name == "standard" else None


def trainable_features(features: Any, normaliser: Normaliser, n_jobs: int | None = None) -> Any:
    """Features without NaN: the same object where there is none, else a copy.

    A missing value counts as 0 after normalisation, which under `standard` is the mean before it.
    """
    from rankwell.kernels.pair_loss.cpu.preparation import has_missing

    values = features.data if sparse.issparse(features) else features.reshape(-1)
    with kernel_threads(n_jobs):
        if not has_missing(values):
            return features
    filled = features.copy()
    if sparse.issparse(filled):
        np.nan_to_num(filled.data, copy=False, nan=0.0)
    else:
        value = normaliser.arrays["mean"] if normaliser.name == "standard" else np.zeros(1)
        np.copyto(filled, value.astype(np.float32), where=np.isnan(features))
    return filled


def count_pairs(data: PairData, n_jobs: int | None = None) -> int:
    """Pairs of one query with different labels and a weight above 0, or an error where there are none."""
    from rankwell.kernels.pair_loss.cpu import preparation as ranksvm_preparation

    none = np.empty(0)
    with kernel_threads(n_jobs):
        n_pairs = ranksvm_preparation.count_pairs(
            data.levels,
            data.n_levels,
            data.query_ptr,
            none if data.query_weights is None else data.query_weights,
            none if data.document_weights is None else data.document_weights,
        )
    if n_pairs == 0:
        raise DataError(
            "there is nothing to learn from: in every query all documents (of weight above 0) have the same label. "
            "RankSVM learns from pairs of documents of one query with different labels."
        )
    return int(n_pairs)


class LinearScores:
    """The scores of a dataset's documents under weights of normalised features.

    Parameters
    ----------
    dataset : RankingDataset
        As it is under the normaliser `standard`, else normalised.
    """

    def __init__(self, dataset: RankingDataset, normaliser: Normaliser, n_jobs: int | None) -> None:
        self._features = trainable_features(dataset.features, normaliser, n_jobs)
        self._scale = column_scale(normaliser)
        self._n_jobs = n_jobs

    def under(self, weights: np.ndarray) -> np.ndarray:
        """The scores, float64 (n_docs,), under weights, float64 (n_features,)."""
        from rankwell.kernels.pair_loss.cpu.loss import score_rows

        return score_rows(self._features, weights if self._scale is None else weights * self._scale, self._n_jobs)
