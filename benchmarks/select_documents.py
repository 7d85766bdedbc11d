"""How many queries per second are answered with the best 10 and the best 1,000 documents?

Two collections, title and body, no stems, no stop words. *Mixed*: Reuters-21578, Cranfield, CISI and CACM together, as
they are. *Varied*: Reuters-21578 20 times, where in each copy but the first, a word becomes another word of similar
frequency with probability 0.3, and parts of a document are dropped, both by a seeded rule: identical copies would give
runs of equal scores and frequencies, which pruning and compression exploit. A query's 1 to 8 different words are drawn
from one document of the collection, so that common and rare ones are mixed as in text; any word counts. One thread.
Ours is timed from the query's text to the numbers of the documents, each query by itself, on a merged index and on the
five segments it was written in. tantivy gets the same words (cut beforehand) in one segment, and is timed from the text
to its hits; bm25s gets the words' numbers, all queries in one call, which is faster for it.

Quantiles are over queries, each the fastest of several times, the engines taking turns at every query. *The choice*: a
search chooses between adding all lists, pruning by the best so far, and pruning by an estimate of the threshold
(`rankwell.index.search.pruning`); each query is answered in all three ways and by the choice, for several k.

Before anything is timed, the answers are compared. bm25s has the same scores up to its float32. tantivy keeps lengths
in one byte: its scores are recomputed here with lengths rounded as it rounds them, and its list may differ from ours by
documents whose scores are that close.
"""

from __future__ import annotations

import gzip
import itertools
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rivals import bm25s_search, tantivy_search
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, idf
from rankwell.index.search.pruning import Pruning, choose_pruning
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

COPIES = 20
TEXTS = ("reuters21578", "cranfield", "cisi", "cacm")
# In a varied copy: the share of words that become another word, how far from it in the order of frequencies, and the
# largest share of a document's words that is dropped, from its end.
CHANGED, NEIGHBOURHOOD, DROPPED = 0.3, 10, 0.3
SEGMENTS = 5
LENGTHS = range(1, 9)
MODEL = BM25(k1=1.2, b=0.75)
# How many times a rival's queries per second must be reached on the varied collection, by k.
TARGETS = {bm25s_search.NAME: {10: 1.0, 1000: 1.0}, tantivy_search.NAME: {10: 3.0, 1000: 1.5}}
QUANTILES = (0.5, 0.95, 0.99)
CHOICES = (10, 100, 300, 1000, 3000)
WORST_CHOICE = 1.05
FLOAT32_ERROR = 1e-4  # tantivy computes idf in float32, ln(1 + x) with a small x for frequent words
KEPT_ERROR = 1 / 8  # a length of 4 significant bits is too small by less than this share


@dataclass(frozen=True)
class Collection:
    """Documents as fields, and their words as the index cuts them."""

    name: str
    fields: list[dict[str, str]]
    words: list[list[str]]

    def documents(self) -> Iterator[dict[str, str]]:
        for number, fields in enumerate(self.fields):
            yield {"id": str(number), **fields}


def run(bench: Benchmark) -> None:
    for collection in _collections(bench):
        queries = draw_queries(collection.words, 4 if bench.quick else 100)
        with tempfile.TemporaryDirectory(prefix="rankwell-select-") as folder:
            several, one = _build(collection, f"{folder}/index")
            rivals = _Rivals(collection, folder)
            for k in (10, 1000):
                _check(bench, one, several, rivals, queries[:: 2 if bench.quick else 16], k)
            for k in (10, 1000):
                _time(bench, collection.name, one, several, rivals, queries, k)
                _time_quantiles(bench, collection.name, one, rivals, queries, k)
            for k in CHOICES:
                _time_choice(bench, collection.name, one, queries[:: 2 if bench.quick else 4], k)


def _collections(bench: Benchmark) -> Iterator[Collection]:
    texts = {name: _read(bench, name)[: 150 if bench.quick else None] for name in TEXTS}
    yield _cut("mixed", [fields for name in TEXTS for fields in texts[name]])
    yield varied_collection(bench)


def varied_collection(bench: Benchmark) -> Collection:
    """Reuters-21578 several times, its words varied."""
    first = _cut("varied", _read(bench, TEXTS[0])[: 150 if bench.quick else None])
    varied = list(vary(first.words, 2 if bench.quick else COPIES))
    return Collection("varied", [{"title": "", "body": " ".join(words)} for words in varied], varied)


def _read(bench: Benchmark, name: str) -> list[dict[str, str]]:
    """Titles and bodies of a collection; made up if it is absent."""
    source = bench.data(f"text/{name}/corpus.jsonl.gz")
    if source is None:
        return _made_up(300)
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [{"title": record.get("title", ""), "body": record.get("body", "")} for record in records]


def _cut(name: str, fields: list[dict[str, str]]) -> Collection:
    analysis = Analysis()
    words = [[term.decode() for field in ("title", "body") for term, _ in analysis.cut(one[field])] for one in fields]
    return Collection(name, fields, words)


def vary(documents: Sequence[Sequence[str]], copies: int) -> Iterator[list[str]]:
    """Every document, then `copies` − 1 times each with words changed and its end dropped, by a fixed seed."""
    counts = Counter(word for words in documents for word in words)
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    rank = {word: place for place, word in enumerate(by_frequency)}
    random = np.random.default_rng(11)
    yield from (list(words) for words in documents)
    for _ in range(copies - 1):
        for words in documents:
            kept = len(words) - int(random.random() * DROPPED * len(words))
            ranks = np.array([rank[word] for word in words[:kept]], np.int64)
            moves = np.where(random.random(kept) < CHANGED, random.integers(-NEIGHBOURHOOD, NEIGHBOURHOOD + 1, kept), 0)
            places = np.clip(ranks + moves, 0, len(by_frequency) - 1)
            yield [by_frequency[place] for place in places.tolist()]


def _made_up(n_docs: int) -> list[dict[str, str]]:
    random = np.random.default_rng(0)

    def words(count: int) -> str:
        return " ".join(f"w{number}" for number in np.minimum(random.zipf(1.2, count), 5000).tolist())

    return [{"title": words(8), "body": words(120)} for _ in range(n_docs)]


def draw_queries(documents: Sequence[Sequence[str]], n_each: int) -> list[list[str]]:
    """`n_each` queries of each of `LENGTHS` words, the different words of a query all from one document."""
    random = np.random.default_rng(7)
    queries = []
    for n_words in LENGTHS:
        while len(queries) < n_each * n_words:
            words = documents[random.integers(len(documents))]
            drawn = dict.fromkeys(words[place] for place in random.permutation(len(words)).tolist())
            if len(drawn) >= n_words:
                queries.append(list(drawn)[:n_words])
    return queries


def _build(collection: Collection, folder: str) -> tuple[Index, Index]:
    """The index as it was written, in `SEGMENTS` commits, and merged to one segment."""
    documents, n_docs = collection.documents(), len(collection.fields)
    with IndexWriter(folder, analysis=Analysis()) as writer:
        for _ in range(SEGMENTS):
            writer.add(itertools.islice(documents, -(-n_docs // SEGMENTS)))
            writer.commit()
    several = Index.open(folder)
    with IndexWriter(folder) as writer:
        writer.merge()
    return several, Index.open(folder)


class _Rivals:
    """Both rivals, if they are installed, with the same words."""

    def __init__(self, collection: Collection, folder: str) -> None:
        vocabulary: dict[str, int] = {}
        for words in collection.words:
            for word in words:
                vocabulary.setdefault(word, len(vocabulary))
        self.vocabulary, self.words = vocabulary, collection.words
        self.lengths = np.array([len(words) for words in collection.words])
        self.n_docs = len(collection.words)
        self.bm25s = self.tantivy = None
        if bm25s_search.IS_INSTALLED:
            numbers = [np.array([vocabulary[word] for word in words], np.int32) for words in collection.words]
            self.bm25s = bm25s_search.Bm25sIndex(numbers, len(vocabulary), k1=MODEL.k1, b=MODEL.b)
        if tantivy_search.IS_INSTALLED:
            Path(folder, "tantivy").mkdir()
            texts = [" ".join(words) for words in collection.words]
            self.tantivy = tantivy_search.TantivyIndex(texts, f"{folder}/tantivy")

    def numbers(self, queries: Sequence[Sequence[str]]) -> list[list[int]]:
        return [[self.vocabulary[word] for word in query] for query in queries]

    def score(self, query: Sequence[str], doc: int, lengths: np.ndarray, doc_freq: Callable[[str], int]) -> float:
        """BM25 of one document by the formula, with these lengths."""
        counts = Counter(self.words[doc])
        norm = MODEL.k1 * (1 - MODEL.b + MODEL.b * lengths[doc] / self.lengths.mean())
        return sum(
            idf(self.n_docs, doc_freq(word)) * counts[word] * (MODEL.k1 + 1) / (counts[word] + norm) for word in query
        )


def _check(bench: Benchmark, one: Index, several: Index, rivals: _Rivals, queries: list[list[str]], k: int) -> None:
    found = [one.search(" ".join(query), k=k, model=MODEL) for query in queries]
    same = all(
        np.array_equal(result.docs, other.docs) and np.array_equal(result.scores, other.scores)
        for result, query in zip(found, queries, strict=True)
        for other in (
            one.search(" ".join(query), k=k, model=MODEL, prune=False),
            several.search(" ".join(query), k=k, model=MODEL),
        )
    )
    bench.check(f"top {k:,}: the same without pruning and in {len(several.segments)} segments, bit by bit", same)
    if rivals.bm25s is not None:
        kept = min(k, rivals.n_docs)
        scores = rivals.bm25s.search(rivals.numbers(queries), kept)[1]
        worst = 0.0
        for result, row in zip(found, scores, strict=True):
            worst = max(worst, float(np.max(np.abs(row[: len(result)] / result.scores - 1.0), initial=0.0)))
        bench.check(f"top {k:,}: bm25s has the same scores at every rank", worst < 1e-5, f"{worst:.1e} apart at most")
    if rivals.tantivy is not None:
        _check_tantivy(bench, rivals, one, queries, found, k)


def _check_tantivy(
    bench: Benchmark, rivals: _Rivals, one: Index, queries: list[list[str]], found: list[Any], k: int
) -> None:
    bench.check("tantivy has one segment", rivals.tantivy.n_segments == 1)
    segment = one.segments[0]

    def doc_freq(word: str) -> int:
        number = segment.term_number(word.encode()) * segment.lists_per_term + segment.lists_per_term - 1
        return int(segment["lists.doc_freq"][number])

    kept = tantivy_search.kept_length(rivals.lengths)
    unexplained = apart = 0.0
    shared = total = 0
    for query, result in zip(queries, found, strict=True):
        docs, scores = rivals.tantivy.found(" ".join(query), k)
        for doc, score in list(zip(docs.tolist(), scores.tolist(), strict=True))[::37]:
            unexplained = max(unexplained, abs(rivals.score(query, doc, kept, doc_freq) / score - 1.0))
        apart = max(apart, float(np.max(np.abs(scores / result.scores - 1.0), initial=0.0)))
        shared, total = shared + len(np.intersect1d(docs, result.docs)), total + len(result)
    bench.check(
        f"top {k:,}: tantivy's scores are BM25 with lengths of one byte",
        unexplained < FLOAT32_ERROR,
        f"{unexplained:.1e} apart",
    )
    bench.check(
        f"top {k:,}: its score at each rank is ours within a length's rounding",
        apart < KEPT_ERROR,
        f"{apart:.1%} apart at most; {shared / max(total, 1):.1%} of the documents are the same",
    )


def _time(
    bench: Benchmark, collection: str, one: Index, several: Index, rivals: _Rivals, queries: list[list[str]], k: int
) -> None:
    """Time queries of one length after the other, all engines in turn, so that each runs under the same conditions."""
    each, seconds = len(queries) // len(LENGTHS), dict[str, list[float]]()
    for place, n_words in enumerate(LENGTHS):
        own = queries[place * each : (place + 1) * each]
        for engine, answer in _engines(one, several, rivals, own, k).items():
            name = f"{collection}, {engine}, top {k:,}, {n_words} words"
            timing = bench.time(name, answer, repeat=2 if bench.quick else 7)
            seconds.setdefault(engine, []).append(timing.minimum)
    speeds = {engine: len(queries) / sum(times) for engine, times in seconds.items()}
    size = f"{collection}, top {k:,} of {one.n_docs:,} documents"
    by_length = ", ".join(f"{time / each * 1e6:.0f}" for time in seconds["rankwell"])
    has_target = collection == "varied" and not bench.quick
    for rival, by_k in TARGETS.items():
        share = by_k[k]
        bench.record(
            f"{size}, compared with {rival}",
            value=speeds["rankwell"],
            unit="queries/s",
            target=share * speeds[rival] if has_target and rival in speeds else None,
            better="higher",
            rival=rival,
            rival_value=speeds.get(rival),
            note=f"{len(queries)} queries; a query of 1 to 8 words: {by_length} µs",
        )
    bench.record(
        f"{size}, {len(several.segments)} segments",
        value=speeds["rankwell, segments"],
        unit="queries/s",
        better="higher",
    )
    bench.record(f"{size}, without pruning", value=speeds["rankwell, no pruning"], unit="queries/s", better="higher")


def _engines(
    one: Index, several: Index, rivals: _Rivals, queries: list[list[str]], k: int
) -> dict[str, Callable[[], Any]]:
    """The engines that answer the queries, by name."""
    texts, numbers, kept = [" ".join(query) for query in queries], rivals.numbers(queries), min(k, rivals.n_docs)

    def ours(index: Index, prune: bool = True) -> Callable[[], Any]:
        return lambda: [index.search(text, k=k, model=MODEL, prune=prune).docs for text in texts]

    engines = {"rankwell": ours(one)}
    if rivals.bm25s is not None:
        engines[bm25s_search.NAME] = lambda: rivals.bm25s.search(numbers, kept)
    if rivals.tantivy is not None:
        engines[tantivy_search.NAME] = lambda: [rivals.tantivy.search(text, k) for text in texts]
    return engines | {"rankwell, segments": ours(several), "rankwell, no pruning": ours(one, prune=False)}


def _time_quantiles(
    bench: Benchmark, collection: str, one: Index, rivals: _Rivals, queries: list[list[str]], k: int
) -> None:
    """How long the slower queries take: one query at a time for every engine."""
    kept = min(k, rivals.n_docs)
    engines: dict[str, Callable[[list[str]], Any]] = {
        "rankwell": lambda query: one.search(" ".join(query), k=k, model=MODEL).docs
    }
    if rivals.tantivy is not None:
        engines[tantivy_search.NAME] = lambda query: rivals.tantivy.search(" ".join(query), k)
    if rivals.bm25s is not None:
        engines[bm25s_search.NAME] = lambda query: rivals.bm25s.search(rivals.numbers([query]), kept)
    seconds = _seconds_by_query(engines, queries, 2 if bench.quick else 5)
    for quantile in QUANTILES:
        found = {engine: float(np.quantile(times, quantile)) * 1e6 for engine, times in seconds.items()}
        others = ", ".join(f"{engine} {value:.0f} µs" for engine, value in found.items() if engine != "rankwell")
        bench.record(
            f"{collection}, top {k:,} of {one.n_docs:,} documents, q{quantile * 100:.0f}",
            value=found["rankwell"],
            unit="µs",
            rival=tantivy_search.NAME,
            rival_value=found.get(tantivy_search.NAME),
            note=others,
        )


def _time_choice(bench: Benchmark, collection: str, one: Index, queries: list[list[str]], k: int) -> None:
    """Is the way that a search chooses as quick as the best one?"""

    way: Pruning | None = None

    def choose(*situation: Any) -> Pruning:
        return way or choose_pruning(*situation)

    def searching(wanted: Pruning | None) -> Callable[[list[str]], Any]:
        def answer(query: list[str]) -> Any:
            nonlocal way
            way = wanted
            return one.search(" ".join(query), k=k, model=MODEL).docs

        return answer

    engines = {one_way.value: searching(one_way) for one_way in Pruning} | {"chosen": searching(None)}
    with patch("rankwell.index.search.selector.choose_pruning", choose):
        seconds = {engine: times.mean() for engine, times in _seconds_by_query(engines, queries, 5).items()}
    chosen = seconds.pop("chosen")
    best = min(seconds, key=seconds.__getitem__)
    bench.record(
        f"{collection}, top {k:,} of {one.n_docs:,} documents, the choice, of the best single way",
        value=chosen / seconds[best],
        unit="×",
        target=None if bench.quick else WORST_CHOICE,
        note=", ".join(f"{way}: {value * 1e6:.0f} µs" for way, value in (seconds | {"chosen": chosen}).items()),
    )


def _seconds_by_query(
    engines: dict[str, Callable[[list[str]], Any]], queries: list[list[str]], rounds: int
) -> dict[str, np.ndarray]:
    """The seconds of each query, the fastest of several, all engines in turn, in a random order: what one leaves in the
    caches is not always found by the same other one."""
    seconds = {engine: np.full(len(queries), np.inf) for engine in engines}
    in_turn, rng = list(engines.items()), np.random.default_rng(0)
    for _ in range(rounds):
        for number, query in enumerate(queries):
            for place in rng.permutation(len(in_turn)):
                engine, answer = in_turn[place]
                start = time.perf_counter()
                answer(query)
                seconds[engine][number] = min(seconds[engine][number], time.perf_counter() - start)
    return seconds
