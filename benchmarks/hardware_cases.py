"""Rounds for accelerators, random and adversarial, and what the product's kernels choose for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.kernels.boosting.cpu.histograms import (
    GROUP,
    build_histograms,
    choose_weak_ranker,
    integrate_histograms,
    new_search,
)

KINDS = ("random", "same", "few", "distances", "ties", "complements", "staircase", "one document", "large", "constant")


@dataclass(frozen=True)
class Round:
    """bins : uint8 (n_groups, n_docs, 16); pi : int32 (n_docs,), sum 0"""

    kind: str
    bins: np.ndarray
    n_features: int
    pi: np.ndarray
    margin: int


def make_round(rng: np.random.Generator, kind: str, *, n_bins: int = 256, most_features: int = 40) -> Round:
    """A round of a kind of `KINDS`."""
    n_docs = 1 if kind == "one document" else int(rng.integers(2, 120))
    n_features = int(rng.integers(1, most_features + 1))
    rows = rng.integers(0, n_bins, (n_docs, n_features))
    pi = rng.integers(-(2**17), 2**17, n_docs)
    margin = int(rng.choice([0, 1, 24, 2**10, 2**16]))
    if kind == "same":  # one bin again and again, then another
        rows[: n_docs // 2], rows[n_docs // 2 :] = rows[0], rows[-1]
    elif kind == "few":
        rows = rng.integers(0, 3, (n_docs, n_features)) * (n_bins // 3)
    elif kind == "distances":  # the same bin again after 1 to 6 others
        period = rng.integers(1, 7, n_features)
        rows = np.arange(n_docs)[:, None] % period
    elif kind == "ties":
        rows[:] = rows[:, :1]
    elif kind == "complements":  # r and −r
        rows[:, 1::2] = n_bins - 1 - rows[:, : n_features // 2 * 2 : 2]
    elif kind == "staircase":  # |r| rises by a little from bin to bin: many records
        rows = np.repeat(np.arange(n_docs)[:, None] % n_bins, n_features, axis=1)
        pi = np.ones(n_docs, dtype=np.int64)
        margin = int(rng.integers(0, 60))
    elif kind in ("large", "constant"):
        pi[:] = 0
    if kind == "large":
        pi[:2] = (2**30 + 57, -(2**30) - 57)
    pi[-1] -= pi.sum()
    return Round(kind, interleaved(rows.astype(np.uint8)), n_features, pi.astype(np.int32), margin)


def random_stalls(rng: np.random.Generator, n_streams: int) -> np.ndarray:
    """Streams held back in a third of all cycles, in bursts and one by one, as a simulation takes them."""
    held = rng.random((257, n_streams)) < rng.choice([0.1, 0.5, 0.9], n_streams)
    stalls: np.ndarray = (held.astype(np.uint64) << np.arange(n_streams, dtype=np.uint64)).sum(axis=1).astype(np.uint64)
    return stalls


def interleaved(rows: np.ndarray) -> np.ndarray:
    """The layout "interleaved16" of uint8 (n_docs, n_features)."""
    n_docs, n_features = rows.shape
    n_groups = -(-n_features // GROUP)
    bins = np.zeros((n_docs, n_groups * GROUP), dtype=np.uint8)
    bins[:, :n_features] = rows
    return np.ascontiguousarray(bins.reshape(n_docs, n_groups, GROUP).transpose(1, 0, 2))


def chosen_by_kernels(case: Round) -> tuple[int, int, int]:
    """Feature, bin and r as the CPU's kernels find them; (−1, −1, 0) if none helps."""
    search = new_search(case.bins, case.n_features, 1)
    for group in range(len(case.bins)):
        build_histograms(search.words, case.pi, search.partial, group)
    integrate_histograms(search.partial, 256, search.table, search.largest, 0, case.n_features)
    feature, threshold = choose_weak_ranker(search.table, search.largest, 256, case.margin)
    return int(feature), int(threshold), int(search.table[feature, threshold]) if feature >= 0 else 0
