"""How much time does a search save that stops early in a static order, and what does it lose?

*Loss*: CACM, in the default analysis, laid out by date, the newest first; the later articles are those with abstracts,
and more of them are relevant, so the date is a static that says something. The best 10 of the first documents, of which
about N match, are compared with the best 10 of all: NDCG@10 (trec), and how many of them are the same.

*Time*: the varied collection of `select_documents`, Reuters-21578 20 times with its words varied, laid out by random
numbers. They say nothing about relevance, so the share of the best documents that is kept is the share of matches that
is examined, the worst case. One thread, from the query's text to the numbers of the documents.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.select_documents import draw_queries, varied_collection
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import read_queries
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search.selection import SearchResult
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter
from rankwell.metrics import evaluate
from rankwell.metrics.conventions import get_convention
from rankwell.metrics.missed_documents import queries_of_run

LEVELS = (50, 100, 200, 400, 800)
TIMED_LEVELS = (1_000, 10_000, 50_000)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")


def run(bench: Benchmark) -> None:
    _measure_loss(bench)
    _measure_time(bench)


def _measure_loss(bench: Benchmark) -> None:
    folder = bench.data("text/cacm")
    if folder is None:
        return
    queries, qrels = read_queries(folder / "queries.tsv", operators=False), read_qrels(folder / "qrels.txt")
    asked = [query for query in queries if query.id in qrels]
    with tempfile.TemporaryDirectory(prefix="rankwell-static-") as path:
        schema = Schema(dates=["date"], static_order="date")
        with IndexWriter(path, schema=schema, analysis=Analysis.of_language("en")) as writer:
            writer.add(_dated(folder / "corpus.jsonl.gz"))
            writer.commit()
        index = Index.open(path)
        exact = {query.id: index.search(query.text, k=10) for query in asked}
        wanted = _ndcg(qrels, exact)
        matches = float(np.mean([result.n_matches for result in exact.values()]))
        bench.record(
            "CACM by date: NDCG@10 (trec), exact",
            value=wanted,
            unit="",
            better="higher",
            note=f"{len(asked)} queries, {matches:.0f} of {index.n_docs:,} documents match on average",
        )
        everything = {query.id: index.search(query.text, k=10, stop_after=index.n_docs) for query in asked}
        same = all(np.array_equal(everything[name].docs, exact[name].docs) for name in exact)
        bench.check("a search that may stop and does not gives the exact result", same)
        for level in LEVELS:
            found = {query.id: index.search(query.text, k=10, stop_after=level) for query in asked}
            bench.record(
                f"CACM by date: NDCG@10 (trec), stopped after about {level:,} matches",
                value=_ndcg(qrels, found),
                unit="",
                better="higher",
                note=f"exact {wanted:.4f}; {_loss(index, exact, found, 10)}",
            )


def _dated(corpus: Path) -> Iterator[dict[str, Any]]:
    """The articles, with the date in their source: CACM December, 1958."""
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            found = re.search(r"CACM (\w+)[,.]? *(\d{4})", record["source"])
            fields = {name: record[name] for name in ("id", "title", "body")}
            if found is not None:
                month = MONTHS.index(found[1]) + 1 if found[1] in MONTHS else 12
                fields["date"] = f"{found[2]}-{month:02d}-01"
            yield fields


def _ndcg(qrels: dict[str, dict[str, float]], found: dict[str, SearchResult]) -> float:
    run = {query: dict(zip(one.ids, one.scores.tolist(), strict=True)) for query, one in found.items()}
    judged, scores = queries_of_run(qrels, run, get_convention("trec"))
    return evaluate(judged, scores, metrics="ndcg@10", convention="trec").mean["ndcg@10"]


def _loss(index: Index, exact: dict[str, SearchResult], found: dict[str, SearchResult], k: int) -> str:
    """What was found of the exact results, and what was read for it."""
    shared = sum(len(np.intersect1d(exact[query].docs, found[query].docs)) for query in exact)
    share = shared / max(sum(map(len, exact.values())), 1)
    examined = np.mean([result.n_examined or 0 for result in found.values()]) / index.n_docs
    return f"{share:.0%} of the best {k:,} are the same; {examined:.0%} of the documents examined"


def _measure_time(bench: Benchmark) -> None:
    collection = varied_collection(bench)
    queries = [" ".join(query) for query in draw_queries(collection.words, 2 if bench.quick else 25)]
    statics = np.random.default_rng(4).random(len(collection.fields)).tolist()
    with tempfile.TemporaryDirectory(prefix="rankwell-static-") as path:
        schema = Schema(statics=["worth"], static_order="worth")
        with IndexWriter(path, schema=schema, analysis=Analysis()) as writer:
            documents = zip(collection.documents(), statics, strict=True)
            writer.add({**document, "worth": static} for document, static in documents)
            writer.merge()
        index = Index.open(path)
        pairs = [(index.search(query), index.search(query, stop_after=index.n_docs)) for query in queries]
        same = all(np.array_equal(exact.docs, everything.docs) for exact, everything in pairs)
        bench.check("random numbers: a search that may stop and does not gives the exact result", same)
        for k in (10, 1_000):
            _time(bench, index, queries, k)


def _time(bench: Benchmark, index: Index, queries: Sequence[str], k: int) -> None:
    repeat = 2 if bench.quick else 7

    def answer(stop_after: int | None) -> list[SearchResult]:
        return [index.search(query, k=k, stop_after=stop_after) for query in queries]

    exact = {str(place): result for place, result in enumerate(answer(None))}
    size = f"top {k:,} of {index.n_docs:,} documents by random numbers"
    whole = bench.time(f"{size}, exact", lambda: answer(None), repeat=repeat).minimum / len(queries)
    bench.record(f"{size}, exact", value=whole * 1e6, unit="µs/query")
    for level in TIMED_LEVELS:
        found = {str(place): result for place, result in enumerate(answer(level))}
        seconds = bench.time(f"{size}, {level:,}", lambda level=level: answer(level), repeat=repeat).minimum
        bench.record(
            f"{size}, stopped after about {level:,} matches",
            value=seconds / len(queries) * 1e6,
            unit="µs/query",
            rival="exact",
            rival_value=whole * 1e6,
            note=_loss(index, exact, found, k),
        )
