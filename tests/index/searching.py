"""Indexes for tests of search, and what they should answer: the reference, which reads every document."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from tests.index.segments import build

from rankwell.corpus.document import Document
from rankwell.index.analysis import Analysis
from rankwell.index.bm25 import BM25, BM25F
from rankwell.index.query import parse_query
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.selection import SearchResult
from rankwell.kernels.selection.reference import Model, Restrictions, search_documents

Texts = Sequence[dict[str, str]]


def make_index(
    documents: Texts,
    *,
    cuts: Sequence[int] = (),
    deleted: Sequence[int] = (),
    streams: Sequence[str] = (),
    analysis: Analysis | None = None,
) -> Index:
    """An index in memory: segments end before the documents numbered in `cuts`; `deleted` ones are not live."""
    schema, analysis = Schema(streams), analysis or Analysis()
    bounds = [0, *sorted(set(cuts)), len(documents)]
    segments, live = [], []
    for start, stop in itertools.pairwise(bounds):
        own = [Document(f"d{start + i}", texts) for i, texts in enumerate(documents[start:stop])]
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
) -> list[tuple[int, float]]:
    """(document, score) as the reference finds them."""
    parsed, columns = parse_query(query, index.analysis), (model or BM25()).columns(index.schema)
    numbers = [doc for doc in range(len(documents)) if doc not in set(deleted)]
    cut = [[index.analysis.cut(documents[doc].get(name, "")) for name in index.schema.streams] for doc in numbers]
    restrictions = Restrictions(
        parsed.terms if match == "all" else parsed.required,
        parsed.phrases,
        parsed.excluded,
        parsed.excluded_phrases,
    )
    terms = dict(zip(parsed.terms, parsed.frequencies, strict=True))
    found = search_documents(
        cut, terms, Model(columns.k1, columns.columns, columns.b, columns.weights), restrictions, k
    )
    return [(numbers[doc], score) for doc, score in found]


def pairs(result: SearchResult) -> list[tuple[int, float]]:
    return list(zip(result.docs.tolist(), result.scores.tolist(), strict=True))
