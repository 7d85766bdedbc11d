"""What does a forward index cost, and what does it save?

Reuters-21578 with title, body and source, stemmed, in one segment, with and without the forward index; without the
collection, synthetic documents. Sizes are bytes of the index's folder over bytes of the text (lines of JSON). Feedback
is the relevance-model features of whole document, title and body for the 50 candidates of a query, from the candidates
and their hits to the values, on one thread: "new" queries have feedback documents whose texts were not cut before. The
values must be the same with and without. More like this (of documents that were not cut before) and captions are those
of the ten best documents of each query. Figures are the mean over queries of the fastest of several runs; the index
is on disk, in the page cache, and its pages were checked by an earlier query.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.harness import Benchmark
from rankwell.features.feature_set import FeatureSet
from rankwell.features.feedback import with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import Hits
from rankwell.index.analysis import Analysis
from rankwell.index.caption import find_caption, query_places
from rankwell.index.document_terms import DocumentTerms
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.selection import SearchResult
from rankwell.index.writer import IndexWriter

FEATURES = FeatureSet(["relevance_model.whole", "relevance_model.title", "relevance_model.body"])
N_CANDIDATES = 50
MOST_MILLISECONDS = 0.5
MOST_SIZE = 1.2

Job = tuple[Hits, SearchResult]


def run(bench: Benchmark) -> None:
    n_docs, n_queries = (1500, 5) if bench.quick else (None, 100)
    lines = list(islice(_lines(bench), n_docs))
    with tempfile.TemporaryDirectory(prefix="rankwell-forward-") as folder:
        without, with_it = (_build(f"{folder}/{name}", lines, name) for name in ("none", "all"))
        _record_sizes(bench, lines, without, with_it)
        queries = _queries(lines, n_queries)
        values = [_record_feedback(bench, index, queries) for index in (without, with_it)]
        found = [_record_uses(bench, index, queries) for index in (without, with_it)]
        bench.check("the same documents and captions with and without a forward index", found[0] == found[1])
        bench.check("the same values with and without a forward index", np.array_equal(*values))


def _lines(bench: Benchmark) -> list[bytes]:
    source = bench.data("text/reuters21578/corpus.jsonl.gz")
    if source is not None:
        return gzip.decompress(source.read_bytes()).splitlines()
    random = np.random.default_rng(4)
    documents = [
        {"id": str(number), "body": " ".join(f"w{word}" for word in random.zipf(1.3, 120) % 20_000)}
        for number in range(1500)
    ]
    return [
        json.dumps(document | {"title": document["body"][:20], "source": "made"}).encode() for document in documents
    ]


def _build(path: str, lines: list[bytes], forward: str) -> Index:
    streams: Literal["all"] | tuple[str, ...] = "all" if forward == "all" else ()
    schema = Schema(["title", "body", "source"], forward=streams)
    with IndexWriter(path, schema=schema, analysis=Analysis(stemmer="english"), memory_bytes=2**30) as writer:
        writer.add(map(json.loads, lines))
        writer.merge()
    return Index.open(path)


def _record_sizes(bench: Benchmark, lines: list[bytes], without: Index, with_it: Index) -> None:
    n_text = sum(len(line) + 1 for line in lines)
    for name, index in (("without", without), ("with", with_it)):
        assert index.path is not None
        n_bytes = sum(file.stat().st_size for file in Path(index.path).iterdir())
        largest = sorted(
            ((index.segments[0].unverified(one).nbytes, one) for one in index.segments[0].names), reverse=True
        )
        bench.record(
            f"size {name} a forward index",
            value=n_bytes / n_text,
            unit="x the text",
            target=MOST_SIZE if name == "without" and not bench.quick else None,
            note=", ".join(f"{one} {size / n_text:.2f}" for size, one in largest[:6]),
        )


def _queries(lines: list[bytes], n_queries: int) -> list[str]:
    """Four words of one document each."""
    random, queries = np.random.default_rng(0), []
    while len(queries) < n_queries:
        words = json.loads(lines[int(random.integers(len(lines)))]).get("body", "").split()
        if len(words) > 20:
            queries.append(" ".join(words[5:9]))
    return queries


def _record_feedback(bench: Benchmark, index: Index, queries: list[str]) -> np.ndarray:
    jobs: list[Job] = []
    for text in queries:
        query = index.parse(text, plain=True)
        found = index.search(query, k=N_CANDIDATES)
        jobs.append((collect_hits(index, [query], [found.docs], n_jobs=1), found))
    values = np.concatenate([_feedback(index, job) for job in jobs])
    name = "with" if index.schema.forward else "without"
    for case in ("new", "known"):
        seconds = [_fastest(index, job, 3 if bench.quick else 9, new=case == "new") for job in jobs]
        bench.record(
            f"feedback of {case} documents, {name} a forward index",
            value=float(np.mean(seconds)) * 1e3,
            unit="ms/query",
            target=MOST_MILLISECONDS if name == "with" and not bench.quick else None,
            note=f"{len(FEATURES)} features, {N_CANDIDATES} candidates; the slowest query {max(seconds) * 1e3:.2f} ms",
        )
    return values


def _record_uses(bench: Benchmark, index: Index, queries: list[str]) -> list[object]:
    """More like this, and captions: of the ten best documents of each query."""
    results = [index.search(query, k=10, plain=True) for query in queries]
    fields = {doc: index.stored(doc) for result in results for doc in result.docs.tolist()}

    def alike() -> list[object]:
        DocumentTerms.of(index).forget_documents()
        return [index.more_like(result.ids[0]).ids for result in results]

    def captions() -> list[object]:
        return [
            find_caption(fields[doc], result.query, index.analysis, places=query_places(index, doc, result.query))
            for result in results
            for doc in result.docs.tolist()
        ]

    name, found = "with" if index.schema.forward else "without", []
    for case, answer, n_answers in (
        ("more like this", alike, len(results)),
        ("caption", captions, sum(len(result) for result in results)),
    ):
        timing = bench.time(f"{case}, {name}", answer, repeat=2 if bench.quick else 7)
        bench.record(f"{case}, {name} a forward index", value=timing.minimum / n_answers * 1e6, unit="µs")
        found += answer()
    return found


def _fastest(index: Index, job: Job, repeat: int, *, new: bool) -> float:
    seconds = []
    for _ in range(repeat):
        if new:
            DocumentTerms.of(index).forget_documents()
        start = time.perf_counter()
        _feedback(index, job)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _feedback(index: Index, job: Job) -> np.ndarray:
    hits, found = job
    return with_feedback(hits, FEATURES, index, [found], [found.docs], n_jobs=1).statics
