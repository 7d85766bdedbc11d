"""A dataset as Arrow columns, and back: which column is what, and how its values become arrays.

A table of rows has a column of labels, one of query ids, one per feature and, if there are any, one of comments; only
files that Rankwell wrote have columns of weights, which say so in their metadata.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from rankwell.data.column_checksums import column_checksums
from rankwell.data.comments import RowComments
from rankwell.data.dataset import RankingDataset
from rankwell.data.grouping import group_by_qid
from rankwell.errors import DataError, Parameter
from rankwell.streams.json_text import parse_json

LABEL, QID, COMMENT, FEATURES = "label", "qid", "comment", "features"
QUERY_WEIGHT, DOCUMENT_WEIGHT = "query_weight", "document_weight"
METADATA_KEY = b"rankwell"


@dataclass(frozen=True)
class ColumnRoles:
    """The roles of a table's columns; None for a role that no column has."""

    label: str | None
    qid: str | None
    comment: str | None
    features: list[str]
    weights: list[str] = field(default_factory=list)

    @property
    def others(self) -> list[str]:
        """All columns that are read, except the features."""
        return [name for name in (self.label, self.qid, self.comment, *self.weights) if name is not None]


def assign_roles(
    file: str, names: Sequence[str], *, label: str, qid: str | None, comments: bool, weights: Sequence[str] = ()
) -> ColumnRoles:
    """Give every column a role: those that have no other are features.

    A column for the labels may be absent, unless the caller named one; one for the query ids may not, unless `qid` is
    None and all rows are one query.
    """
    name, times = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise DataError(f"{file} has {times} columns {name!r}. Give every column its own name.")
    for wanted, parameter in ((qid, "qid"), (label if label != LABEL else None, "label")):
        if wanted is not None and wanted not in names:
            shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise DataError(
                f"{file} has no column {wanted!r}. Say with ",
                Parameter(parameter),
                f" which of its columns it is: {shown}.",
            )
    apart = {label, qid, COMMENT, *weights}
    return ColumnRoles(
        label=label if label in names else None,
        qid=qid,
        comment=COMMENT if comments and COMMENT in names else None,
        features=[name for name in names if name not in apart],
        weights=[name for name in weights if name in names],
    )


def read_metadata(file: str, schema: pyarrow.Schema) -> dict[str, Any]:
    """The metadata that Rankwell wrote; empty for a file of another program."""
    noted = (schema.metadata or {}).get(METADATA_KEY)
    if noted is None:
        return {}
    try:
        metadata = parse_json(noted)
        is_sound = _is_sound(metadata)
    except (ValueError, LookupError, TypeError, AttributeError) as cause:
        raise DataError(f"{file}: the metadata that Rankwell wrote is damaged. Convert the data again.") from cause
    if not is_sound:
        raise DataError(f"{file}: the metadata that Rankwell wrote is damaged. Convert the data again.")
    return dict(metadata)


def _is_sound(metadata: dict[str, Any]) -> bool:
    """Whether the metadata is what one of the versions has; version 2 has the columns' checksums as well."""
    names, weights, version = metadata["feature_names"], metadata["weights"], metadata["version"]
    if version not in (1, 2):
        raise ValueError(f"unknown version {version}")
    return (
        (names is None or all(isinstance(name, str) for name in names))
        and all(name in (QUERY_WEIGHT, DOCUMENT_WEIGHT) for name in weights)
        and (version == 1 or all(type(value) is int for value in metadata["crc32"].values()))
    )


def metadata_of(dataset: RankingDataset) -> dict[bytes, bytes]:
    """The metadata: what a reader needs to know besides the columns."""
    return {METADATA_KEY: json.dumps(_noted(dataset, 1)).encode()}


def metadata_with_checksums(dataset: RankingDataset, columns: dict[str, pyarrow.Array]) -> dict[bytes, bytes]:
    """The same with the checksums of all columns, for a file that has none of its own."""
    noted = _noted(dataset, 2)
    return {METADATA_KEY: json.dumps(noted | {"crc32": column_checksums(noted, columns)}).encode()}


def _noted(dataset: RankingDataset, version: int) -> dict[str, Any]:
    names = None if dataset.feature_names is None else list(dataset.feature_names)
    noted: dict[str, Any] = {"version": version, "feature_names": names, "weights": list(weight_columns(dataset))}
    if dataset.candidates is not None:
        noted["candidates"] = dataset.candidates.to_json()
    return noted


def feature_columns(dataset: RankingDataset) -> list[str]:
    """A column name for each feature: its own, or f1, f2, ... for features without names."""
    if dataset.feature_names is None:
        return [f"f{number}" for number in range(1, dataset.n_features + 1)]
    taken = {LABEL, QID, COMMENT, *weight_columns(dataset)}
    clash = next((name for name in dataset.feature_names if name in taken), None)
    if clash is not None:
        raise DataError(f"a feature is named {clash!r}, like a column of another kind. Rename it, or write .feather.")
    return list(dataset.feature_names)


def names_of_features(metadata: dict[str, Any], columns: Sequence[str]) -> list[str] | None:
    """The features' names by column names: f1, f2, ... do not count as names, unless the metadata says so."""
    is_numbered = list(columns) == [f"f{number}" for number in range(1, len(columns) + 1)]
    return None if is_numbered and metadata.get("feature_names") is None else list(columns)


def as_numbers(file: str, column: str, values: Any, dtype: pyarrow.DataType) -> np.ndarray:
    """An array or chunked array of numbers or truth values as a float array; a null is NaN."""
    types = pyarrow.types
    values = _decoded(values)
    kind = values.type
    if types.is_decimal(kind):
        values = values.cast(pyarrow.float64(), safe=False)
    elif not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind)):
        raise DataError(
            f"{file}: column {column!r} must hold numbers, it holds {kind}. Encode it as numbers, or leave it out."
        )
    values = values.cast(dtype, safe=False)
    if values.null_count:
        values = values.fill_null(float("nan"))
    return _joined(values).to_numpy(zero_copy_only=False)


def as_ids(values: pyarrow.ChunkedArray) -> np.ndarray:
    """Query ids as an array: integers as they are, text as objects."""
    return _joined(_decoded(values)).to_numpy(zero_copy_only=False)


def as_comments(file: str, values: pyarrow.ChunkedArray) -> RowComments:
    """Text or bytes, one per row, without a copy of one chunk of large strings; a null is an empty comment."""
    values = _decoded(values)
    kind = values.type
    is_bytes = pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind)
    if not is_bytes and not is_text(kind) and not pyarrow.types.is_null(kind):
        raise DataError(
            f"{file}: column {COMMENT!r} must hold text, it holds {kind}. Rename it, or pass comments=False."
        )
    array = _joined(values.cast(pyarrow.large_binary() if is_bytes else pyarrow.large_string()))
    if array.null_count:
        array = array.fill_null(b"" if is_bytes else "")
    _, offsets, data = array.buffers()
    place = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    buffer = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return RowComments(buffer, place)


def is_text(kind: pyarrow.DataType) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _decoded(values: Any) -> Any:
    """Categories (a dictionary and numbers into it) as their values; any other array as it is."""
    if not pyarrow.types.is_dictionary(values.type):
        return values
    kind = pyarrow.large_string() if is_text(values.type.value_type) else values.type.value_type
    chunks = values.chunks if isinstance(values, pyarrow.ChunkedArray) else [values]
    decoded = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks]
    return pyarrow.chunked_array(decoded, type=kind)


def _joined(values: Any) -> pyarrow.Array:
    """One array of an array or chunked array, without a copy if there is one chunk."""
    if isinstance(values, pyarrow.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def weight_columns(dataset: RankingDataset) -> dict[str, np.ndarray]:
    """The weights of a dataset by row, by the name of their column."""
    columns = {}
    if dataset.query_weights is not None:
        columns[QUERY_WEIGHT] = dataset.query_weights[dataset.query_of_rows()]
    if dataset.document_weights is not None:
        columns[DOCUMENT_WEIGHT] = dataset.document_weights
    return columns


def user_order(dataset: RankingDataset) -> np.ndarray | None:
    """The row of the dataset for each of the user's rows, int64 (n_docs,); None if they are the same.

    Files keep the user's order: scores of a file are compared with it line by line.
    """
    return None if dataset.doc_idx is None else np.argsort(dataset.doc_idx)


def columns_beside_features(dataset: RankingDataset, *, weights: bool = True) -> dict[str, pyarrow.Array]:
    """Labels, query ids, comments and (if wanted) weights by the name of their column, in the user's order."""
    columns = {LABEL: pyarrow.array(dataset.labels)} if dataset.has_labels else {}
    columns[QID] = _id_column(dataset.query_ids).take(pyarrow.array(dataset.query_of_rows()))
    if dataset.comments is not None:
        columns[COMMENT] = _comment_column(dataset.comments)
    if weights:
        columns |= {name: pyarrow.array(values) for name, values in weight_columns(dataset).items()}
    order = user_order(dataset)
    if order is None:
        return columns
    return {name: column.take(pyarrow.array(order)) for name, column in columns.items()}


def feature_blocks(dataset: RankingDataset, n_rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """The features of `n_rows` rows at a time in the user's order, as float32 in C order, each with its first row."""
    order = user_order(dataset)
    for start in range(0, dataset.n_docs, n_rows):
        end = min(start + n_rows, dataset.n_docs)
        features = dataset.features[slice(start, end) if order is None else order[start:end]]
        yield start, features.toarray() if dataset.is_sparse else features


def build_dataset(
    file: str,
    features: np.ndarray,
    feature_names: Sequence[str] | None,
    roles: ColumnRoles,
    columns: dict[str, pyarrow.ChunkedArray],
) -> RankingDataset:
    """The dataset of the features and the other columns."""
    numbers = {
        name: as_numbers(file, name, columns[name], pyarrow.float64())
        for name in (roles.label, *roles.weights)
        if name is not None
    }
    qid = None if roles.qid is None else as_ids(columns[roles.qid])
    query_weights = numbers.get(QUERY_WEIGHT)
    if query_weights is not None and qid is not None:
        query_ptr, _, doc_idx = group_by_qid(qid, len(qid))
        first_rows = query_ptr[:-1] if doc_idx is None else doc_idx[query_ptr[:-1]]
        query_weights = query_weights[first_rows]
    return RankingDataset(
        features,
        None if roles.label is None else numbers[roles.label],
        qid=qid,
        query_weights=query_weights,
        document_weights=numbers.get(DOCUMENT_WEIGHT),
        comments=None if roles.comment is None else as_comments(file, columns[roles.comment]),
        feature_names=feature_names,
    )


def _id_column(query_ids: np.ndarray) -> pyarrow.Array:
    try:
        return pyarrow.array(query_ids.tolist() if query_ids.dtype == object else query_ids)
    except (pyarrow.ArrowException, UnicodeError, OverflowError) as cause:
        raise DataError(f"these query ids cannot be written: {cause}. Make them all integers or all text.") from cause


def _comment_column(comments: RowComments) -> pyarrow.Array:
    """Comments as text where all are valid UTF-8, else as bytes; without a copy."""
    buffers = [None, pyarrow.py_buffer(comments.offsets), pyarrow.py_buffer(comments.buffer)]
    texts = pyarrow.Array.from_buffers(pyarrow.large_string(), len(comments), buffers)
    try:
        texts.validate(full=True)
    except pyarrow.ArrowInvalid:
        return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(comments), buffers)
    return texts
