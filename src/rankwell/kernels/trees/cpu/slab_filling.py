"""Bins to slabs."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.columns import DIVISOR, LOWEST, Columns


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
    for document in range(start, end):
        for column in range(len(columns.sizes)):
            code = 0
            for place in range(columns.column_ptr[column], columns.column_ptr[column + 1]):
                feature = columns.features[place]
                own = np.int64(bins[document, feature]) - columns.by_feature[feature, LOWEST]
                # A feature without missing values in fitting has none here; its code cannot be below 0.
                code += (own if own > 0 else 0) * columns.by_feature[feature, DIVISOR]
            slabs[column // slab_columns, first + document, column % slab_columns] = code
