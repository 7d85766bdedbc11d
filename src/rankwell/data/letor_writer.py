"""A dataset as LETOR / SVMlight text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from rankwell.data.arrow_columns import user_order
from rankwell.data.comments import RowComments
from rankwell.data.dataset import RankingDataset
from rankwell.data.letor_header import header_line
from rankwell.errors import DataError
from rankwell.kernels.letor_text.reference import BLANKS

# Numbers that are converted to text at a time.
BATCH_NUMBERS = 2**20


def write_letor(dataset: RankingDataset, sink: Any) -> None:
    """Write text to an Arrow file, rows in the user's order.

    Every number is written in the fewest digits that read back as the same float32; the sign of a NaN is not kept. A
    dense dataset names every feature in every row, a sparse one those that it holds. Names of features go into a
    comment in the first line (`letor_header`), how rows were chosen into the next (`candidates`); this format cannot
    hold weights.
    """
    if dataset.feature_names is not None:
        sink.write(header_line(dataset.feature_names))
    if dataset.candidates is not None:
        sink.write(dataset.candidates.line())
    order = user_order(dataset)
    rows = np.arange(dataset.n_docs) if order is None else order
    query_of_rows = dataset.query_of_rows()
    qids = _qid_tokens(dataset.query_ids)
    prefixes = pyarrow.array([b"%d:" % index for index in range(1, dataset.n_features + 1)], pyarrow.binary())
    n_rows = max(1, BATCH_NUMBERS // max(1, dataset.n_features))
    for start in range(0, dataset.n_docs, n_rows):
        batch = rows[start : start + n_rows]
        features = _feature_tokens(dataset, batch, prefixes, names_last=start == 0)
        lines = pyarrow.compute.binary_join_element_wise(
            _as_text(dataset.labels[batch]),
            qids.take(pyarrow.array(query_of_rows[batch])),
            features,
            _comment_tokens(dataset.comments, batch),
            b"\n",
            b"",
        )
        _, offsets, data = lines.buffers()
        sink.write(data.slice(0, int(np.frombuffer(offsets, dtype=np.int32)[len(lines)])))


def _feature_tokens(
    dataset: RankingDataset, rows: np.ndarray, prefixes: pyarrow.Array, *, names_last: bool
) -> pyarrow.Array:
    """The text of all features of each row, with a blank before each."""
    features = dataset.features[rows]
    if dataset.is_sparse:
        features = features.sorted_indices()
        features.sum_duplicates()
        if names_last:
            features = _with_last_feature(features)
        offsets, indices, values = features.indptr, features.indices, features.data
    else:
        offsets = np.arange(len(rows) + 1) * dataset.n_features
        indices = np.tile(np.arange(dataset.n_features), len(rows))
        values = features.reshape(-1)
    blanks = pyarrow.repeat(pyarrow.scalar(b" "), len(values))
    tokens = pyarrow.compute.binary_join_element_wise(
        blanks, prefixes.take(pyarrow.array(indices)), _as_text(values), b""
    )
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(offsets, pyarrow.int32()), tokens)
    return pyarrow.compute.binary_join(lists, b"")


def _with_last_feature(features: Any) -> Any:
    """Name the last feature in the first row, even if it is 0, so that a reader finds how many there are."""
    if features.shape[0] == 0 or features.shape[1] == 0 or features[0, -1] != 0:
        return features
    first = features[0]
    last = features.shape[1] - 1
    indices = np.append(first.indices[first.indices != last], last)
    data = np.append(first.data[first.indices != last], np.float32(0))
    from scipy import sparse

    named = sparse.csr_matrix((data, indices, [0, len(indices)]), shape=first.shape)
    return sparse.vstack([named, features[1:]], format="csr")


def _as_text(numbers: np.ndarray) -> pyarrow.Array:
    """Float numbers in the fewest digits that read back as the same numbers."""
    texts = pyarrow.array(numbers).cast(pyarrow.string())
    # Readers round to float64 first, where the fewest digits of a float32 may be halfway between two numbers:
    # 7.038531e-26.
    read_back = texts.cast(pyarrow.float64()).to_numpy().astype(numbers.dtype)
    is_changed = (read_back != numbers) & ~np.isnan(numbers)
    if is_changed.any():
        exact = pyarrow.array([repr(float(number)) for number in numbers[is_changed]])
        texts = pyarrow.compute.replace_with_mask(texts, pyarrow.array(is_changed), exact)
    return texts.cast(pyarrow.binary())


def _qid_tokens(query_ids: np.ndarray) -> pyarrow.Array:
    """` qid:ID` of each query."""
    tokens = []
    for query_id in query_ids.tolist():
        text = str(query_id).encode("utf-8", "surrogateescape")
        if not text or any(byte in text for byte in BLANKS + b"\n#"):
            raise DataError(
                f"query id {query_id!r} cannot be written as LETOR text: an id cannot have blanks, line breaks or '#'. "
                "Rename the query, or write .feather or .parquet."
            )
        tokens.append(b" qid:" + text)
    return pyarrow.array(tokens, pyarrow.binary())


def _comment_tokens(comments: RowComments | None, rows: np.ndarray) -> pyarrow.Array:
    """` #text` of each row, or nothing for a row without a comment."""
    if comments is None:
        return pyarrow.repeat(pyarrow.scalar(b""), len(rows))
    texts = comments.take(rows)
    if (texts.buffer == ord("\n")).any():
        row = next(int(row) for row, text in zip(rows, texts, strict=True) if "\n" in text)
        raise DataError(
            f"the comment of row {row} contains a line break, which LETOR text cannot. Remove it, or write .feather or "
            ".parquet."
        )
    buffers = [None, pyarrow.py_buffer(texts.offsets), pyarrow.py_buffer(texts.buffer)]
    array = pyarrow.Array.from_buffers(pyarrow.large_binary(), len(texts), buffers).cast(pyarrow.binary())
    marked = pyarrow.compute.binary_join_element_wise(b" #", array, b"")
    return pyarrow.compute.if_else(pyarrow.compute.equal(pyarrow.compute.binary_length(array), 0), b"", marked)
