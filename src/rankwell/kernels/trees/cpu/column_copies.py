"""Copies of the columns that part documents most, a byte of each document side by side.

To part a leaf's documents needs a byte of each, but fetches a cache line of each from the slabs: 64 bytes. Few columns
make most of the cuts, so these are copied: a column once it has parted half as many documents as there are, and with it
those of its slab that have parted some, since to copy any of them fetches all lines of the slab.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.disk_arrays import is_on_disk
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.columns import COLUMN
from rankwell.kernels.trees.contract import TreeProblem
from rankwell.kernels.trees.slabs import SLAB_BYTES, WORD, slab_shape

# The lines of fewer documents, 8 MB a slab, stay in caches, from which fetching them costs hardly more than a copy.
LEAST_DOCS = 2**17
# The memory that copies may take: three bytes of a document for every eight of its bins.
_COPIES_OF, _BINS = 3, 8
_DOCS_A_RANGE = 4096
# The documents that a column has parted before its slab is read for it, and others of the slab, in all documents.
_PARTED_BY_ONE, _PARTED_BY_OTHERS = 1 / 2, 1 / 64


class ColumnCopies:
    """Which columns are copied, and their copies. Few documents have none, nor have slabs on disk: memory is limited.

    copies : uint8 (n_copies, n_docs); copy_of : int64 (n_columns,), the copy of each column, −1 if there is none
    """

    def __init__(self, problem: TreeProblem) -> None:
        n_columns = len(problem.columns.sizes)
        most = _COPIES_OF * len(problem.columns.by_feature) // _BINS
        is_copied = problem.n_docs >= LEAST_DOCS and not is_on_disk(problem.slabs)
        n_copies = min(n_columns, most) if is_copied else 0
        self._problem, self._n_used = problem, 0
        self._n_parted = np.zeros(n_columns, np.int64)
        self.copies = np.zeros((n_copies, problem.n_docs), np.uint8)
        self.copy_of = np.full(n_columns, -1, np.int64)

    def count(self, features: np.ndarray, n_docs: np.ndarray) -> None:
        """Note that nodes with these features parted so many documents each."""
        if self.has_room():
            np.add.at(self._n_parted, self._problem.columns.by_feature[features, COLUMN], n_docs)

    def has_room(self) -> bool:
        """Whether further columns may be copied."""
        return self._n_used < len(self.copies)

    def fill(self) -> None:
        """Copy the columns that have parted enough documents, as long as there is room."""
        if not self.has_room():
            return
        _, words_per_slab, _ = slab_shape(len(self.copy_of))
        slab_of, byte = np.divmod(np.arange(len(self.copy_of)), words_per_slab * WORD)
        n_parted = np.where(self.copy_of < 0, self._n_parted, 0)
        for slab in np.unique(slab_of[n_parted >= _PARTED_BY_ONE * self._problem.n_docs]).tolist():
            enough = np.flatnonzero((slab_of == slab) & (n_parted >= _PARTED_BY_OTHERS * self._problem.n_docs))
            chosen = enough[np.argsort(-n_parted[enough], kind="stable")][: len(self.copies) - self._n_used]
            self.copy_of[chosen] = self._n_used + np.arange(len(chosen))
            self._n_used += len(chosen)
            lines = self._problem.slabs[slab].reshape(-1)
            copy = partial(copy_columns, lines, byte[chosen], self.copy_of[chosen], self.copies)
            run_ranges(copy, self._problem.n_docs, least_items=_DOCS_A_RANGE)


@kernel
def copy_columns(lines, bytes_in_line, places, copies, start, end):
    """copies[place, d] = byte of line d, for the documents start, ..., end − 1 and each place and byte.

    lines : uint8 (n_docs · 64,); bytes_in_line, places : int64
    """
    for document in range(np.uint64(start), np.uint64(end)):
        line = document * np.uint64(SLAB_BYTES)
        for k in range(len(places)):
            copies[places[k], document] = lines[line + np.uint64(bytes_in_line[k])]
