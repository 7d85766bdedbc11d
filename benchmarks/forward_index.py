"""What does a forward index cost, and what does it save?

Reuters-21578 with title, body and source, stemmed, in one segment, with and without the forward index; without the
collection, synthetic documents. Sizes are bytes of all files of the index's folder over bytes of the text, which is the
file that was indexed: lines of JSON, plain, with their ids and names of fields. The index has positions and stores all
fields; so has and does tantivy's, in one segment, with its default compression (lz4). Feedback is the relevance-model
features of whole document, title and body for the 50 candidates of a query, from the candidates and their hits to the
values, on one thread: "new" queries have feedback documents whose texts were not cut before; "4 segments" is the same
index written in four commits. The values must be the same with and without, and in 4 segments. More like this (of
documents that were not cut before) is that of the best document of each query. Figures are the mean over queries of the
fastest of several runs; the index is on disk, in the page cache, and its pages were checked by an earlier query.

Captions: what a node shows of the ten best documents of a query, from their numbers to the results with titles,
captions and stored fields, in processor time; for documents that were never shown ("new"), or were shown just before
("known"). *Varied* is that of `select_documents`, *long* is Reuters with documents joined to 20,000 characters.
Words are found in the stored text, by the forward index, or by what is chosen, which is the forward index for texts of
`LEAST_INDEXED` characters or more. The captions must be the same. The figure is the fastest of several rounds over all
queries, by their number.
"""

from __future__ import annotations

import gzip
import json
import math
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.index_text import size_of_folder
from benchmarks.rivals import tantivy_index
from benchmarks.select_documents import draw_queries, varied_collection
from rankwell.features.feature_set import FeatureSet
from rankwell.features.feedback import with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import Hits
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.search import caption
from rankwell.index.search.selection import SearchResult
from rankwell.index.segments.document_terms import DocumentTerms
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter
from rankwell.serving.answer import Result
from rankwell.serving.short_pauses import short_pauses
from rankwell.serving.shown_documents import ShownDocuments, shown_results

STREAMS = ("title", "body", "source")
# The arrays of a segment, by what their names begin with.
SECTIONS = {
    "postings and positions": ("postings",),
    "blocks of postings": ("blocks.", "impacts."),
    "terms and lists": ("terms.", "lists."),
    "documents": ("documents.", "keywords."),
    "stored fields": ("stored.",),
    "forward index": ("forward.",),
}
FEATURES = FeatureSet(["relevance_model.whole", "relevance_model.title", "relevance_model.body"])
N_CANDIDATES = 50
MOST_MILLISECONDS = 0.5
MOST_SIZE = 1.2
LONG_TEXT = 20_000
# How the words of captions are found, and the length from which on it is by the forward index.
WAYS = {"by the text": math.inf, "by the forward index": 0, "as chosen": caption.LEAST_INDEXED}

Job = tuple[Hits, SearchResult]


def run(bench: Benchmark) -> None:
    n_docs, n_queries = (1500, 5) if bench.quick else (None, 100)
    lines = list(islice(_lines(bench), n_docs))
    with tempfile.TemporaryDirectory(prefix="rankwell-forward-") as folder:
        without, with_it = (_build(f"{folder}/{name}", lines, name) for name in ("none", "all"))
        several = _build(f"{folder}/several", lines, "all", n_segments=4)
        _record_sizes(bench, lines, folder, without, with_it)
        queries = _queries(lines, n_queries)
        values = [_record_feedback(bench, index, queries) for index in (without, with_it, several)]
        found = [_record_more_like(bench, index, queries) for index in (without, with_it)]
        bench.check("the same documents with and without a forward index", found[0] == found[1])
        bench.check("the same values with and without a forward index", np.array_equal(values[0], values[1]))
        bench.check("the same values in 4 segments", np.array_equal(values[1], values[2]))
    for name, index, texts in _captioned(bench, lines):
        _record_captions(bench, name, index, texts)


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


def _build(path: str, lines: list[bytes], forward: str, n_segments: int = 1) -> Index:
    streams: Literal["all"] | tuple[str, ...] = "all" if forward == "all" else ()
    schema, step = Schema(STREAMS, forward=streams), -(-len(lines) // n_segments)
    with IndexWriter(path, schema=schema, analysis=Analysis(stemmer="english"), memory_bytes=2**30) as writer:
        for start in range(0, len(lines), step):
            writer.add(map(json.loads, lines[start : start + step]))
            writer.commit()
    return Index.open(path)


def _record_sizes(bench: Benchmark, lines: list[bytes], folder: str, without: Index, with_it: Index) -> None:
    n_text, rival_size = sum(len(line) + 1 for line in lines), None
    if tantivy_index.IS_INSTALLED:
        corpus = Path(folder) / "corpus.jsonl"
        corpus.write_bytes(b"".join(line + b"\n" for line in lines))
        tantivy_index.build_index(str(corpus), f"{folder}/rival", STREAMS, 1)
        rival_size = size_of_folder(f"{folder}/rival") / n_text
    for name, index in (("without", without), ("with", with_it)):
        bench.record(
            f"size {name} a forward index",
            value=size_of_folder(str(index.path)) / n_text,
            unit="x the text",
            target=MOST_SIZE if name == "without" and not bench.quick else None,
            rival=tantivy_index.NAME if name == "without" else None,
            rival_value=rival_size if name == "without" else None,
        )
    arrays = {name: with_it.segments[0].unverified(name).nbytes for name in with_it.segments[0].names}
    for section, prefixes in SECTIONS.items():
        own = {name: n_bytes for name, n_bytes in arrays.items() if name.startswith(prefixes)}
        bench.record(
            f"size of {section}",
            value=sum(own.values()) / n_text,
            unit="x the text",
            note=", ".join(f"{name} {n_bytes / n_text:.3f}" for name, n_bytes in own.items() if n_bytes),
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
        segments = "" if len(index.segments) == 1 else f", {len(index.segments)} segments"
        seconds = [_fastest(index, job, 3 if bench.quick else 9, new=case == "new") for job in jobs]
        bench.record(
            f"feedback of {case} documents, {name} a forward index{segments}",
            value=float(np.mean(seconds)) * 1e3,
            unit="ms/query",
            target=MOST_MILLISECONDS if name == "with" and not bench.quick else None,
            note=f"{len(FEATURES)} features, {N_CANDIDATES} candidates; the slowest query {max(seconds) * 1e3:.2f} ms",
        )
    return values


def _record_more_like(bench: Benchmark, index: Index, queries: list[str]) -> list[list[str]]:
    results = [index.search(query, k=1, plain=True) for query in queries]

    def alike() -> list[list[str]]:
        DocumentTerms.of(index).forget_documents()
        return [index.more_like(result.ids[0]).ids for result in results]

    name = "with" if index.schema.forward else "without"
    timing = bench.time(f"more like this, {name}", alike, repeat=2 if bench.quick else 7)
    value = timing.minimum / len(results) * 1e6
    bench.record(f"more like this, {name} a forward index", value=value, unit="µs")
    return alike()


def _captioned(bench: Benchmark, lines: list[bytes]) -> Iterator[tuple[str, Index, list[str]]]:
    """Collections whose documents are shown: the name, the index and the texts of queries."""
    n_queries = 5 if bench.quick else 100
    with tempfile.TemporaryDirectory(prefix="rankwell-captions-") as folder:
        collection = varied_collection(bench)
        with IndexWriter(f"{folder}/varied", schema=Schema(forward="all"), analysis=Analysis()) as writer:
            writer.add(collection.documents())
            writer.commit()
            writer.merge()
        drawn = draw_queries(collection.words, -(-n_queries // 8))
        del collection
        yield "varied", Index.open(f"{folder}/varied"), [" ".join(words) for words in drawn]
        joined = list(_joined(lines))
        yield "long", _build(f"{folder}/long", joined, "all"), _queries(joined, n_queries)


def _joined(lines: list[bytes]) -> Iterator[bytes]:
    """Documents one after the other as one, until it is long."""
    parts: list[str] = []
    for number, line in enumerate(lines):
        parts.append(json.loads(line).get("body", ""))
        if sum(map(len, parts)) >= LONG_TEXT:
            yield json.dumps({"id": str(number), "title": parts[0][:20], "body": "\n".join(parts)}).encode()
            parts = []


def _record_captions(bench: Benchmark, name: str, index: Index, texts: list[str]) -> None:
    queries = [index.parse(text, plain=True) for text in texts]
    jobs = [(query, index.search(query, k=10).docs.tolist()) for query in queries]
    lengths = [len(index.stored(doc).get("body", "")) for _, docs in jobs for doc in docs]
    expected: list[list[Result]] = []
    for way, least in WAYS.items():
        with patch.object(caption, "LEAST_INDEXED", least), short_pauses(0.005):
            ShownDocuments.of(index).forget()
            shown = [_shown(index, job) for job in jobs]
            expected = expected or shown
            bench.check(f"{name}: the same captions {way}", shown == expected)
            for case in ("new", "known"):
                runs = [_caption_seconds(index, jobs, new=case == "new") for _ in range(2 if bench.quick else 7)]
                bench.record(
                    f"{name}: captions of 10 {case} documents, {way}",
                    value=min(runs) / len(jobs) * 1e6,
                    unit="µs/query",
                    note=f"processor time; a text has {np.mean(lengths):,.0f} characters on average",
                )


def _caption_seconds(index: Index, jobs: list[tuple[Query, list[int]]], *, new: bool) -> float:
    seconds = 0.0
    for job in jobs:
        if new:
            ShownDocuments.of(index).forget()
        else:
            _shown(index, job)
        start = time.process_time()
        _shown(index, job)
        seconds += time.process_time() - start
    return seconds


def _shown(index: Index, job: tuple[Query, list[int]]) -> list[Result]:
    query, docs = job
    scores: list[Any] = [0.0] * len(docs)
    return shown_results(index, query, docs, scores, scores, 1)


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
