"""Evaluate a ranker description over rows, in blocks that stay in cache.

The score of a document depends on that document alone (and on its query, where the normaliser does): the same bits come
out whether it is scored alone, in a batch, or on another number of threads.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwell.data.dataset import RankingDataset
from rankwell.kernels.threads import kernel_threads
from rankwell.scoring.description import BucketInputs, Dense, InputGroup, LinearInputs, RankerDescription

_BLOCK_ROWS = 4096


def evaluate_description(
    description: RankerDescription, dataset: RankingDataset, *, n_jobs: int | None = None
) -> np.ndarray:
    """Score every row of `dataset`, in the dataset's order.

    Returns
    -------
    float64 array (n_docs,)
    """
    features = description.normaliser.apply(dataset)
    scores = np.empty(dataset.n_docs)
    with kernel_threads(n_jobs):
        for start in range(0, dataset.n_docs, _BLOCK_ROWS):
            block = features[start : start + _BLOCK_ROWS]
            rows = block.toarray() if sparse.issparse(block) else block
            scores[start : start + _BLOCK_ROWS] = _score_rows(description, rows)
    return scores


def _score_rows(description: RankerDescription, rows: np.ndarray) -> np.ndarray:
    from rankwell.kernels.cpu.model_evaluation import dense_layer, sum_layer

    values = np.empty((len(rows), sum(len(group) for group in description.inputs)))
    place = 0
    for group in description.inputs:
        _fill_inputs(group, rows, values[:, place : place + len(group)])
        place += len(group)
    for layer in description.layers:
        if isinstance(layer, Dense):
            weights = np.ascontiguousarray(layer.weights, dtype=np.float64)
            values = dense_layer(values, weights, np.asarray(layer.bias, dtype=np.float64), layer.activation)
        else:
            values = sum_layer(values)
    return values[:, 0]


def _fill_inputs(group: InputGroup, rows: np.ndarray, out: np.ndarray) -> None:
    from rankwell.kernels.cpu.model_evaluation import bucket_inputs, linear_inputs

    if isinstance(group, LinearInputs):
        linear_inputs(rows, group.feature, group.scale, group.offset, group.missing, out)
    elif isinstance(group, BucketInputs):
        bucket_inputs(rows, group.feature, group.edge_ptr, group.edges, group.values, group.missing, out)
