"""The sizes of the collections in the papers, by name, so that a benchmark can be run at the size a paper reports.

Each is the data that the paper *trains* on. A paper's number of pairs (documents of one query with different labels)
determines what its other numbers leave open: how query sizes vary, and how labels are distributed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import ParameterError


@dataclass(frozen=True)
class Shape:
    """The size and the characteristics of a collection.

    Attributes
    ----------
    n_docs, n_queries, n_features : int
    level_shares : tuple of float
        The share of documents with label 0, 1, ...; empty where each query's documents are totally ordered, with labels
        from the query's size down to 1.
    size_spread : float
        Standard deviation of the logarithm of a query's size.
    longest : int or None
        No query has more documents than this.
    query_spread : float
        Standard deviation of the queries' offsets, relative to about 1 for what can be learned within a query: the
        larger, the more queries have documents of one label only.
    scaled_by_query : bool
        Features are brought to 0 ... 1 within each query, as LETOR 4.0 publishes them.
    n_pairs : int or None
        As the paper counts them.
    source : str
        Where the numbers come from, and which of them are our own.
    """

    n_docs: int
    n_queries: int
    n_features: int
    level_shares: tuple[float, ...]
    size_spread: float
    longest: int | None = None
    query_spread: float = 0.6
    scaled_by_query: bool = False
    n_pairs: int | None = None
    source: str = ""

    @property
    def is_listwise(self) -> bool:
        return not self.level_shares


_MSLR_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)
_RANKSVM_TABLE = "Jin & Lin 2014, Efficient Parallel Algorithms for Linear RankSVM on GPU, Table 1"

SHAPES: dict[str, Shape] = {
    "far": Shape(
        n_docs=1_196_711,
        n_queries=25_724,
        n_features=646,
        level_shares=(0.71, 0.14, 0.08, 0.04, 0.02, 0.01),
        size_spread=0.5,
        n_pairs=15_146_236,
        source="Xu et al. 2009, FPGA Acceleration of RankBoost, Table II. Labels 0 (not judged) and 1 to 5 as in its "
        "section 2.2; their shares are ours, set to meet its number of pairs.",
    ),
    "cuda2010": Shape(
        n_docs=173_354,
        n_queries=3_726,
        n_features=2_576,
        level_shares=(0.57, 0.19, 0.12, 0.07, 0.03, 0.02),
        size_spread=0.5,
        n_pairs=2_927_004,
        source="Wang et al. 2010, RankBoost Acceleration on both NVIDIA CUDA and ATI Stream, Table I. It does not give "
        "the number of queries: ours has as many documents per query as `far`; its shares meet the number of pairs.",
    ),
    "mslr10k": Shape(
        n_docs=723_421,
        n_queries=6_000,
        n_features=136,
        level_shares=_MSLR_SHARES,
        size_spread=0.5,
        longest=809,
        n_pairs=31_783_391,
        source=f"{_RANKSVM_TABLE}: the training part of MSLR-WEB10K. The collection has the five labels 0 to 4.",
    ),
    "mslr30k": Shape(
        n_docs=2_270_296,
        n_queries=18_919,
        n_features=136,
        level_shares=_MSLR_SHARES,
        size_spread=0.5,
        longest=1_251,
        n_pairs=101_312_036,
        source=f"{_RANKSVM_TABLE}: the training part of MSLR-WEB30K. The collection has the five labels 0 to 4.",
    ),
    "mq2007-list": Shape(
        n_docs=743_790,
        n_queries=1_017,
        n_features=46,
        level_shares=(),
        size_spread=0.23,
        longest=1_268,
        scaled_by_query=True,
        n_pairs=285_943_893,
        source=f"{_RANKSVM_TABLE}: 1,268 labels, as many as the longest query has documents.",
    ),
    "mq2008-list": Shape(
        n_docs=540_679,
        n_queries=471,
        n_features=46,
        level_shares=(),
        size_spread=0.21,
        longest=1_831,
        scaled_by_query=True,
        n_pairs=323_151_792,
        source=f"{_RANKSVM_TABLE}; the same 471 queries and 540,679 documents in Li 2019, Acceleration of ListNet.",
    ),
    "mq2007": Shape(
        n_docs=42_158,
        n_queries=1_017,
        n_features=46,
        level_shares=(0.75, 0.2, 0.05),
        size_spread=0.15,
        longest=147,
        query_spread=1.6,
        scaled_by_query=True,
        n_pairs=246_015,
        source=f"{_RANKSVM_TABLE}. The collection has the three labels 0 to 2.",
    ),
    "mq2008": Shape(
        n_docs=9_630,
        n_queries=471,
        n_features=46,
        level_shares=(0.81, 0.13, 0.06),
        size_spread=0.76,
        longest=121,
        scaled_by_query=True,
        n_pairs=52_325,
        source=f"{_RANKSVM_TABLE}. The collection has the three labels 0 to 2.",
    ),
}

UNNAMED = Shape(n_docs=10_000, n_queries=100, n_features=50, level_shares=_MSLR_SHARES, size_spread=0.5)


def shape_named(name: str) -> Shape:
    """The shape of that name, or an error that lists them."""
    if name not in SHAPES:
        raise ParameterError(f"must be one of {', '.join(SHAPES)}, got {name!r}.", parameter="shape")
    return SHAPES[name]
