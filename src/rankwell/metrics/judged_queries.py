"""JudgedQueries: labels and which rows belong to which query, the parts of a data set that metrics need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.data.grouping import group_by_qid, group_by_sizes
from rankwell.errors import DataError

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset


@dataclass(frozen=True)
class JudgedQueries:
    """Labels of grouped queries.

    Attributes
    ----------
    labels : float64 array (n_docs,)
    query_ptr : int64 array (n_queries + 1,)
    query_ids : array (n_queries,)
    query_weights : float64 array (n_queries,) or None
    doc_idx : int64 array (n_docs,) or None
        The user's row of each row here; None if the order is the same.
    is_missed : bool array (n_docs,) or None
        Documents that were judged but are in no ranking (`missed_documents`).
    """

    labels: np.ndarray
    query_ptr: np.ndarray
    query_ids: np.ndarray
    query_weights: np.ndarray | None = None
    doc_idx: np.ndarray | None = None
    is_missed: np.ndarray | None = None

    @classmethod
    def from_dataset(cls, dataset: RankingDataset) -> JudgedQueries:
        if not dataset.has_labels:
            raise DataError("the data set has no labels, so nothing can be evaluated. Pass y, or read judged data.")
        return cls(dataset.labels, dataset.query_ptr, dataset.query_ids, dataset.query_weights, dataset.doc_idx)

    @classmethod
    def from_arrays(
        cls, labels: Any, *, qid: Any = None, group: Any = None, query_ptr: Any = None, query_weights: Any = None
    ) -> JudgedQueries:
        """From labels and one of `qid` (n_docs,), `group` sizes (n_queries,), or `query_ptr` (n_queries + 1,).

        Without any of them all rows are one query. Rows of one `qid` need not be neighbours.
        """
        numbers = as_labels(labels)
        given = [
            name for name, value in (("qid", qid), ("group", group), ("query_ptr", query_ptr)) if value is not None
        ]
        if len(given) > 1:
            raise DataError(f"{' and '.join(given)} all say which rows belong to a query: pass one of them.")
        doc_idx = None
        if qid is not None:
            pointers, query_ids, doc_idx = group_by_qid(qid, len(numbers))
        elif query_ptr is not None:
            pointers = as_query_ptr(query_ptr, len(numbers))
            query_ids = np.arange(len(pointers) - 1)
        else:
            pointers, query_ids = group_by_sizes(group, len(numbers))
        weights = None if query_weights is None else as_query_weights(query_weights, len(pointers) - 1)
        return cls(numbers if doc_idx is None else numbers[doc_idx], pointers, query_ids, weights, doc_idx)

    @property
    def n_docs(self) -> int:
        return len(self.labels)

    @property
    def n_queries(self) -> int:
        return len(self.query_ptr) - 1

    def to_own_order(self, values: np.ndarray) -> np.ndarray:
        """One value per row, from the user's order to the order here."""
        return values if self.doc_idx is None else values[self.doc_idx]

    def user_row(self, row: int) -> int:
        """The user's row of a row here."""
        return row if self.doc_idx is None else int(self.doc_idx[row])


def as_labels(labels: Any) -> np.ndarray:
    """Labels as float64 (n_docs,), or an error that names the first invalid one."""
    try:
        numbers = np.ascontiguousarray(labels, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise DataError(f"labels must be numbers, one per document: {cause}.") from cause
    if numbers.ndim != 1:
        raise DataError(f"labels must have one dimension, got shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"labels must be finite: row {row} is {numbers[row]}. Leave out rows without a judgment.")
    return numbers


def as_scores(scores: Any, n_docs: int) -> np.ndarray:
    """Scores as float64 (n_docs,), or an error that names the first invalid one."""
    try:
        numbers = np.ascontiguousarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise DataError(f"scores must be numbers, one per document: {cause}.") from cause
    if numbers.shape != (n_docs,):
        raise DataError(f"scores must be one number per document: {n_docs} documents, got shape {numbers.shape}.")
    missing = np.isnan(numbers)
    if missing.any():
        raise DataError(
            f"scores must not be NaN: row {int(missing.argmax())} is, {int(missing.sum())} in all. A document without "
            "a score cannot be ranked: give it one, or leave it out of both labels and scores."
        )
    return numbers


def as_query_ptr(query_ptr: Any, n_docs: int) -> np.ndarray:
    """query_ptr as int64 (n_queries + 1,), or an error that says what is wrong with it."""
    pointers = np.asarray(query_ptr)
    if pointers.ndim != 1 or len(pointers) == 0 or not np.issubdtype(pointers.dtype, np.integer):
        raise DataError(f"query_ptr must be whole numbers, got {pointers.dtype} of shape {pointers.shape}.")
    if pointers[0] != 0 or pointers[-1] != n_docs or (np.diff(pointers) < 0).any():
        raise DataError(
            f"query_ptr must rise from 0 to the number of documents, {n_docs}: it goes from {pointers[0]} to "
            f"{pointers[-1]}. Pass the start of each query and, last, the end of the last one."
        )
    return np.ascontiguousarray(pointers, dtype=np.int64)


def as_query_weights(query_weights: Any, n_queries: int) -> np.ndarray:
    """Query weights as float64 (n_queries,), or an error that names the first invalid one."""
    weights = np.ascontiguousarray(query_weights, dtype=np.float64)
    if weights.shape != (n_queries,):
        raise DataError(f"query_weights must be one number per query: {n_queries} queries, got shape {weights.shape}.")
    allowed = np.isfinite(weights) & (weights >= 0)
    if not allowed.all():
        query = int((~allowed).argmax())
        raise DataError(f"query_weights must be finite and not negative: query {query} has {weights[query]}.")
    return weights
