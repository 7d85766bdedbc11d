"""RankSVM's data in the form that the kernels read, and the loss on its device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankwell.data.dataset import RankingDataset
from rankwell.kernels.disk_arrays import give_back, row_blocks, zeros_beside
from rankwell.kernels.pair_loss.contract import PairData
from rankwell.kernels.threads import kernel_threads
from rankwell.scoring.normaliser import Normaliser


def pair_data(dataset: RankingDataset, normaliser: Normaliser, n_jobs: int | None = None) -> PairData:
    """The dataset in the form that a pair loss reads.

    Under `standard` the dataset is passed as it is, and the division by the standard deviation goes into
    `column_scale`; under any other normaliser it is passed normalised.
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
    """The factor of each feature, if the features themselves stay as they are."""
    return 1.0 / normaliser.arrays["scale"] if normaliser.name == "standard" else None


def trainable_features(features: Any, normaliser: Normaliser, n_jobs: int | None = None) -> Any:
    """Features without NaN: the same object if there are none, otherwise a copy.

    A missing value counts as 0 after normalisation, which under `standard` is the mean before it.
    """
    from rankwell.kernels.pair_loss.cpu.preparation import has_missing

    values = features.data if sparse.issparse(features) else features
    with kernel_threads(n_jobs):
        if not any(has_missing(values[rows].reshape(-1)) for rows in row_blocks(values)):
            return features
    if sparse.issparse(features):
        filled = features.copy()
        np.nan_to_num(filled.data, copy=False, nan=0.0)
        return filled
    value = normaliser.arrays["mean"] if normaliser.name == "standard" else np.zeros(1)
    filled = zeros_beside(features, features.shape, np.float32)
    for rows in row_blocks(features):
        filled[rows] = features[rows]
        np.copyto(filled[rows], value.astype(np.float32), where=np.isnan(features[rows]))
        give_back(filled, rows)
    return filled


def count_pairs(data: PairData, n_jobs: int | None = None) -> int:
    """Pairs of one query with different labels and a weight above 0."""
    from rankwell.kernels.pair_loss.cpu import preparation as ranksvm_preparation

    none = np.empty(0)
    with kernel_threads(n_jobs):
        return int(
            ranksvm_preparation.count_pairs(
                data.levels,
                data.n_levels,
                data.query_ptr,
                none if data.query_weights is None else data.query_weights,
                none if data.document_weights is None else data.document_weights,
            )
        )


class LinearScores:
    """The scores of a dataset's documents under weights of normalised features.

    Parameters
    ----------
    dataset : RankingDataset
        As it is under the normaliser `standard`, otherwise normalised.
    """

    def __init__(self, dataset: RankingDataset, normaliser: Normaliser, n_jobs: int | None) -> None:
        self._features = trainable_features(dataset.features, normaliser, n_jobs)
        self._scale = column_scale(normaliser)
        self._n_jobs = n_jobs

    def under(self, weights: np.ndarray) -> np.ndarray:
        """The scores, float64 (n_docs,), under weights, float64 (n_features,)."""
        from rankwell.kernels.pair_loss.cpu.loss import score_rows

        return score_rows(self._features, weights if self._scale is None else weights * self._scale, self._n_jobs)
