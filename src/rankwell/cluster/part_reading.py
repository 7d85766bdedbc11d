"""A worker's data: its parts, read here and nowhere else, as one dataset that agrees with those of the others."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.parts import Part, is_plain_text
from rankwell.data.dataset import RankingDataset
from rankwell.data.files import read
from rankwell.data.row_storage import DiskRowStorage
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import give_back, row_blocks, zeros_beside
from rankwell.kernels.letor_text.reference import is_letor_line
from rankwell.rankers.feature_columns import columns_in_order
from rankwell.streams.decompression import ByteStream, named_errors

_ROW = re.compile(rb"[ \t]*[^ \t\r\n#][^ \t\r\n]*[ \t]+qid:([^ \t\r\n#]+)")
_LINES_BACK = 2**12
_HEAD_BYTES = 2**16


@dataclass(frozen=True)
class Reading:
    """How data files are read: the options of `rankwell.read` that a cluster takes.

    least_features : how many features there are at least, where the last ones may be absent from every row
    memory : bytes that a worker may use, its data being in temporary files of the folder `scratch`; None for any number
    """

    label: str = "label"
    qid: str = "qid"
    on_bad_line: str = "error"
    least_features: int = 0
    memory: int | None = None
    scratch: str | None = None


def read_parts(
    parts: Sequence[Part], cut_files: Sequence[str], reading: Reading, agreement: WorkersAgreement
) -> RankingDataset:
    """The worker's dataset: as wide as those of the others, its columns in the same order.

    cut_files : all files of which several workers have a share
    """
    datasets = [read_part(part, reading) for part in parts]
    datasets = _with_one_first_index(parts, datasets, cut_files, agreement)
    named = next((dataset.feature_names for dataset in datasets if dataset.feature_names), None)
    names = _agreed_names(named, agreement)
    widest = max([reading.least_features, *(dataset.n_features for dataset in datasets)])
    width = int(agreement.largest(np.array([widest]))[0])
    datasets = [dataset.widened(width) for dataset in datasets]
    if names is not None:
        datasets = [columns_in_order(names, dataset, "the first part") for dataset in datasets]
    _check_widths(parts, datasets, width)
    whole = stacked_parts(datasets, width)
    whole.feature_names, whole.memory_limit = names, reading.memory
    _check_queries(whole, agreement)
    return whole


def read_part(part: Part, reading: Reading) -> RankingDataset:
    """The queries of one part. Comments are not kept."""
    options: dict[str, Any] = {"on_bad_line": reading.on_bad_line, "comments": False}
    if part.is_whole or not is_plain_text(part.path):
        options |= {"memory": reading.memory, "scratch": reading.scratch}
        dataset = read(part.path, label=reading.label, qid=reading.qid, **options)
        if _lacks_ids(part.path):
            # Otherwise the queries of every such file would have the same ids.
            dataset.query_ids = np.array(
                [f"{part.path}, query {number}" for number in range(dataset.n_queries)], object
            )
        return dataset if part.is_whole else _share(dataset, part)
    storage = None if reading.memory is None else DiskRowStorage(folder=reading.scratch)
    return _read_range(part, storage=storage, **options)


def _lacks_ids(path: str) -> bool:
    """Whether a text has no query ids of its own."""
    with ByteStream(path) as stream:
        lines = stream.peek(_HEAD_BYTES).splitlines()
    rows = (line for line in lines if is_letor_line(line))
    first = next(rows, None)
    return first is not None and _ROW.match(first) is None


def _share(dataset: RankingDataset, part: Part) -> RankingDataset:
    begins = dataset.query_ptr[:-1]
    first, last = part.first * dataset.n_docs, part.last * dataset.n_docs
    return dataset.subset((begins >= first) & (begins < last))


def _read_range(part: Part, **options: Any) -> RankingDataset:
    from rankwell.data.letor import BadLineError, read_letor
    from rankwell.data.letor_header import peek_feature_names
    from rankwell.streams.file_range import FileRange

    size = os.path.getsize(part.path)
    with named_errors(part.path), open(part.path, "rb") as file:
        start, end = (query_start(file, int(share * size), size, part.path) for share in (part.first, part.last))
    with ByteStream(part.path) as head:
        names = peek_feature_names(head)
    if start == end:
        empty = np.zeros((0, 0 if names is None else len(names)), dtype=np.float32)
        return RankingDataset(empty, np.zeros(0), group=[], feature_names=names)
    try:
        with FileRange(part.path, start, end) as stream:
            dataset = read_letor(stream, n_features=None if names is None else len(names), **options)
    except BadLineError as cause:
        # Lines were counted from the beginning of the range.
        raise DataError(f"{part.path}, line {cause.line + _lines_before(part.path, start)}: {cause}") from cause
    dataset.feature_names = names
    return dataset


def query_start(file: BinaryIO, offset: int, size: int, name: str) -> int:
    """Where in a LETOR text the first query begins whose first line begins at `offset` or later; `size` if none does.

    Both workers beside a border ask this, so that every query is one worker's.
    """
    if offset <= 0 or offset >= size:
        return 0 if offset <= 0 else size
    position, query = _row_before(file, offset), None
    file.seek(position)
    for line in file:
        found = _ROW.match(line)
        if found is None and line.partition(b"#")[0].strip():
            raise DataError(
                f"{name} has rows without qid, which cannot be divided among workers: add query ids, or give several "
                "files, whole queries in each."
            )
        if found is not None:
            if position >= offset and found[1] != query:
                return position
            query = found[1]
        position += len(line)
    return size


def _row_before(file: BinaryIO, offset: int) -> int:
    """Where the last row that begins before `offset` begins; 0 if there is none."""
    looked = _LINES_BACK
    while True:
        start = max(0, offset - looked)
        file.seek(start)
        text = file.read(offset - start)
        ends = [0] if start == 0 else []
        ends += [match.end() for match in re.finditer(rb"\n", text) if match.end() < len(text)]
        for place in reversed(ends):
            if _ROW.match(text, place) is not None:
                return start + place
        if start == 0:
            return 0
        looked *= 4


def _lines_before(path: str, offset: int) -> int:
    with open(path, "rb") as file:
        n_lines, left = 0, offset
        while left > 0 and (block := file.read(min(left, 2**20))):
            n_lines += block.count(b"\n")
            left -= len(block)
    return n_lines


def _with_one_first_index(
    parts: Sequence[Part], datasets: list[RankingDataset], cut_files: Sequence[str], agreement: WorkersAgreement
) -> list[RankingDataset]:
    """A file whose indices count from 0 in one share counts from 0 in all."""
    zero = np.zeros(len(cut_files), dtype=np.int64)
    for part, dataset in zip(parts, datasets, strict=True):
        if part.path in cut_files and dataset.first_index == 0 and dataset.n_docs:
            zero[cut_files.index(part.path)] = 1
    zero = agreement.largest(zero)
    shifted = []
    for part, dataset in zip(parts, datasets, strict=True):
        if part.path in cut_files and zero[cut_files.index(part.path)] and dataset.first_index == 1:
            wide = zeros_beside(dataset.features, (dataset.n_docs, 1 + dataset.n_features), np.float32)
            for rows in row_blocks(wide):
                wide[rows, 1:] = dataset.features[rows]
            dataset = dataset.replace(features=wide)
        shifted.append(dataset)
    return shifted


def _agreed_names(names: tuple[str, ...] | None, agreement: WorkersAgreement) -> tuple[str, ...] | None:
    text = np.frombuffer(b"" if names is None else json.dumps(list(names)).encode(), dtype=np.uint8)
    found = bytes(agreement.first(text).tobytes())
    return tuple(json.loads(found)) if found else None


def _check_widths(parts: Sequence[Part], datasets: Sequence[RankingDataset], width: int) -> None:
    for part, dataset in zip(parts, datasets, strict=True):
        if not dataset.has_labels:
            raise DataError(f"{part.path} has no labels to learn from.")
        if dataset.n_features != width:
            raise DataError(f"{part.path} has {dataset.n_features} features, other parts have {width}.")


def stacked_parts(datasets: Sequence[RankingDataset], n_features: int) -> RankingDataset:
    """One dataset with the queries of all, in order; weights of 1 where only others have weights."""
    if len(datasets) == 1:
        return datasets[0]
    weights: dict[str, Any] = {}
    for name, sizes in (("query_weights", "n_queries"), ("document_weights", "n_docs")):
        found = [getattr(dataset, name) for dataset in datasets]
        weights[name] = None
        if any(array is not None for array in found):
            weights[name] = np.concatenate(
                [
                    np.ones(getattr(dataset, sizes)) if array is None else array
                    for dataset, array in zip(datasets, found, strict=True)
                ]
            )
    whole = RankingDataset(
        _stacked_features(datasets, n_features),
        np.concatenate([np.zeros(0), *(dataset.labels for dataset in datasets)]),
        group=np.concatenate([np.zeros(0, np.int64), *(dataset.query_sizes for dataset in datasets)]),
        **weights,
    )
    if datasets:
        whole.query_ids = np.concatenate([dataset.query_ids for dataset in datasets])
    return whole


def _stacked_features(datasets: Sequence[RankingDataset], n_features: int) -> np.ndarray:
    """The features of all, one after another; on disk if some are."""
    on_disk = next((dataset.features for dataset in datasets if dataset.is_on_disk), None)
    stacked = zeros_beside(on_disk, (sum(dataset.n_docs for dataset in datasets), n_features), np.float32)
    first = 0
    for dataset in datasets:
        features = dataset.dense_features()
        for rows in row_blocks(features):
            target = slice(first + rows.start, first + rows.stop)
            stacked[target] = features[rows]
            give_back(stacked, target)
        first += dataset.n_docs
    return stacked


def _check_queries(dataset: RankingDataset, agreement: WorkersAgreement) -> None:
    """Refuse a query of two workers: each would rank its half for itself."""
    if np.issubdtype(dataset.query_ids.dtype, np.integer):
        digests = dataset.query_ids.astype(np.int64).view(np.uint64)
    else:
        digests = np.array([_digest(query) for query in dataset.query_ids.tolist()], dtype=np.uint64)
    repeated = agreement.settled(lambda: _first_repeated(agreement.joined(digests)))
    if len(repeated) == 0:
        return
    own = [query for query, digest in zip(dataset.query_ids.tolist(), digests, strict=True) if digest == repeated[0]]
    name = f" {own[0]}" if own else ""
    raise DataError(
        f"query{name} is in two parts, or its rows are apart: every query must be whole, its rows one after another in "
        "one file. Sort the rows by query, and give every query an id of its own."
    )


def _first_repeated(digests: np.ndarray) -> np.ndarray:
    found, counts = np.unique(digests, return_counts=True)
    return found[counts > 1][:1]


def _digest(query: Any) -> int:
    return int.from_bytes(hashlib.blake2b(str(query).encode("utf-8", "surrogateescape"), digest_size=8).digest())
