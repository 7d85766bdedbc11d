"""Widening: LETOR text leaves out zeros, so a file whose last features are 0 in every row seems narrower than it is."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwell.data.dataset import RankingDataset


def widened(dataset: RankingDataset, n_features: int) -> RankingDataset:
    """The same data with its absent last features as 0, or `dataset` itself where nothing is absent.

    Features with names are never added to: there an absent one is a column that was forgotten, not zeros.
    """
    absent = n_features - dataset.n_features
    if absent <= 0 or dataset.feature_names is not None:
        return dataset
    shape = (dataset.n_docs, absent)
    if dataset.is_sparse:
        zeros = sparse.csr_matrix(shape, dtype=np.float32)
        return dataset.replace(features=sparse.hstack([dataset.features, zeros], format="csr"))
    return dataset.replace(features=np.hstack([dataset.features, np.zeros(shape, dtype=np.float32)]))
