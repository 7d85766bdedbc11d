"""RankingDataset: judged queries, checked once, as flat arrays.

Vocabulary. Queries are ragged: query q owns rows ``query_ptr[q]:query_ptr[q + 1]``. `doc_idx` is a row of the user's
data; rows here may be in another order, because a query's rows are brought together.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rankwell.data.candidates import Candidates
from rankwell.data.frames import category_columns, column_names, columns_of_frame, is_frame, split_frame
from rankwell.data.grouping import group_by_qid, group_by_sizes
from rankwell.data.validation import (
    as_comments,
    as_feature_names,
    as_features,
    as_numbers,
    as_query_numbers,
    as_weights,
    is_sparse,
)
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import give_back, is_on_disk, row_blocks, zeros_beside


class RankingDataset:
    """Judged queries: features, labels and which rows belong to which query.

    Parameters
    ----------
    X : array, SciPy sparse matrix, pandas or Polars frame, or Arrow table of shape (n_docs, n_features)
        Kept as float32: dense in C order, or CSR if it came sparse. NaN is a missing value and stays NaN; infinities
        are refused. No copy is made of a float32 C-ordered array whose rows are already grouped.
    y : array of shape (n_docs,)
        Labels: any finite real numbers, the larger the better. May be None if the data is not used for training.
    qid : array of shape (n_docs,), optional
        The query of each row, of any kind (int, str, ...). Rows of one query need not be neighbours: they are brought
        together stably, queries in the order of their first row, and `to_user_order` brings results back.
    group : array of shape (n_queries,), optional
        The number of rows of each query, in order, as LightGBM and XGBoost take it, instead of `qid`. A query may be
        empty. Without `qid` and `group` all rows are one query.
    query_weights : array of shape (n_queries,), optional
        How much each query counts, in the order of the queries' first rows.
    document_weights : array of shape (n_docs,), optional
        How much each row counts, for the rankers that document its use.
    comments : sequence of str, optional
        One text per row (document names, as LETOR writes after ``#``).
    feature_names : sequence of str, optional
        Taken from a frame's columns if not given.

    Attributes
    ----------
    features : float32 array (n_docs, n_features), C order; or CSR of float32
        Of data read with a limit of memory, a view of a temporary file (`kernels/disk_arrays.py`).
    labels : float64 array (n_docs,)
    query_ptr : int64 array (n_queries + 1,)
    query_ids : array (n_queries,)
    doc_idx : int64 array (n_docs,) or None
        The user's row of each row here; None if the order is the same.
    skipped_lines : int
        The number of bad lines that the reader of a file left out.
    candidates : Candidates or None
        How the rows were chosen, if they were extracted from an index. A subset does not keep it.
    first_index : int
        The index of the first feature in the text that was read: 0 or 1.
    category_columns : tuple of str
        The features that a pandas frame declared to be categories. A subset does not keep it.
    memory_limit : int or None
        The bytes of memory that training may use, if the features are on disk.

    Examples
    --------
    >>> import rankwell
    >>> X = [[0.1, 2.0], [0.7, 1.0], [0.3, 5.0]]
    >>> data = rankwell.RankingDataset(X, [0, 2, 1], qid=["milk", "milk", "dentist"])
    >>> data.n_queries, data.n_docs, data.n_features
    (2, 3, 2)
    >>> data.subset([0]).labels.tolist()
    [0.0, 2.0]
    """

    first_index: int = 1
    category_columns: tuple[str, ...] = ()
    memory_limit: int | None = None
    skipped_lines: int = 0
    candidates: Candidates | None = None

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weights: Any = None,
        document_weights: Any = None,
        comments: Iterable[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if is_frame(X):
            self.category_columns = category_columns(X, column_names(X))
            X, names_of_frame = columns_of_frame(X)
            feature_names = names_of_frame if feature_names is None else feature_names
        features = as_features(X)
        n_docs, n_features = features.shape
        labels = np.zeros(n_docs) if y is None else as_numbers("y", y, n_docs)
        self.has_labels = y is not None

        if qid is not None and group is not None:
            raise DataError("qid and group both say which rows belong to a query: pass one of them.")
        self.doc_idx: np.ndarray | None = None
        if qid is not None:
            self.query_ptr, self.query_ids, self.doc_idx = group_by_qid(qid, n_docs)
        else:
            self.query_ptr, self.query_ids = group_by_sizes(group, n_docs)

        weights = None if document_weights is None else as_weights("document_weights", document_weights, n_docs)
        texts = None if comments is None else as_comments(comments, n_docs)
        if self.doc_idx is not None:
            features, labels = _rows_taken(features, self.doc_idx), labels[self.doc_idx]
            weights = None if weights is None else weights[self.doc_idx]
            texts = None if texts is None else texts.take(self.doc_idx)

        self.features = features
        self.labels = labels
        self.document_weights = weights
        self.comments = texts
        self.query_weights = (
            None if query_weights is None else as_weights("query_weights", query_weights, self.n_queries)
        )
        self.feature_names = as_feature_names(feature_names, n_features)

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
            The feature columns; by default every other column.
        """
        parts = split_frame(frame, label=label, qid=qid, features=features, comment=comment)
        dataset = cls(
            parts.features, parts.labels, qid=parts.qid, comments=parts.comments, feature_names=parts.feature_names
        )
        dataset.category_columns = category_columns(frame, parts.feature_names)
        return dataset

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
        return is_sparse(self.features)

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
        """The features as a dense float32 array in C order: the array itself if it is already dense."""
        return self.features.toarray() if self.is_sparse else self.features

    def query_of_rows(self) -> np.ndarray:
        """The number of the query that each row belongs to, int64 (n_docs,)."""
        return np.repeat(np.arange(self.n_queries), self.query_sizes)

    def qid_of_rows(self) -> np.ndarray:
        """The query id of each row, in this dataset's order."""
        return self.query_ids[self.query_of_rows()]

    def to_user_order(self, values: np.ndarray) -> np.ndarray:
        """Bring one value per row from this dataset's order back to the user's order."""
        if len(values) != self.n_docs:
            raise DataError(f"there must be one value per row: {self.n_docs} rows, {len(values)} values.")
        if self.doc_idx is None:
            return values
        in_user_order = np.empty_like(values)
        in_user_order[self.doc_idx] = values
        return in_user_order

    def queries(self) -> Iterator[slice]:
        """The rows of each query, one slice at a time."""
        for start, end in zip(self.query_ptr[:-1].tolist(), self.query_ptr[1:].tolist(), strict=True):
            yield slice(start, end)

    @property
    def is_on_disk(self) -> bool:
        """Whether the features are in a temporary file instead of memory."""
        return is_on_disk(self.features)

    def parts(self) -> Iterator[tuple[slice, RankingDataset]]:
        """Rows and the dataset of them, in memory: all at once, or whole queries at a time if the features are on disk.

        For work that needs memory in proportion to the rows.
        """
        if not self.is_on_disk:
            yield slice(0, self.n_docs), self
            return
        first = 0
        for block in row_blocks(self.features):
            last = int(np.searchsorted(self.query_ptr, block.stop, side="right")) - 1
            if last > first:
                yield self._part(first, last)
            first = max(first, last)
        if first < self.n_queries:
            yield self._part(first, self.n_queries)

    def _part(self, first: int, last: int) -> tuple[slice, RankingDataset]:
        rows = slice(int(self.query_ptr[first]), int(self.query_ptr[last]))
        part = RankingDataset(
            np.array(self.features[rows]),
            self.labels[rows] if self.has_labels else None,
            group=np.diff(self.query_ptr[first : last + 1]),
            query_weights=None if self.query_weights is None else self.query_weights[first:last],
            document_weights=None if self.document_weights is None else self.document_weights[rows],
            feature_names=self.feature_names,
        )
        part.query_ids = self.query_ids[first:last]
        give_back(self.features, rows)
        return rows, part

    def replace(
        self, *, features: Any = None, query_weights: Any = None, document_weights: Any = None
    ) -> RankingDataset:
        """The same queries with other features (in this dataset's order) or weights (in the user's order)."""
        changed = copy.copy(self)
        if features is not None:
            changed.features = features
            changed.feature_names = self.feature_names if features.shape[1] == self.n_features else None
        if query_weights is not None:
            changed.query_weights = as_weights("query_weights", query_weights, self.n_queries)
        if document_weights is not None:
            weights = as_weights("document_weights", document_weights, self.n_docs)
            changed.document_weights = weights if self.doc_idx is None else weights[self.doc_idx]
        return changed

    def widened(self, n_features: int) -> RankingDataset:
        """The same data with its absent last features as 0, or this dataset itself if nothing is absent.

        LETOR text leaves out zeros, so a file whose last features are 0 in every row seems narrower than it is.
        Features with names are never added to: there an absent feature is a forgotten column, not zeros.
        """
        absent = n_features - self.n_features
        if absent <= 0 or self.feature_names is not None:
            return self
        shape = (self.n_docs, absent)
        if self.is_sparse:
            from scipy import sparse

            zeros = sparse.csr_matrix(shape, dtype=np.float32)
            return self.replace(features=sparse.hstack([self.features, zeros], format="csr"))
        wide = zeros_beside(self.features, (self.n_docs, n_features), np.float32)
        for rows in row_blocks(wide):
            wide[rows, : self.n_features] = self.features[rows]
        return self.replace(features=wide)

    def joined(self, later: RankingDataset) -> RankingDataset:
        """These queries and those of `later`, with as many features, after them; each dataset in its own order.

        A query id of both stays two queries.
        """
        if later.n_features != self.n_features or later.has_labels != self.has_labels:
            raise DataError(
                f"datasets with {self.n_features} and {later.n_features} features, or only one of them with labels, "
                "cannot be joined."
            )
        both = (self, later)
        whole = RankingDataset(
            _stacked([part.features for part in both]),
            np.concatenate([part.labels for part in both]) if self.has_labels else None,
            group=np.concatenate([part.query_sizes for part in both]),
            query_weights=_joined_weights([(part.query_weights, part.n_queries) for part in both]),
            document_weights=_joined_weights([(part.document_weights, part.n_docs) for part in both]),
            feature_names=self.feature_names,
        )
        whole.query_ids = np.concatenate([part.query_ids for part in both])
        return whole

    def subset(self, queries: Sequence[int] | np.ndarray) -> RankingDataset:
        """A dataset of some queries, by their numbers in the order given or by a mask.

        Its rows count as the user's rows: the original order is not kept.
        """
        chosen = as_query_numbers(queries, self.n_queries)
        sizes = self.query_sizes[chosen]
        starts = np.repeat(self.query_ptr[:-1][chosen] - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        rows = starts + np.arange(int(sizes.sum()))
        part = RankingDataset(
            _rows_taken(self.features, rows),
            self.labels[rows] if self.has_labels else None,
            group=sizes,
            query_weights=None if self.query_weights is None else self.query_weights[chosen],
            document_weights=None if self.document_weights is None else self.document_weights[rows],
            comments=None if self.comments is None else self.comments.take(rows),
            feature_names=self.feature_names,
        )
        part.query_ids = self.query_ids[chosen]
        return part


def _rows_taken(features: Any, rows: np.ndarray) -> Any:
    """Some rows, in a new array; on disk if the features are, a block of it at a time."""
    if not is_on_disk(features):
        return features[rows]
    taken = zeros_beside(features, (len(rows), features.shape[1]), np.float32)
    for block in row_blocks(taken):
        taken[block] = features[rows[block]]
        give_back(features)
    return taken


def _stacked(parts: list[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    from scipy import sparse

    return sparse.vstack(parts, format="csr")


def _joined_weights(parts: list[tuple[np.ndarray | None, int]]) -> np.ndarray | None:
    """Weights of several datasets, 1 where a dataset has none; None if no dataset has any."""
    if all(weights is None for weights, _ in parts):
        return None
    return np.concatenate([np.ones(length) if weights is None else weights for weights, length in parts])
