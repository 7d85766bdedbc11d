"""How much longer does a query take with a filter?

400,000 documents of 5 to 60 words, drawn with the frequencies of words in text, in one segment. Queries of 1 to 5 words
are searched for the best 10 documents: without a filter, with filters that keep 1 % and 50 % of the documents, by a
keyword and by a range of numbers. One thread; from the texts of query and filter to the numbers of the documents. A
filter's documents are kept for later queries (as other engines do): its first use is a row of its own. The answers are
compared with those of all documents, filtered afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search.allowed_documents import forget_filters
from rankwell.index.writer import IndexWriter

VOCABULARY = 30_000
FILTERS = {
    "keyword, 1 %": ("kind:k7", lambda number: number % 100 == 7),
    "keyword, 50 %": ("half:yes", lambda number: number % 2 == 0),
    "range, 1 %": ("place:[7 TO 7]", lambda number: number % 100 == 7),
    "range, 50 %": ("place:<50", lambda number: number % 100 < 50),
}
MOST = 1.5


def run(bench: Benchmark) -> None:
    n_docs, n_queries = (20_000, 20) if bench.quick else (400_000, 300)
    with tempfile.TemporaryDirectory(prefix="rankwell-filter-") as folder:
        with IndexWriter(folder, schema=Schema(keywords=["kind", "half"]), memory_bytes=2**30) as writer:
            writer.add(_documents(n_docs))
            writer.merge()
        index = Index.open(folder)
        queries = _queries(n_queries)
        _check(bench, index, queries[:: max(1, n_queries // 20)])
        _time(bench, index, queries)


def _documents(n_docs: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(5)
    lengths = random.integers(5, 60, n_docs)
    for number, (length, shuffled) in enumerate(zip(lengths.tolist(), _shuffled(n_docs).tolist(), strict=True)):
        words = np.minimum(random.zipf(1.2, length), VOCABULARY).tolist()
        yield {
            "id": number,
            "body": " ".join(f"w{word}" for word in words),
            "kind": f"k{shuffled % 100}",
            "half": "yes" if shuffled % 2 == 0 else "no",
            "place": shuffled % 100,
        }


def _shuffled(n_docs: int) -> np.ndarray:
    """A number for each document, from which the fields that are filtered by are made."""
    return np.random.default_rng(9).permutation(n_docs)


def _queries(n_queries: int) -> list[str]:
    random = np.random.default_rng(1)
    return [
        " ".join(f"w{word}" for word in np.minimum(random.zipf(1.2, random.integers(1, 6)), VOCABULARY).tolist())
        for _ in range(n_queries)
    ]


def _check(bench: Benchmark, index: Index, queries: list[str]) -> None:
    n_docs = index.n_docs
    numbers = _shuffled(n_docs).tolist()
    for name, (text, keeps) in FILTERS.items():
        kept = np.array([keeps(number) for number in numbers])
        same = True
        for query in queries:
            everything = index.search(query, k=n_docs)
            wanted = kept[everything.docs]
            found = index.search(query, k=10, filter=text)
            same &= np.array_equal(found.docs, everything.docs[wanted][:10])
            same &= np.array_equal(found.scores, everything.scores[wanted][:10])
            same &= found.n_matches == int(wanted.sum())
        bench.check(f"{name}: the best of all documents, filtered afterwards, bit by bit", bool(same))


def _time(bench: Benchmark, index: Index, queries: list[str]) -> None:
    repeat = 2 if bench.quick else 7

    def answer(filter: str | None) -> list[np.ndarray]:
        return [index.search(query, k=10, filter=filter).docs for query in queries]

    unfiltered = bench.time("no filter", lambda: answer(None), repeat=repeat).minimum / len(queries)
    bench.record("no filter", value=unfiltered * 1e6, unit="µs/query")
    for name, (text, _) in FILTERS.items():
        seconds = bench.time(name, lambda text=text: answer(text), repeat=repeat).minimum / len(queries)
        bench.record(
            name,
            value=seconds / unfiltered,
            unit="x the query without it",
            target=None if bench.quick else MOST,
            note=f"{seconds * 1e6:.0f} µs a query, {unfiltered * 1e6:.0f} without a filter",
        )
        first = bench.time(
            f"{name}, first use",
            lambda text=text: index.search(queries[0], k=10, filter=text),
            repeat=repeat,
            setup=lambda: forget_filters(index),
        )
        bench.record(f"{name}, first use", value=first.minimum * 1e6, unit="µs", note="of one query with the filter")
