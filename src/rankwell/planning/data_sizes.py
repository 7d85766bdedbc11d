"""The sizes of a data file without reading all of it: from its metadata, or from its beginning."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import format_of, read
from rankwell.planning.round_model import TrainingSizes
from rankwell.streams.decompression import ByteStream

_SAMPLE_BYTES = 2**23
_SAMPLE_ROWS = 2**14


@dataclass(frozen=True)
class DataSample:
    """The first rows of a file, and the sizes of all of it.

    is_estimated : whether the sizes follow from those of the first rows and the size of the file
    """

    dataset: RankingDataset
    sizes: TrainingSizes
    is_estimated: bool


def look_at(path: str | os.PathLike[str], *, label: str = "label", qid: str | None = "qid") -> DataSample:
    """Look at the beginning of a data file."""
    with ByteStream(os.fspath(path)) as stream:
        kind = format_of(stream)
        if kind not in ("letor", "csv"):
            return _look_at_table(os.fspath(path), kind, label, qid)
        content = bytearray(_SAMPLE_BYTES)
        n_read = stream.readinto(memoryview(content))
        taken, size = stream.bytes_taken(), stream.size
    is_whole = n_read < len(content)
    lines = bytes(content[:n_read]) if is_whole else bytes(content[: content.rfind(b"\n") + 1])
    with tempfile.NamedTemporaryFile(suffix=".txt" if kind == "letor" else ".csv") as file:
        file.write(lines)
        file.flush()
        dataset = read(file.name, format=kind, comments=False, label=label, qid=qid)
    scale = 1.0 if is_whole or not size else max(1.0, size / taken)
    return DataSample(dataset, _scaled(dataset, scale), scale > 1.0)


def _look_at_table(path: str, kind: str, label: str, qid: str | None) -> DataSample:
    import pyarrow
    import pyarrow.parquet

    if kind == "feather":
        dataset = read(path, label=label, qid=qid, comments=False)
        queries = int(np.searchsorted(dataset.query_ptr, _SAMPLE_ROWS))
        sizes = _scaled(dataset, 1.0)
        return DataSample(dataset.subset(np.arange(max(1, min(queries, dataset.n_queries)))), sizes, False)
    file = pyarrow.parquet.ParquetFile(path)
    batch = next(file.iter_batches(batch_size=_SAMPLE_ROWS), None)
    table = pyarrow.Table.from_batches([] if batch is None else [batch], schema=file.schema_arrow)
    dataset = RankingDataset.from_frame(table, label=label, qid=qid or "qid")
    scale = file.metadata.num_rows / max(1, dataset.n_docs)
    return DataSample(dataset, _scaled(dataset, scale), scale > 1.0)


def _scaled(dataset: RankingDataset, scale: float) -> TrainingSizes:
    return TrainingSizes(
        round(dataset.n_docs * scale),
        dataset.n_features,
        max(1, round(dataset.n_queries * scale)),
        round(count_pairs(dataset) * scale),
    )


def count_pairs(dataset: RankingDataset) -> int:
    """Pairs of documents of one query with different labels."""
    query = dataset.query_of_rows()
    _, of_level = np.unique(np.stack([query, dataset.labels]), axis=1, return_counts=True)
    return int((np.square(dataset.query_sizes).sum() - np.square(of_level).sum()) // 2)
