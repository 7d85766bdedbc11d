"""Synthetic judged queries that resemble real ones: something to learn, and features as in web search.

How a collection is made. Each document has hidden strengths, one for each of five *streams* (body, anchor, title, URL,
whole document), which are correlated. Features are noisy views of one stream each, bent into the kinds of numbers that
real collections hold (counts, scores, ratios, flags, ...). Relevance is a linear part, a non-linear part and
interactions of the strengths, an offset of the query and noise; labels are its grades.

Documents are made in blocks of a fixed size, each with its own random generator, so the same seed gives the same bytes
on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.shapes import UNNAMED, Shape, shape_named
from rankwell.data.synthetic_features import N_STREAMS, draw_features, fill_features
from rankwell.errors import ParameterError
from rankwell.kernels.threads import available_cores

BLOCK = 8192  # documents made at a time

_WHOLE, _BLOCK = 0, 1  # spawn keys: the seed of the whole collection differs from those of its blocks
_TOGETHER = 0.6  # how much of a document's strength its streams share


def make_ranking(
    shape: str | None = None,
    *,
    n_docs: int | None = None,
    n_queries: int | None = None,
    n_features: int | None = None,
    scale: float = 1.0,
    n_levels: int | None = None,
    missing: float = 0.0,
    noise: float = 1.0,
    skew: bool = True,
    standardised: bool = False,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> RankingDataset:
    """Make a synthetic collection, of a paper's size or of your own.

    Parameters
    ----------
    shape : str, optional
        The name of a collection in the papers, as ``make_ranking("far", scale=0.01)``: one of `rankwell.data.shapes`.
        By default 10,000 documents, 100 queries, 50 features, labels 0 to 4 distributed as in MSLR-WEB10K.
    n_docs, n_queries, n_features : int, optional
        Replace the shape's own numbers. If only one of `n_docs` and `n_queries` is given, the other changes in
        proportion.
    scale : float
        Multiplies the number of queries and of documents; the number of features stays.
    n_levels : int, optional
        Labels 0 ... n_levels - 1, each half as frequent as the one below, instead of the shape's own.
    missing : float
        The share of values that are missing (NaN), up to 0.5, more in some features than in others.
    noise : float
        Standard deviation of what cannot be learned, relative to about 1 for what can be learned.
    skew : bool
        False leaves every feature normally distributed.
    standardised : bool
        Bring each feature to mean 0 and variance 1.
    random_state : int
        The seed. Another seed is another problem: take training and test data from one collection
        (`RankingDataset.subset`).
    n_jobs : int, optional
        Threads; None or -1 is every core. The result does not depend on it.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> data.features.shape, data.n_queries
    ((300, 5), 15)
    """
    wanted = _shape_wanted(shape, n_docs, n_queries, n_features, scale, n_levels)
    _check_settings(missing, noise, random_state)
    generator = np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(_WHOLE,)))
    sizes = _draw_query_sizes(generator, wanted)
    query_of_rows = np.repeat(np.arange(wanted.n_queries), sizes)
    query_strengths = generator.standard_normal((N_STREAMS, wanted.n_queries), dtype=np.float32)
    plan = draw_features(generator, wanted.n_features, skew=skew, missing=missing)
    relevance = Relevance.draw(generator, wanted, noise)
    features = np.empty((wanted.n_docs, wanted.n_features), dtype=np.float32)
    scores = np.empty(wanted.n_docs)

    def fill(rows: slice) -> None:
        seed = np.random.SeedSequence(random_state, spawn_key=(_BLOCK, rows.start // BLOCK))
        own = np.random.default_rng(seed)
        queries = query_of_rows[rows]
        strengths = _draw_strengths(own, len(queries))
        scores[rows] = relevance.of(own, strengths, queries)
        fill_features(own, plan, strengths, query_strengths[:, queries], features[rows])

    _for_each_block(fill, wanted.n_docs, n_jobs)
    if standardised:
        _standardise(features, n_jobs)
    elif wanted.scaled_by_query:
        _scale_by_query(features, sizes)
    labels = _order(scores, query_of_rows) if wanted.is_listwise else _grade(scores, wanted.level_shares)
    return RankingDataset(features, labels, group=sizes)


def _shape_wanted(
    name: str | None,
    n_docs: int | None,
    n_queries: int | None,
    n_features: int | None,
    scale: float,
    n_levels: int | None,
) -> Shape:
    """The shape asked for, its numbers replaced and scaled, checked."""
    if name is not None and not isinstance(name, str):
        raise ParameterError(
            f"must be a name, got {name!r}. Give sizes by name too: n_docs={name!r}.", parameter="shape"
        )
    if not (np.isfinite(scale) and scale > 0):
        raise ParameterError(f"must be above 0, got {scale}.", parameter="scale")
    if n_levels is not None and n_levels < 2:
        raise ParameterError(f"must be 2 or more, got {n_levels}.", parameter="n_levels")
    for given, size in (("n_docs", n_docs), ("n_queries", n_queries), ("n_features", n_features)):
        if size is not None and size < 1:
            raise ParameterError(f"{given} must be 1 or more, got {size}.")
    shape = UNNAMED if name is None else shape_named(name)
    docs, queries, longest = _resized(shape, n_docs, n_queries, scale)
    if docs < queries:
        raise ParameterError(f"must be at least n_queries: {docs} documents for {queries} queries.", parameter="n_docs")
    return replace(
        shape,
        n_docs=docs,
        n_queries=queries,
        n_features=shape.n_features if n_features is None else n_features,
        level_shares=shape.level_shares if n_levels is None else tuple(0.5**level for level in range(n_levels)),
        longest=longest,
    )


def _resized(shape: Shape, n_docs: int | None, n_queries: int | None, scale: float) -> tuple[int, int, int | None]:
    """Documents, queries and the longest query: given one size, the other keeps the shape's documents per query."""
    docs_a_query = shape.n_docs / shape.n_queries
    docs: float = shape.n_docs
    queries: float = shape.n_queries
    if n_docs is not None:
        docs = n_docs
        queries = docs / docs_a_query if n_queries is None else n_queries
    elif n_queries is not None:
        docs, queries = n_queries * docs_a_query, n_queries
    longest = None if n_docs is not None and n_queries is not None else shape.longest
    return max(1, round(docs * scale)), max(1, round(queries * scale)), longest


def _check_settings(missing: float, noise: float, random_state: int) -> None:
    if not 0 <= missing <= 0.5:
        raise ParameterError(f"must be a share from 0 to 0.5, got {missing}.", parameter="missing")
    if not (np.isfinite(noise) and noise >= 0):
        raise ParameterError(f"must be 0 or more, got {noise}.", parameter="noise")
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ParameterError(f"must be a whole number, 0 or more, got {random_state!r}.", parameter="random_state")


def _draw_query_sizes(generator: np.random.Generator, shape: Shape) -> np.ndarray:
    """Log-normal sizes of 1 to `longest` that add up to the number of documents, int64 (n_queries,)."""
    weights = np.exp(shape.size_spread * generator.standard_normal(shape.n_queries))
    longest = shape.n_docs if shape.longest is None else shape.longest
    low, high = 0.0, float(shape.n_docs) / weights.min()
    for _ in range(200):  # halves the interval until no float64 is left inside
        middle = (low + high) / 2
        if np.clip(middle * weights, 1, longest).sum() < shape.n_docs:
            low = middle
        else:
            high = middle
    exact = np.clip(high * weights, 1, longest)
    sizes = np.floor(exact).astype(np.int64)
    left_over = shape.n_docs - int(sizes.sum())
    sizes[np.argsort(sizes - exact, kind="stable")[:left_over]] += 1
    return sizes


def _draw_strengths(generator: np.random.Generator, n_docs: int) -> np.ndarray:
    """Hidden strengths, float32 (N_STREAMS, n_docs): variance 1, the streams of a document are correlated."""
    together = generator.standard_normal(n_docs, dtype=np.float32)
    strengths = generator.standard_normal((N_STREAMS, n_docs), dtype=np.float32)
    strengths *= np.float32(np.sqrt(1 - _TOGETHER**2))
    strengths += np.float32(_TOGETHER) * together
    return strengths


@dataclass(frozen=True)
class Relevance:
    """What makes a document relevant: drawn once for a collection.

    Attributes
    ----------
    weights : float64 array (N_STREAMS,)
        The weights of the linear part, scaled to variance 1.
    query_offsets : float64 array (n_queries,)
        Some queries have many good documents, some have none.
    noise : float
    """

    weights: np.ndarray
    query_offsets: np.ndarray
    noise: float

    @classmethod
    def draw(cls, generator: np.random.Generator, shape: Shape, noise: float) -> Relevance:
        weights = generator.uniform(0.5, 1.5, N_STREAMS)
        variance = _TOGETHER**2 * weights.sum() ** 2 + (1 - _TOGETHER**2) * (weights**2).sum()
        offsets = shape.query_spread * generator.standard_normal(shape.n_queries)
        return cls(weights / np.sqrt(variance), offsets, noise)

    def of(self, generator: np.random.Generator, strengths: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Relevance of documents with `strengths` (N_STREAMS, n_docs), float64 (n_docs,)."""
        body, anchor, title, url, whole = strengths.astype(np.float64)
        linear = (self.weights[:, np.newaxis] * strengths).sum(axis=0)
        bent = np.tanh(2 * title) - 0.7 * (body**2 - 1)  # a title matches or not; too many repetitions are spam
        joint = anchor * url - _TOGETHER**2 + np.where((title > 0) & (whole > 0), 0.5, -0.5)
        noise = self.noise * generator.standard_normal(len(queries))
        return 0.4 * linear + 0.5 * bent + 0.5 * joint + self.query_offsets[queries] + noise


def _grade(scores: np.ndarray, level_shares: tuple[float, ...]) -> np.ndarray:
    """Labels 0, 1, ... for these shares of the documents, the lowest scores first."""
    shares = np.cumsum(level_shares) / np.sum(level_shares)
    ordered = np.sort(scores)
    ends = np.rint(shares[:-1] * len(scores)).astype(np.int64)
    cuts = ordered[np.minimum(ends, len(scores) - 1)]
    return np.searchsorted(cuts, scores, side="right").astype(np.float64)


def _order(scores: np.ndarray, query_of_rows: np.ndarray) -> np.ndarray:
    """Labels that order each query totally: from the number of its documents (the best) down to 1."""
    order = np.lexsort((scores, query_of_rows))
    first_row = np.searchsorted(query_of_rows, query_of_rows)
    labels = np.empty(len(scores))
    labels[order] = np.arange(len(scores)) - first_row + 1
    return labels


def _standardise(features: np.ndarray, n_jobs: int | None) -> None:
    """Bring each column to mean 0 and variance 1, in place; a column that does not vary becomes 0."""

    def moments(rows: slice) -> np.ndarray:
        block = features[rows].astype(np.float64)
        return np.stack([np.count_nonzero(~np.isnan(block), axis=0), np.nansum(block, 0), np.nansum(block**2, 0)])

    # Added up in the order of the blocks: the sums do not depend on the number of threads.
    number, total, squares = np.sum(_for_each_block(moments, len(features), n_jobs), axis=0)
    number = np.maximum(number, 1)
    mean = total / number
    variance = squares / number - mean**2
    varies = variance > 1e-12 * squares / number
    spread = np.sqrt(np.where(varies, variance, 1)).astype(np.float32)
    centre = mean.astype(np.float32)

    def standardise(rows: slice) -> None:
        block = features[rows]
        block -= centre
        block /= spread
        block[:, ~varies] *= 0

    _for_each_block(standardise, len(features), n_jobs)


def _scale_by_query(features: np.ndarray, sizes: np.ndarray) -> None:
    """Bring each feature to 0 ... 1 within each query, in place; a feature that does not vary there becomes 0."""
    for part in np.split(features, np.cumsum(sizes)[:-1]):
        lowest, highest = np.fmin.reduce(part), np.fmax.reduce(part)
        part -= lowest
        part /= np.where(highest > lowest, highest - lowest, np.float32(1))


def _for_each_block(task: Callable[[slice], Any], n_docs: int, n_jobs: int | None) -> list[Any]:
    """Run `task` on the rows of every block, on `n_jobs` threads, and return what it returned, in order."""
    if n_jobs is not None and (n_jobs == 0 or n_jobs < -1):
        raise ParameterError(
            f"must be a number of threads, or -1 or None for every core, got {n_jobs}.", parameter="n_jobs"
        )
    n_threads = available_cores() if n_jobs is None or n_jobs == -1 else n_jobs
    blocks = [slice(start, min(start + BLOCK, n_docs)) for start in range(0, n_docs, BLOCK)]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(task, blocks))
