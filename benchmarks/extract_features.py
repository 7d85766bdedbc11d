"""How fast are features extracted: 125 of them, for the 1,000 candidates of a query of four words, on two cores?

From the numbers of the candidates to rows of float32: looking the candidates up in the posting lists, decoding the
positions, and the features. The collection is Reuters-21578 with title and body as they are, an address made of the
title's words, and titles of other stories as anchor text; without it, synthetic documents. The queries are words of one
document each. Figures are the mean over queries of the fastest of several runs; the index is on disk, in the page
cache, and its pages were checked by an earlier query.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from rankwell import Index, IndexWriter
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import Hits
from rankwell.index.query.query import Query, parse_query
from rankwell.kernels.extraction.reference.features import extract_features

STREAMS = ("body", "anchor", "title", "url")
N_CANDIDATES, N_WORDS, N_THREADS = 1000, 4, 2
MOST_MILLISECONDS = 5.0


def run(bench: Benchmark) -> None:
    n_queries = 2 if bench.quick else 20
    with tempfile.TemporaryDirectory(prefix="rankwell-features-") as folder:
        with IndexWriter(Path(folder) / "index") as writer:
            writer.add(islice(documents(bench), 1500 if bench.quick else None))
            writer.commit()
        index = Index.open(Path(folder) / "index")
        queries = choose_queries(index, n_queries)
        candidates = [index.search(query, k=N_CANDIDATES).docs for query in queries]
        for name, target in (("mslr", MOST_MILLISECONDS), ("full", None)):
            measure_set(bench, index, queries, candidates, make_feature_set(name, STREAMS).without_feedback(), target)


def measure_set(
    bench: Benchmark,
    index: Index,
    queries: list[Query],
    candidates: list[np.ndarray],
    features: FeatureSet,
    target: float | None,
) -> None:
    case = f"{len(features)} features"
    check_rows(bench, case, collect_hits(index, queries[:1], [candidates[0][:50]]), features)
    times: dict[str, list[float]] = {"all": [], "hits": [], "features": []}
    for number, (query, docs) in enumerate(zip(queries, candidates, strict=True)):
        hits = collect_hits(index, [query], [docs])
        steps = {
            "all": lambda q=query, d=docs: extract(
                collect_hits(index, [q], [d], n_jobs=N_THREADS), features, n_jobs=N_THREADS
            ),
            "hits": lambda q=query, d=docs: collect_hits(index, [q], [d], n_jobs=N_THREADS),
            "features": lambda h=hits: extract(h, features, n_jobs=N_THREADS),
        }
        for step, function in steps.items():
            repeat = 3 if bench.quick else 15
            timing = bench.time(f"{case}, query {number + 1}, {step}", function, repeat=repeat, warmup=2)
            times[step].append(timing.minimum * 1e3)
    n_hits = collect_hits(index, queries, candidates).n_hits / len(queries)
    bench.record(
        f"{case}, {np.mean([len(docs) for docs in candidates]):,.0f} candidates, {N_WORDS} words, two cores",
        value=float(np.mean(times["all"])),
        unit="ms",
        target=None if bench.quick else target,
        note=f"hits {np.mean(times['hits']):.2f} ms, features {np.mean(times['features']):.2f} ms; "
        f"slowest query {max(times['all']):.2f} ms; {n_hits:,.0f} hits per query",
    )


def check_rows(bench: Benchmark, case: str, hits: Hits, features: FeatureSet) -> None:
    """Compare with the slow definition, which has no expressions."""
    expected = extract_features(
        hits.for_kernels(), hits.n_docs, features.columns(hits.streams, hits.static_names), len(features)
    )
    plain = [column for column, feature in enumerate(features.features) if feature.expression is None]
    rows = extract(hits, features)
    same = np.allclose(rows[:, plain], expected[:, plain], rtol=1.2e-7, atol=1e-13)
    bench.check(f"{case}: as the reference says", bool(same))
    bench.check(f"{case}: the same on one thread", bool((extract(hits, features, n_jobs=1) == rows).all()))


def choose_queries(index: Index, n_queries: int) -> list[Query]:
    """Four different words of a document each, with as many candidates as are wanted."""
    generator = np.random.default_rng(6)
    wanted = min(N_CANDIDATES, index.n_docs // 4)
    queries: list[Query] = []
    while len(queries) < n_queries:
        text = index.stored(int(generator.integers(index.n_docs))).get("body", "")
        terms = list(dict.fromkeys(term.decode() for term, _ in index.analysis.cut(text)))
        if len(terms) >= N_WORDS:
            query = parse_query(" ".join(generator.choice(terms, N_WORDS, replace=False)), index.analysis)
            if len(index.search(query, k=N_CANDIDATES)) >= wanted:
                queries.append(query)
    return queries


def documents(bench: Benchmark) -> Iterator[dict[str, Any]]:
    """Documents with four streams."""
    corpus = bench.data("text/reuters21578/corpus.jsonl.gz")
    if corpus is None:
        yield from made_up_documents()
        return
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        before = ["", ""]
        for line in lines:
            fields = json.loads(line)
            title = fields.get("title", "")
            address = f"www example com {title.lower()} {fields['id']}"
            anchor = " ".join([title, *before])
            yield {
                "id": fields["id"], "body": fields.get("body", ""), "anchor": anchor, "title": title, "url": address
            }  # fmt: skip
            before = [before[1], title]


def made_up_documents(n_docs: int = 20_000) -> Iterator[dict[str, Any]]:
    generator = np.random.default_rng(0)
    for number in range(n_docs):
        words = [f"w{word}" for word in np.minimum(generator.zipf(1.3, 160), 30_000).tolist()]
        cuts = {"body": words[:130], "anchor": words[130:145], "title": words[145:153], "url": words[153:]}
        yield {"id": f"d{number}", **{stream: " ".join(own) for stream, own in cuts.items()}}
