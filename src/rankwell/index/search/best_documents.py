"""The best k documents of a search so far."""

from __future__ import annotations

from typing import Any

import numpy as np

_LEAST_ROOM = 64


class BestDocuments:
    """The best k documents so far: the kernels' BestArrays, how many they hold, and the score to
    beat.
    """

    def __init__(self, k: int, threshold: float = 0.0) -> None:
        from rankwell.kernels.selection.best import BestArrays

        room = k + max(k, _LEAST_ROOM)
        self.k, self.size, self.threshold = k, 0, threshold
        self.arrays = BestArrays(np.empty(room), np.empty(room, np.int64), np.empty(room), k)

    def search(self, start: tuple[Any, ...], step: int, prune: bool, base: int) -> None:
        """Add the documents that beat the threshold in one of each `step` windows of a segment."""
        from rankwell.kernels.selection.windows import room_for, search_windows

        room = room_for(len(start[2].numbers))
        self.size, self.threshold = search_windows(
            *start, step, prune, self.arrays, room, self.size, self.threshold, base
        )

    def kth_score(self) -> float:
        """The k-th best score; there must be k documents."""
        return float(np.partition(self.arrays.scores[: self.size], self.size - self.k)[self.size - self.k])

    def ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """The best k documents by falling score, equal scores in ascending order, and their scores."""
        order = (-self.arrays.scores[: self.size]).argsort(kind="stable")[: self.k]
        return self.arrays.docs[order], self.arrays.scores[order]

    def join(self, later: BestDocuments) -> None:
        """Add another object's k documents or more: all later than ours, and all that beat its first threshold."""
        if self.size:
            scores = np.concatenate((self.arrays.scores[: self.size], later.arrays.scores[: later.size]))
            docs = np.concatenate((self.arrays.docs[: self.size], later.arrays.docs[: later.size]))
            order = np.sort(np.argsort(-scores, kind="stable")[: self.k])
            later.arrays.scores[: self.k], later.arrays.docs[: self.k] = scores[order], docs[order]
            later.size, later.threshold = self.k, float(scores[order].min())
        self.arrays, self.size, self.threshold = later.arrays, later.size, later.threshold
