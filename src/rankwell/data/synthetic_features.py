"""The features of synthetic documents: noisy views of hidden strengths, bent into the kinds that web search has.

A feature first draws a bell-shaped u from the strength of its stream and from noise, and its kind turns u into what the
collection holds. The kinds and the streams take turns, as the columns of MSLR-WEB10K do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

N_STREAMS = 5  # body, anchor, title, URL, whole document

Bend = Callable[[np.ndarray, float, float], None]  # changes u (float32) in place, by a centre and a spread


def _leave(u: np.ndarray, centre: float, spread: float) -> None:
    u *= spread
    u += centre


def _score(u: np.ndarray, centre: float, spread: float) -> None:
    """As BM25: not below 0, and 0 for what does not match."""
    _leave(u, centre, spread)
    np.maximum(u, 0, out=u)


def _amount(u: np.ndarray, centre: float, spread: float) -> None:
    """As clicks or in-links: a heavy tail over many powers of ten."""
    _leave(u, centre, spread)
    np.exp(u, out=u)


def _count(u: np.ndarray, centre: float, spread: float) -> None:
    """As term frequencies: whole numbers, many of them 0."""
    _amount(u, centre, spread)
    np.floor(u, out=u)


def _log_probability(u: np.ndarray, centre: float, spread: float) -> None:
    """As language models: negative, with a long tail downwards."""
    _amount(u, centre, -spread)
    np.negative(u, out=u)


def _ratio(u: np.ndarray, centre: float, spread: float) -> None:
    """Between 0 and 1."""
    _amount(u, -centre, -spread)
    u += 1
    np.reciprocal(u, out=u)


def _level(u: np.ndarray, centre: float, spread: float) -> None:
    """As covered query terms: a few whole numbers from 0 to 7."""
    _leave(u, centre, spread)
    np.floor(u, out=u)
    np.clip(u, 0, 7, out=u)


def _rank(u: np.ndarray, centre: float, spread: float) -> None:
    """As PageRank in 16 bits."""
    _ratio(u, centre, spread)
    u *= 65535
    np.rint(u, out=u)


def _flag(u: np.ndarray, centre: float, spread: float) -> None:
    """0 or 1."""
    _leave(u, centre, spread)
    np.greater(u, 0, out=u, casting="unsafe")


@dataclass(frozen=True)
class Kind:
    """A kind of feature: how u is bent, and from which ranges its centre and spread are drawn."""

    bend: Bend
    centres: tuple[float, float]
    spreads: tuple[float, float]
    of_query: bool = False  # the same for all documents of a query, as inverse document frequencies


KINDS = (
    Kind(_score, (0.0, 20.0), (5.0, 15.0)),
    Kind(_count, (-1.0, 2.5), (0.8, 1.5)),
    Kind(_ratio, (-2.0, 1.0), (1.0, 2.0)),
    Kind(_log_probability, (1.5, 2.5), (0.3, 0.7)),
    Kind(_level, (0.5, 2.5), (0.8, 1.5)),
    Kind(_amount, (-1.0, 4.0), (1.5, 2.5)),
    Kind(_flag, (-1.5, 0.5), (1.0, 1.0)),
    Kind(_rank, (-2.0, 1.0), (1.0, 2.0)),
    Kind(_amount, (1.5, 2.5), (0.3, 0.6), of_query=True),
    Kind(_count, (-6.0, -4.0), (1.5, 2.0)),  # nearly always 0
)
PLAIN = Kind(_leave, (0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True)
class Feature:
    """One column: its kind, the stream it sees, and how clearly (0: not at all, 1: without noise)."""

    kind: Kind
    stream: int
    clarity: float
    centre: float
    spread: float
    missing: float


def draw_features(generator: np.random.Generator, n_features: int, *, skew: bool, missing: float) -> list[Feature]:
    """Draw the columns of a collection. `missing` is the mean share of missing values over them."""
    clarity = generator.uniform(0.3, 0.9, n_features)
    # About one in five does not depend on relevance; the first ten columns do, so that a small collection can be
    # learned.
    clarity[(generator.random(n_features) < 0.2) & (np.arange(n_features) >= 2 * N_STREAMS)] = 0.0
    shares = missing * generator.uniform(0.0, 2.0, n_features)
    places = generator.random((n_features, 2))
    features = []
    for number in range(n_features):
        kind = KINDS[number // N_STREAMS % len(KINDS)] if skew else PLAIN
        centre, spread = (
            low + place * (high - low)
            for (low, high), place in zip((kind.centres, kind.spreads), places[number].tolist(), strict=True)
        )
        share = min(float(shares[number]), 1.0)
        features.append(Feature(kind, number % N_STREAMS, float(clarity[number]), centre, spread, share))
    return features


def fill_features(
    generator: np.random.Generator,
    plan: list[Feature],
    strengths: np.ndarray,
    query_strengths: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill a block of documents.

    Parameters
    ----------
    generator : Generator
        The block's own.
    plan : list of Feature
    strengths, query_strengths : float32 arrays (N_STREAMS, n_docs)
        The strengths of each document in its query, and of the query it belongs to; both with variance 1.
    out : float32 array (n_docs, n_features)
    """
    columns = generator.standard_normal((len(plan), len(out)), dtype=np.float32)
    seen = np.float32(0.9) * strengths + np.float32(0.4) * query_strengths
    for feature, column in zip(plan, columns, strict=True):
        if feature.kind.of_query:
            column[:] = query_strengths[feature.stream]
        else:
            column *= np.float32(np.sqrt(1 - feature.clarity**2))
            column += np.float32(feature.clarity) * seen[feature.stream]
        feature.kind.bend(column, feature.centre, feature.spread)
        if feature.missing > 0:
            column[generator.random(len(column), dtype=np.float32) < feature.missing] = np.nan
    out[:] = columns.T
