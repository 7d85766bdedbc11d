"""RankingDataset: judged queries, checked once, as flat arrays.

Vocabulary. Queries are ragged: query q owns rows ``query_ptr[q]:query_ptr[q + 1]``. `doc_idx` is a row of the user's
data; rows here may stand in another order, because a query's rows are brought together.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rankwell.data.comments import RowComments
from rankwell.data.frames import columns_of_frame, is_frame
from rankwell.data.grouping import group_by_qid, group_by_sizes
from rankwell.errors import DataError


class RankingDataset:
    """Judged queries: features, labels and which rows belong to which query.

    Parameters
    ----------
    X : array, SciPy sparse matrix, pandas or Polars frame, or Arrow table of shape (n_docs, n_features)
        Kept as float32: dense in C order, or CSR if it came sparse. NaN is a missing value and stays one; infinities
        are refused. No copy is made of a float32 C-ordered array whose rows are already grouped.
    y : array of shape (n_docs,)
        Labels: any finite real numbers, the larger the better. May be None where there is nothing to learn from.
    qid : array of shape (n_docs,), optional
        The query of each row, of any kind (int, str, ...). Rows of one query need not be neighbours: they are brought
        together stably, queries in the order of their first row, and `to_user_order` brings results back.
    group : array of shape (n_queries,), optional
        Or: the number of rows of each query, in order, as LightGBM and XGBoost take it. A query may be empty.
        Without `qid` and `group` all rows are one query.
    query_weights : array of shape (n_queries,), optional
        How much each query counts, in the order of the queries' first rows.
    document_weights : array of shape (n_docs,), optional
        How much each row counts, for the rankers that say they use it.
    comments : sequence of str, optional
        One text a row (document names, as LETOR writes behind ``#``).
    feature_names : sequence of str, optional
        Taken from a frame's columns if not given.

    Attributes
    ----------
    features : float32 array (n_docs, n_features), C order; or CSR of float32
    labels : float64 array (n_docs,)
    query_ptr : int64 array (n_queries + 1,)
    query_ids : array (n_queries,)
    doc_idx : int64 array (n_docs,) or None
        The user's row behind each row here; None where the order is the same.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weights: Any = None,
        document_weights: Any = None,
        comments: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if is_frame(X):
            X, names_of_frame = columns_of_frame(X)
            feature_names = names_of_frame if feature_names is None else feature_names
        features = _as_features(X)
        n_docs, n_features = features.shape
        labels = np.zeros(n_docs) if y is None else _as_numbers("y", y, n_docs)
        self.has_labels = y is not None

        if qid is not None and group is not None:
            raise DataError("qid and group both say which rows belong to a query: pass one of them.")
        self.doc_idx: np.ndarray | None = None
        if qid is not None:
            self.query_ptr, self.query_ids, self.doc_idx = group_by_qid(qid, n_docs)
        else:
            self.query_ptr, self.query_ids = group_by_sizes(group, n_docs)

        weights = None if document_weights is None else _as_weights("document_weights", document_weights, n_docs)
        if comments is not None and len(comments) != n_docs:
            raise DataError(f"comments must have one text a row: {n_docs} rows, {len(comments)} comments.")
        texts = None if comments is None else _as_comments(comments)
        if self.doc_idx is not None:
            features, labels = features[self.doc_idx], labels[self.doc_idx]
            weights = None if weights is None else weights[self.doc_idx]
            texts = None if texts is None else texts.take(self.doc_idx)

        self.features = features
        self.labels = labels
        self.document_weights = weights
        self.comments = texts
        self.query_weights = (
            None if query_weights is None else _as_weights("query_weights", query_weights, self.n_queries)
        )
        self.feature_names = _as_feature_names(feature_names, n_features)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str = "label",
        qid: str = "qid",
        features: Sequence[str] | None = None,
        comment: str | None = None,
    ) -> RankingDataset:
        """From a pandas or Polars frame or an Arrow table that holds labels and query ids as columns.

        Parameters
        ----------
        label, qid, comment : str
            The columns' names. A frame without the label column has no labels.
        features : sequence of str, optional
            The feature columns; without it, every other column.
        """
        from rankwell.data.frames import column, split_frame

        names, parts = split_frame(frame, label=label, qid=qid, features=features, comment=comment)
        return cls(
            parts.features,
            parts.labels,
            qid=parts.qid,
            comments=None if comment is None else [str(text) for text in column(frame, comment)],
            feature_names=names,
        )

    @property
    def n_docs(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_queries(self) -> int:
        return len(self.query_ptr) - 1

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.features))

    @property
    def query_sizes(self) -> np.ndarray:
        """The number of documents of each query, int64 (n_queries,)."""
        return np.diff(self.query_ptr)

    def __len__(self) -> int:
        return self.n_docs

    def __repr__(self) -> str:
        kind = ", sparse" if self.is_sparse else ""
        return f"RankingDataset({self.n_docs} documents, {self.n_queries} queries, {self.n_features} features{kind})"

    def dense_features(self) -> np.ndarray:
        """The features as a dense float32 array in C order: the array itself where it is dense already."""
        return self.features.toarray() if self.is_sparse else self.features

    def query_of_rows(self) -> np.ndarray:
        """The number of the query that each row belongs to, int64 (n_docs,)."""
        return np.repeat(np.arange(self.n_queries), self.query_sizes)

    def qid_of_rows(self) -> np.ndarray:
        """The query id of each row, in this dataset's order."""
        return self.query_ids[self.query_of_rows()]

    def to_user_order(self, values: np.ndarray) -> np.ndarray:
        """Bring one value a row from this dataset's order back to the order the rows came in."""
        if self.doc_idx is None:
            return values
        in_user_order = np.empty_like(values)
        in_user_order[self.doc_idx] = values
        return in_user_order

    def queries(self) -> Iterator[slice]:
        """The rows of each query, one slice at a time."""
        for start, end in zip(self.query_ptr[:-1].tolist(), self.query_ptr[1:].tolist(), strict=True):
            yield slice(start, end)

    def replace(
        self, *, features: Any = None, query_weights: Any = None, document_weights: Any = None
    ) -> RankingDataset:
        """The same queries with other features (in this dataset's order) or weights (in the user's order)."""
        changed = copy.copy(self)
        if features is not None:
            changed.features = features
            changed.feature_names = self.feature_names if features.shape[1] == self.n_features else None
        if query_weights is not None:
            changed.query_weights = _as_weights("query_weights", query_weights, self.n_queries)
        if document_weights is not None:
            weights = _as_weights("document_weights", document_weights, self.n_docs)
            changed.document_weights = weights if self.doc_idx is None else weights[self.doc_idx]
        return changed

    def subset(self, queries: Sequence[int] | np.ndarray) -> RankingDataset:
        """A dataset of some queries, by their numbers, in the order given; its rows count as the user's rows."""
        chosen = np.asarray(queries, dtype=np.int64)
        sizes = self.query_sizes[chosen]
        starts = np.repeat(self.query_ptr[:-1][chosen] - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        rows = starts + np.arange(int(sizes.sum()))
        part = RankingDataset(
            self.features[rows],
            self.labels[rows] if self.has_labels else None,
            group=sizes,
            query_weights=None if self.query_weights is None else self.query_weights[chosen],
            document_weights=None if self.document_weights is None else self.document_weights[rows],
            comments=None if self.comments is None else self.comments.take(rows),
            feature_names=self.feature_names,
        )
        part.query_ids = self.query_ids[chosen]
        return part


def _as_features(X: Any) -> Any:
    """X as float32 (C order, or CSR), or an error that names the first value that cannot be one."""
    if sparse.issparse(X):
        features = sparse.csr_matrix(X, dtype=np.float32)
        if not np.isfinite(features.data).all() and np.isinf(features.data).any():
            place = int(np.flatnonzero(np.isinf(features.data))[0])
            row = int(np.searchsorted(features.indptr, place, side="right")) - 1
            raise _infinite_feature(X, row, int(features.indices[place]))
        return features
    try:
        given = np.asarray(X)
        if given.ndim != 2:
            raise DataError(f"X must have two dimensions (documents, features), got shape {given.shape}.")
        with np.errstate(over="ignore"):
            features = np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, DataError):
            raise
        raise DataError(f"X must hold numbers: {cause}. Encode text columns as numbers, or leave them out.") from cause
    # A sum is infinite or NaN if any value is: one fast pass that almost always settles it.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = features.size > 0 and not np.isfinite(features.sum(dtype=np.float64))
    if suspicious:
        infinite = np.isinf(features)
        if infinite.any():
            row, feature = (int(i) for i in np.argwhere(infinite)[0])
            raise _infinite_feature(given, row, feature)
    return features


def _infinite_feature(X: Any, row: int, feature: int) -> DataError:
    return DataError(
        f"X must be finite in float32 or NaN for a missing value: row {row}, feature {feature} is {X[row, feature]}. "
        "Clip the value, or replace it with NaN."
    )


def _as_numbers(name: str, values: Any, n_docs: int) -> np.ndarray:
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise DataError(f"{name} must hold numbers: {cause}.") from cause
    if numbers.shape != (n_docs,):
        raise DataError(f"{name} must have one number a row: {n_docs} rows, got shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"{name} must be finite: row {row} is {numbers[row]}. Leave out rows without a judgment.")
    return numbers


def _as_weights(name: str, values: Any, length: int) -> np.ndarray:
    weights = np.ascontiguousarray(values, dtype=np.float64)
    if weights.shape != (length,):
        raise DataError(f"{name} must have shape ({length},), got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        place = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise DataError(f"{name} must be finite and not negative: number {place} is {weights[place]}.")
    return weights


def _as_comments(comments: Sequence[str]) -> RowComments:
    return comments if isinstance(comments, RowComments) else RowComments.from_strings(comments)


def _as_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    checked = tuple(str(name) for name in names)
    if len(checked) != n_features:
        raise DataError(f"feature_names must have one name a feature: {n_features} features, {len(checked)} names.")
    if len(set(checked)) != len(checked):
        twice = next(name for name in checked if checked.count(name) > 1)
        raise DataError(f"feature_names must differ: {twice!r} stands there more than once.")
    return checked
