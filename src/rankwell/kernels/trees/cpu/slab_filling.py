"""Bins to slabs."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.columns import DIVISOR, LOWEST, Columns

# Documents whose bins and lines stay in the first-level cache while their columns are written.
_DOCS_AT_A_TIME = 128


def fill_part(bins: np.ndarray, columns: Columns, slab_columns: int, first: int, slabs: np.ndarray) -> None:
    """Write the documents from `first` on, with these bins, into `slabs` (n_slabs, n_docs, 64)."""
    run_ranges(
        lambda start, end: fill_documents(bins, columns, slab_columns, first, start, end, slabs),
        len(bins),
        least_items=4096,
    )


@kernel
def fill_documents(bins, columns, slab_columns, first, start, end, slabs):
    """The documents start, ..., end − 1 of a part that begins at document `first`."""
    for block in range(start, end, _DOCS_AT_A_TIME):
        last = min(block + _DOCS_AT_A_TIME, end)
        for column in range(len(columns.sizes)):
            slab, byte = slabs[column // slab_columns], np.uint64(column % slab_columns)
            for place in range(columns.column_ptr[column], columns.column_ptr[column + 1]):
                feature = columns.features[place]
                lowest, divisor = columns.by_feature[feature, LOWEST], columns.by_feature[feature, DIVISOR]
                is_first = place == columns.column_ptr[column]
                for document in range(np.uint64(block), np.uint64(last)):
                    own = np.int64(bins[document, np.uint64(feature)]) - lowest
                    # A feature without missing values in fitting has none here; its code cannot be below 0.
                    code = (own if own > 0 else 0) * divisor
                    to = np.uint64(first) + document
                    slab[to, byte] = code if is_first else slab[to, byte] + code
