"""A dataset as boosted trees read it: bins in slabs, gains of labels, weights of documents."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from rankwell.data.agreement import ALONE, Agreement
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import row_blocks
from rankwell.kernels.threads import kernel_threads
from rankwell.kernels.trees.columns import Columns, arrange_columns
from rankwell.kernels.trees.contract import MOST_DOCS
from rankwell.kernels.trees.losses import JudgedQueries
from rankwell.kernels.trees.slabs import fill_slabs
from rankwell.rankers.tree_bins import TreeBins

logger = logging.getLogger("rankwell")

# Losses for which a document is relevant or not.
RELEVANCE_LOSSES = ("map", "mrr")
GAINS = ("auto", "exponential", "linear")
# 2^label of a larger one would leave no digits for the differences of the others.
LARGEST_EXPONENTIAL_LABEL = 30.0
_LARGEST_SINGLE = float(np.finfo(np.float32).max)
# Gradients are below 10 or so before they are weighed: weighed by these, their sums have room in float32, and so have
# gradients of a millionth.
_LEAST_LARGEST_WEIGHT, _LARGEST_WEIGHT = 1e-30, 1e30
# Bins that are made at a time, as a byte each, on the way to their slabs.
_BINS_AT_A_TIME = 1 << 22
_LEAST_ROWS_AT_A_TIME = 1024


def binned_slabs(
    dataset: RankingDataset, bins: TreeBins, n_jobs: int | None, agreement: Agreement = ALONE
) -> tuple[np.ndarray, Columns]:
    """The slabs of the dataset's documents, and their columns; no second copy of all bins is ever made."""
    if dataset.n_docs > MOST_DOCS:
        raise DataError(f"boosted trees take at most {MOST_DOCS} rows, got {dataset.n_docs}.")
    has_missing = agreement.largest(_has_missing(dataset).astype(np.int64)) > 0
    columns = arrange_columns(bins.n_value_bins, has_missing)

    def parts() -> Iterator[tuple[int, np.ndarray]]:
        if dataset.is_on_disk:
            for block in row_blocks(dataset.features):
                yield block.start, bins.transform(RankingDataset(np.array(dataset.features[block])))
            return
        n_rows = max(_LEAST_ROWS_AT_A_TIME, _BINS_AT_A_TIME // max(dataset.n_features, 1))
        for first in range(0, dataset.n_docs, n_rows):
            rows = np.arange(first, min(first + n_rows, dataset.n_docs))
            yield first, bins.transform(dataset, rows)

    with kernel_threads(n_jobs):
        return fill_slabs(columns, dataset.n_docs, parts(), beside=dataset.features), columns


def _has_missing(dataset: RankingDataset) -> np.ndarray:
    """Which features have missing values, bool (n_features,)."""
    if not dataset.is_sparse:
        has_missing = np.zeros(dataset.n_features, bool)
        for rows in row_blocks(dataset.features):
            # The minimum of a column is NaN if one of its values is.
            has_missing |= np.isnan(dataset.features[rows].min(axis=0, initial=np.inf))
        return has_missing
    has_missing = np.zeros(dataset.n_features, bool)
    has_missing[dataset.features.indices[np.isnan(dataset.features.data)]] = True
    return has_missing


def gains_of(labels: np.ndarray, gain: str, agreement: Agreement = ALONE, *, from_lowest: bool = False) -> np.ndarray:
    """The gain of each label, float64: 2^label − 1 or the label itself.

    from_lowest : whether labels count from the lowest one, as where what is above it is relevant; otherwise they count
        from 0, or from the lowest if that is below 0
    """
    lowest = lowest_label(labels, agreement)
    with np.errstate(over="ignore"):
        labels = labels - (lowest if from_lowest else min(lowest, 0.0))
    largest = float(agreement.largest(np.array([labels.max(initial=0.0)]))[0])
    if not np.isfinite(largest):
        raise DataError(f"labels begin at {lowest:g} and are further apart than a number can say. Divide them.")
    if gain == "exponential" and largest > LARGEST_EXPONENTIAL_LABEL:
        raise DataError(
            f"labels reach {largest:g}, and 2^label is too large for a gain above {LARGEST_EXPONENTIAL_LABEL:g}. "
            "Use gain='linear', or labels from 0 to 4 or so."
        )
    if gain == "auto" and largest > LARGEST_EXPONENTIAL_LABEL:
        logger.info("labels reach %g: gains are the labels themselves (gain='linear').", largest)
        gain = "linear"
    return labels.astype(np.float64) if gain == "linear" else 2.0**labels - 1.0


def lowest_label(labels: np.ndarray, agreement: Agreement = ALONE) -> float:
    return float(agreement.smallest(np.array([labels.min(initial=np.inf)]))[0])


def check_pairs(loss: str, labels: np.ndarray, queries: JudgedQueries, agreement: Agreement = ALONE) -> None:
    """Refuse data of which the loss tells no two documents of a query apart."""
    if float(agreement.largest(np.array([queries.inverse.max(initial=0.0)]))[0]) > 0.0:
        return
    by = (
        f"whether a label is above the lowest, {lowest_label(labels, agreement):g}. Use another loss"
        if loss in RELEVANCE_LOSSES
        else "their gains in single precision. Use labels that differ by more"
    )
    raise DataError(
        f"there are no pairs to learn from: loss={loss!r} tells a query's documents apart by {by}, or check that y "
        "matches qid (or group)."
    )


def check_single_precision(loss: str, gains: np.ndarray, agreement: Agreement = ALONE) -> None:
    """Refuse gains that a loss with random gains, which cannot be scaled, has no numbers for."""
    largest = float(agreement.largest(np.array([gains.max(initial=0.0)]))[0])
    if loss == "xendcg" and largest > _LARGEST_SINGLE:
        raise DataError(
            f"labels give gains up to {largest:g}, and loss='xendcg' takes {_LARGEST_SINGLE:g} at most. Divide the "
            "labels, or use loss='lambdarank'."
        )


def document_weights(dataset: RankingDataset, agreement: Agreement = ALONE) -> np.ndarray | None:
    """The weight of each document times that of its query; None if all are 1."""
    weights = dataset.document_weights
    if dataset.query_weights is not None:
        of_queries = np.repeat(dataset.query_weights, dataset.query_sizes)
        weights = of_queries if weights is None else of_queries * weights
    largest = float(agreement.largest(np.array([1.0 if weights is None else weights.max(initial=0.0)]))[0])
    if largest > 0.0 and not _LEAST_LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise DataError(
            f"the largest weight of a row must be from {_LEAST_LARGEST_WEIGHT:.0e} to {_LARGEST_WEIGHT:.0e}, so that "
            f"gradients have room in single precision, got {largest:g}. Multiply all weights by one number that brings "
            "them near 1."
        )
    return weights
