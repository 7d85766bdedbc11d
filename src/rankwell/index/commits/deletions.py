"""Which documents of a segment are deleted: a new small file for each commit that deletes some.

The file has one bit a document, 1 = live, the first document in the lowest bit of the first byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.index.commits.storage import Storage, digest_of, read_digested, write_file


@dataclass(frozen=True)
class Deletions:
    """What the manifest records about a file of deletions: its name, its digest and how many documents are deleted."""

    file: str
    digest: str
    n_deleted: int


def write_deletions(storage: Storage, folder: Path, file: str, live: np.ndarray) -> Deletions:
    """Write which documents are live (uint8, 1 = live) to the new file `file`."""
    content = np.packbits(live, bitorder="little").tobytes()
    write_file(storage, folder / file, content)
    return Deletions(file, digest_of(content), int(len(live) - np.count_nonzero(live)))


def read_deletions(folder: Path, deletions: Deletions, n_docs: int) -> np.ndarray:
    """Which documents are live, uint8 [n_docs]."""
    path = folder / deletions.file
    content = np.frombuffer(read_digested(path, deletions.digest), dtype=np.uint8)
    if len(content) != -(-n_docs // 8):
        raise FileFormatError(f"{path} belongs to a segment of another size. Build the index again.")
    live = np.unpackbits(content, count=n_docs, bitorder="little")
    if n_docs - int(np.count_nonzero(live)) != deletions.n_deleted:
        raise FileFormatError(f"{path} does not delete as many documents as the manifest says. Build it again.")
    return live
