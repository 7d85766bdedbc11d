"""Parquet and Feather: tables of rows, column by column.

Parquet holds an ordinary table, one column per feature, as other programs expect. Feather (an Arrow IPC file, not
compressed) holds the features as one column of fixed-size lists, which is one float32 array in C order: a reader maps
the file into memory and the array is there, without copying it; it is read once, to compare its checksum. Feather files
of other programs, with one column per feature, can be read too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from rankwell.data import arrow_columns
from rankwell.data.arrow_columns import FEATURES, ColumnRoles, as_numbers, assign_roles, build_dataset
from rankwell.data.candidates import Candidates
from rankwell.data.column_checksums import marked_schema, verify_columns
from rankwell.data.dataset import RankingDataset
from rankwell.data.row_storage import RowStorage
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import give_back, part_of

BATCH_ROWS = 2**13
ROW_GROUP_ROWS = 2**16


def read_parquet(
    source: Any,
    name: str,
    *,
    label: str = "label",
    qid: str | None = "qid",
    comments: bool = True,
    storage: RowStorage | None = None,
) -> RankingDataset:
    """Read a Parquet table, some rows at a time; `source` is an Arrow file, `name` what messages call it.

    storage : an empty one, where rows go; by default in memory
    """
    file = pyarrow.parquet.ParquetFile(source, pre_buffer=storage is None)
    metadata = arrow_columns.read_metadata(name, file.schema_arrow)
    roles = assign_roles(
        name, file.schema_arrow.names, label=label, qid=qid, comments=comments, weights=metadata.get("weights", ())
    )
    columns = [*roles.others, *roles.features]
    batches = file.iter_batches(batch_size=BATCH_ROWS, columns=columns)
    storage = RowStorage() if storage is None else storage
    return _read_table(name, batches, file.metadata.num_rows, file.schema_arrow, roles, metadata, storage)


def read_feather(
    source: Any,
    name: str,
    *,
    label: str = "label",
    qid: str | None = "qid",
    comments: bool = True,
    storage: RowStorage | None = None,
    mapped: np.ndarray | None = None,
) -> RankingDataset:
    """Read an Arrow IPC file; `source` is an Arrow file, mapped into memory or not.

    storage : an empty one, where rows go that are not in the file as one array; by default in memory
    mapped : the bytes of the file, whose memory is given back while it is read
    """
    file = pyarrow.ipc.open_file(source)
    schema = file.schema
    metadata = arrow_columns.read_metadata(name, schema)
    roles = assign_roles(
        name, schema.names, label=label, qid=qid, comments=comments, weights=metadata.get("weights", ())
    )
    batches = [file.get_batch(number) for number in range(file.num_record_batches)]
    for batch in batches:
        # Without the check, offsets and lengths that point outside of the file would be followed later.
        batch.validate(full=True)
    verify_columns(name, schema, metadata, batches, lambda: give_back(mapped))
    if roles.features == [FEATURES] and pyarrow.types.is_fixed_size_list(schema.field(FEATURES).type):
        features = _matrix(name, batches, schema.field(FEATURES).type.list_size)
        if mapped is not None and len(batches) == 1:
            features = part_of(mapped, features)
        names = metadata.get("feature_names")
        return _noted(build_dataset(name, features, names, roles, _columns(batches, schema, roles)), metadata)
    n_rows = sum(batch.num_rows for batch in batches)
    batches = [batch.slice(first, BATCH_ROWS) for batch in batches for first in range(0, batch.num_rows, BATCH_ROWS)]
    return _read_table(name, batches, n_rows, schema, roles, metadata, RowStorage() if storage is None else storage)


def write_parquet(dataset: RankingDataset, sink: Any) -> None:
    """Write an ordinary table to an Arrow file: label, qid, weights, one column per feature, comment."""
    schema, batches = table_batches(dataset)
    with pyarrow.parquet.ParquetWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_feather(dataset: RankingDataset, sink: Any) -> None:
    """Write an Arrow IPC file with the features as one array, to be mapped into memory."""
    columns = arrow_columns.columns_beside_features(dataset)
    if dataset.n_features > 0:
        features = dataset.dense_features()
        order = arrow_columns.user_order(dataset)
        numbers = pyarrow.array((features if order is None else features[order]).reshape(-1))
        columns[FEATURES] = pyarrow.FixedSizeListArray.from_arrays(numbers, dataset.n_features)
    schema = marked_schema(columns, arrow_columns.metadata_with_checksums(dataset, columns))
    batch = pyarrow.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    with pyarrow.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def table_batches(
    dataset: RankingDataset, *, weights: bool = True
) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
    """A dataset as an ordinary table, a piece at a time: features are stored by row and have to be transposed."""
    names = arrow_columns.feature_columns(dataset)
    columns = arrow_columns.columns_beside_features(dataset, weights=weights)
    comment = {name: columns.pop(name) for name in [arrow_columns.COMMENT] if name in columns}
    fields = [(key, column.type) for key, column in columns.items()]
    fields += [(key, pyarrow.float32()) for key in names]
    fields += [(key, column.type) for key, column in comment.items()]
    schema = pyarrow.schema(fields, metadata=arrow_columns.metadata_of(dataset))

    def batches() -> Iterable[pyarrow.RecordBatch]:
        for start, features in arrow_columns.feature_blocks(dataset, ROW_GROUP_ROWS):
            arrays = [column.slice(start, len(features)) for column in columns.values()]
            arrays += [pyarrow.array(values) for values in np.ascontiguousarray(features.T)]
            arrays += [column.slice(start, len(features)) for column in comment.values()]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    return schema, batches()


def _read_table(
    name: str,
    batches: Iterable[pyarrow.RecordBatch],
    n_rows: int,
    schema: pyarrow.Schema,
    roles: ColumnRoles,
    metadata: dict[str, Any],
    storage: RowStorage,
) -> RankingDataset:
    """The dataset of an ordinary table."""
    width = len(roles.features)
    storage.begin(width)
    storage.reserve(n_rows, 0)
    features = storage.features[: n_rows * width].reshape(n_rows, width)
    kept = []
    start = 0
    for batch in batches:
        end = start + batch.num_rows
        for place, column in enumerate(roles.features):
            features[start:end, place] = as_numbers(name, column, batch.column(column), pyarrow.float32())
        storage.written(start, batch.num_rows)
        kept.append(batch.select(roles.others))
        start = end
    if start != n_rows:
        raise DataError(f"{name} announces {n_rows} rows and holds {start}: it is damaged.")
    names = arrow_columns.names_of_features(metadata, roles.features)
    return _noted(build_dataset(name, features, names, roles, _columns(kept, schema, roles)), metadata)


def _noted(dataset: RankingDataset, metadata: dict[str, Any]) -> RankingDataset:
    """The dataset, with what the file's metadata says about its rows."""
    dataset.candidates = Candidates.from_json(metadata.get("candidates"))
    return dataset


def _columns(
    batches: list[pyarrow.RecordBatch], schema: pyarrow.Schema, roles: ColumnRoles
) -> dict[str, pyarrow.ChunkedArray]:
    """The columns that are not features, whole."""
    return {
        key: pyarrow.chunked_array([batch.column(key) for batch in batches], type=schema.field(key).type)
        for key in roles.others
    }


def _matrix(name: str, batches: list[pyarrow.RecordBatch], width: int) -> np.ndarray:
    """The column of fixed-size lists as one array: a view of the file where it was written as one piece."""
    parts = []
    for batch in batches:
        lists = batch.column(FEATURES)
        if lists.null_count:
            raise DataError(f"{name}: column {FEATURES!r} has rows without features.")
        parts.append(as_numbers(name, FEATURES, lists.flatten(), pyarrow.float32()).reshape(len(lists), width))
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, width), dtype=np.float32), *parts])
