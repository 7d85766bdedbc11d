"""Indexes for tests of search, and what they should answer: the reference, which reads every document."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from tests.index.brute_force import BruteForce
from tests.index.segments import build, documents_of

from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.selection import SearchResult
from rankwell.index.text.analysis import Analysis

Texts = Sequence[Mapping[str, object]]


def make_index(
    documents: Texts,
    *,
    cuts: Sequence[int] = (),
    deleted: Sequence[int] = (),
    streams: Sequence[str] = (),
    statics: Sequence[str] = (),
    keywords: Sequence[str] = (),
    dates: Sequence[str] = (),
    analysis: Analysis | None = None,
    forward: Literal["all"] | Sequence[str] = (),
) -> Index:
    """An index in memory: segments end before the documents numbered in `cuts`; `deleted` ones are not live."""
    schema, analysis = Schema(streams, statics, keywords, dates, forward), analysis or Analysis()
    bounds = [0, *sorted(set(cuts)), len(documents)]
    segments, live = [], []
    for start, stop in itertools.pairwise(bounds):
        own = documents_of({"id": f"d{start + i}", **fields} for i, fields in enumerate(documents[start:stop]))
        segments.append(build(own, schema, analysis, n_jobs=1))
        flags = np.ones(stop - start, np.uint8)
        flags[[doc - start for doc in deleted if start <= doc < stop]] = 0
        live.append(None if flags.all() else flags)
    return Index(segments, live, schema, analysis)


def expected(
    index: Index,
    documents: Texts,
    query: str,
    *,
    k: int = 10,
    model: BM25 | BM25F | None = None,
    match: str = "any",
    deleted: Sequence[int] = (),
    **parsing: Any,
) -> list[tuple[int, float]]:
    """(document, score) as the reference finds them."""
    numbers = [doc for doc in range(len(documents)) if doc not in set(deleted)]
    reference = BruteForce([documents[doc] for doc in numbers], index.schema, index.analysis)
    found = reference.search(index.parse(query, **parsing), model or BM25(), match, k)
    return [(numbers[doc], score) for doc, score in found]


def pairs(result: SearchResult) -> list[tuple[int, float]]:
    return list(zip(result.docs.tolist(), result.scores.tolist(), strict=True))
