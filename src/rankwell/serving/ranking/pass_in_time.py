"""A pass of ranking that keeps to deadlines: in one call if there is ample time, otherwise in blocks, the best first.

What a pass costs is measured by its last calls. A block takes a part of the time that is left, and the clock is looked
at before each; what no block had time for stays unranked. A document's score is the same in any block, to the last bit,
unless the ranker compares the documents of a query: of such a query all documents are ranked together, or none.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwell.scoring.composition import best_places

Score = Callable[[Sequence[int], Sequence[np.ndarray]], np.ndarray]
"""The scores of candidates, one query after the other, by the numbers of queries and the places of their candidates."""

# Time is ample if it is so many times as long as the pass is expected to take: costs vary with load.
_AMPLE = 3.0
# What a block may take of the time that is left to the most urgent query.
_BLOCK_SHARE = 1 / 4
# A smaller block of a query would cost little less.
_LEAST_BLOCK = 32
# The median of so many calls is the cost: one that waited for a compiler or another program does not count.
_CALLS_REMEMBERED = 5


class RankedInTime(NamedTuple):
    """What was ranked of one query: places of candidates, int64, ascending, and their scores, float64."""

    places: np.ndarray
    scores: np.ndarray


class PassInTime:
    """The calls of one pass, and what they cost.

    Parameters
    ----------
    scores_alone : bool
        Whether a document's score does not depend on the query's other documents.
    """

    def __init__(self, *, scores_alone: bool) -> None:
        self._scores_alone = scores_alone
        self._costs: deque[float] = deque(maxlen=_CALLS_REMEMBERED)

    def run(
        self,
        score: Score,
        places: Sequence[np.ndarray],
        before: Sequence[np.ndarray],
        deadlines: Sequence[float] | None = None,
    ) -> list[RankedInTime]:
        """What is ranked of each query before its deadline.

        places : which candidates are to be ranked, int64, ascending; before : the scores of all candidates in the stage
        before; deadlines : times of `time.monotonic()`
        """
        until = [math.inf] * len(places) if deadlines is None else list(deadlines)
        done: list[list[RankedInTime]] = [[] for _ in places]
        left = dict(enumerate(places))
        while left := {query: own for query, own in left.items() if len(own) and time.monotonic() < until[query]}:
            taken = self._next(left, before, until)
            started = time.perf_counter()
            scores = score(list(taken), list(taken.values()))
            self._costs.append((time.perf_counter() - started) / max(1, len(scores)))
            ends = np.cumsum([len(own) for own in taken.values()])[:-1]
            for (query, own), part in zip(taken.items(), np.split(scores, ends), strict=True):
                done[query].append(RankedInTime(own, part))
                left[query] = (
                    np.setdiff1d(left[query], own, assume_unique=True) if len(own) < len(left[query]) else own[:0]
                )
        return list(map(_joined, done))

    def _next(
        self, left: Mapping[int, np.ndarray], before: Sequence[np.ndarray], until: Sequence[float]
    ) -> Mapping[int, np.ndarray]:
        """The candidates of the next call, of those that are left."""
        urgent = min(left, key=until.__getitem__)
        seconds = until[urgent] - time.monotonic()
        # Without a call to measure, a small block is the first.
        cost = statistics.median(self._costs) if self._costs else math.inf
        if seconds >= _AMPLE * cost * sum(map(len, left.values())):
            return left
        if not self._scores_alone:
            return {urgent: left[urgent]}
        n_docs = int(_BLOCK_SHARE * seconds / cost) if cost > 0.0 else _LEAST_BLOCK
        each = max(_LEAST_BLOCK, n_docs // len(left))
        return {query: own[best_places(before[query][own], each)] for query, own in left.items()}


def _joined(parts: Sequence[RankedInTime]) -> RankedInTime:
    if len(parts) == 1:
        return parts[0]
    places = np.concatenate([np.empty(0, np.int64), *(part.places for part in parts)])
    scores = np.concatenate([np.empty(0), *(part.scores for part in parts)])
    order = np.argsort(places)
    return RankedInTime(places[order], scores[order])
