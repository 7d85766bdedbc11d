"""A segment as a writer holds it, with the changes to commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rankwell.index.commits.deletions import write_deletions
from rankwell.index.commits.manifest import SegmentEntry
from rankwell.index.commits.remains import deletions_name
from rankwell.index.commits.storage import Storage
from rankwell.index.segments.segment import Segment
from rankwell.index.segments.structure import check_everything


@dataclass
class WorkingSegment:
    """An open segment, its live documents, and whether the manifest on disk knows them.

    entry : as it is, or will be, in the manifest; its `deletions` are those on disk
    live : uint8 [n_docs], None if nothing is deleted
    is_new : not committed yet
    has_new_deletions : `live` is not what `entry.deletions` says
    is_foreign : another process wrote it; what it leads to was not checked yet
    """

    entry: SegmentEntry
    segment: Segment
    live: np.ndarray | None
    is_new: bool = False
    has_new_deletions: bool = False
    is_foreign: bool = False

    @property
    def n_live(self) -> int:
        return self.segment.n_docs if self.live is None else int(np.count_nonzero(self.live))

    def is_live(self, doc: int) -> bool:
        return self.live is None or bool(self.live[doc])

    def check(self) -> None:
        """Refuse a segment of another process that would lead a merge outside its arrays."""
        if self.is_foreign:
            check_everything(self.segment)
            self.segment.release()
            self.is_foreign = False

    def delete(self, doc: int) -> None:
        """Mark document `doc` as deleted, for the next commit. The array may be a reader's: it is copied first."""
        if self.live is None:
            self.live = np.ones(self.segment.n_docs, dtype=np.uint8)
        elif not self.has_new_deletions:
            self.live = self.live.copy()
        self.has_new_deletions = True
        self.live[doc] = 0

    def write_deletions(self, storage: Storage, folder: Path, generation: int) -> None:
        """Write what was deleted since the last commit, as a file of the generation to come."""
        if self.has_new_deletions and self.live is not None:
            name = deletions_name(self.entry.name, generation)
            self.entry = replace(self.entry, deletions=write_deletions(storage, folder, name, self.live))

    def committed(self) -> None:
        """Note that the manifest on disk has it now."""
        self.is_new = self.has_new_deletions = False


def common_documents(older: Segment, newer: Segment) -> list[tuple[int, int]]:
    """Pairs (document of `older`, document of `newer`) with the same id, in the order of `newer`."""
    pairs = set()
    for hashed in _shared_values(older["documents.id_hashes"], newer["documents.id_hashes"]):
        for doc in _with_hash(newer, hashed):
            found = older.find(newer.id_of(doc).encode(), hashed)
            if found >= 0:
                pairs.add((found, doc))
    return sorted(pairs, key=lambda pair: pair[1])


def _shared_values(one: np.ndarray, other: np.ndarray) -> list[int]:
    """The different values that two sorted arrays share."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    if not len(few):
        return []
    places = np.minimum(np.searchsorted(many, few), len(many) - 1)
    shared: list[int] = np.unique(few[many[places] == few]).tolist()
    return shared


def _with_hash(segment: Segment, hashed: int) -> list[int]:
    hashes = segment["documents.id_hashes"]
    start, stop = np.searchsorted(hashes, np.uint64(hashed)), np.searchsorted(hashes, np.uint64(hashed), side="right")
    docs: list[int] = segment["documents.id_order"][start:stop].tolist()
    return docs
