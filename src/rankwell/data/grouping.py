"""Which rows belong to which query: from query ids in any order, or from group sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.data.frames import is_missing
from rankwell.errors import DataError


def group_by_sizes(group: Any, n_docs: int) -> tuple[np.ndarray, np.ndarray]:
    """query_ptr and query ids 0, 1, ... from the number of rows of each query (None: all rows are one query)."""
    if group is None:
        return np.array([0, n_docs], dtype=np.int64), np.arange(1)
    sizes = np.asarray(group)
    if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
        raise DataError(f"group must be a list of whole numbers, got {sizes.dtype} of shape {sizes.shape}.")
    if (sizes < 0).any():
        query = int(np.flatnonzero(sizes < 0)[0])
        raise DataError(f"group must hold sizes of 0 or more: query {query} has {sizes[query]}.")
    total = sum(sizes.tolist())  # Python's whole numbers do not wrap around
    if total != n_docs:
        raise DataError(
            f"group must add up to the number of rows: the sizes add up to {total}, X has {n_docs} rows. "
            "Pass the size of each query (or qid, the query of each row)."
        )
    query_ptr = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=query_ptr[1:])
    return query_ptr, np.arange(len(sizes))


def group_by_qid(qid: Any, n_docs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Bring each query's rows together, stably, queries in the order of their first row.

    Returns
    -------
    query_ptr : int64 array (n_queries + 1,)
    query_ids : array (n_queries,)
    doc_idx : int64 array (n_docs,), or None if they are already together
    """
    ids = _as_ids(qid, n_docs)
    if n_docs == 0:
        return np.zeros(1, dtype=np.int64), ids, None
    starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
    whole_queries = np.append(starts, n_docs).astype(np.int64), ids[starts], None
    if ids.dtype.kind in "iu" and (ids[starts[1:]] > ids[starts[:-1]]).all():
        return whole_queries  # as in nearly every file: numbers that rise
    query_of_run, first_run = _number_runs(ids[starts])
    if len(first_run) == len(starts):
        return whole_queries
    run_sizes = np.diff(np.append(starts, n_docs))
    query_of_rows = np.repeat(query_of_run, run_sizes)
    doc_idx = np.argsort(query_of_rows, kind="stable")
    query_ptr = np.zeros(len(first_run) + 1, dtype=np.int64)
    np.cumsum(np.bincount(query_of_rows), out=query_ptr[1:])
    return query_ptr, ids[starts[first_run]], doc_idx


def _number_runs(run_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the queries in the order of their first run of rows.

    A dictionary, so that ids of any hashable kind work.

    Returns
    -------
    query_of_run : int64 array (n_runs,)
    first_run : int64 array (n_queries,)
    """
    number_of_id: dict[Any, int] = {}
    first_run: list[int] = []
    query_of_run = np.empty(len(run_ids), dtype=np.int64)
    for run, query_id in enumerate(run_ids.tolist()):
        try:
            query = number_of_id.setdefault(query_id, len(first_run))
        except TypeError as cause:
            raise DataError(f"qid must hold hashable ids (numbers, texts, ...): {cause}.") from cause
        if query == len(first_run):
            first_run.append(run)
        query_of_run[run] = query
    return query_of_run, np.asarray(first_run, dtype=np.int64)


def _as_ids(qid: Any, n_docs: int) -> np.ndarray:
    ids = np.asarray(qid)
    if ids.ndim != 1 or len(ids) != n_docs:
        raise DataError(f"qid must have one query id per row: {n_docs} rows, got shape {ids.shape}.")
    if ids.dtype.kind == "f" and isinstance(qid, list | tuple) and all(isinstance(value, int) for value in qid):
        ids = np.array(qid, dtype=object)  # whole numbers beyond int64; as floats two of them could be equal
    missing = _missing_rows(ids)
    if len(missing):
        row = int(missing[0])
        raise DataError(f"qid must name a query in every row: row {row} is {ids[row]}.")
    return ids


def _missing_rows(ids: np.ndarray) -> np.ndarray:
    """Rows without a query: NaN, infinity, NaT, None, pandas' NA."""
    if ids.dtype.kind in "fc":
        return np.flatnonzero(~np.isfinite(ids))
    if ids.dtype.kind in "mM":
        return np.flatnonzero(np.isnat(ids))
    if ids.dtype == object:
        return np.array([row for row, value in enumerate(ids.tolist()) if is_missing(value)], dtype=np.int64)
    return np.empty(0, dtype=np.int64)
