"""Where a segment's arrays go while they are made: piece by piece, in any interleaving of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from rankwell.index.segment import ARRAYS, Segment


class SegmentSink(Protocol):
    """Takes the arrays of one segment; `finish` comes last and once."""

    def append(self, name: str, values: np.ndarray) -> None:
        """Add `values` to the end of the array `name` (of `rankwell.index.segment.ARRAYS`)."""

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Every array is whole; `meta` says how many documents, terms, streams, statics and tokens there are."""


class MemorySink:
    """Collects a segment in memory."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[np.ndarray]] = {name: [] for name in ARRAYS}
        self._meta: Mapping[str, Any] | None = None

    def append(self, name: str, values: np.ndarray) -> None:
        # A copy: the builder may use its buffer again.
        self._pieces[name].append(np.array(values, dtype=ARRAYS[name]))

    def finish(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta

    def segment(self) -> Segment:
        """What was collected."""
        if self._meta is None:
            raise RuntimeError("finish() has not been called on this sink.")
        arrays = {name: np.concatenate(pieces) for name, pieces in self._pieces.items() if pieces}
        return Segment.in_memory(arrays, self._meta)
