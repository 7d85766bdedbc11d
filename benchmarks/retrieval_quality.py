"""Does BM25 find as much as bm25s and tantivy do, given the same words?

Cranfield, CISI and CACM: title and body, cut into words by the English stemmer and without English stop words; queries
the same. Each engine ranks the best 1,000 documents of each query; MAP (to that depth) and NDCG@10 are counted as
trec_eval does, over queries that have a relevant document. bm25s computes the same formula in float32. tantivy keeps
document lengths in one byte, which reorders documents that are close; it counts a word that a query repeats only once,
so it is given the word once, with a boost. A rival's queries have no operators, so ours have none either.

Then, with the text as it is: what `index build` does by default (the language is detected) against words as they are
written, the default of 0.1.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rivals import bm25s_search, tantivy_search
from rankwell.corpus.reading import read_corpus
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import read_queries
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.text.analysis import Analysis
from rankwell.index.text.language_detection import detect_language, sample_of
from rankwell.index.writer import IndexWriter
from rankwell.metrics import Evaluation, evaluate
from rankwell.metrics.conventions import get_convention
from rankwell.metrics.missed_documents import queries_of_run

COLLECTIONS = ("cranfield", "cisi", "cacm")
DEPTH = 1000
METRICS = [f"map@{DEPTH}", "ndcg@10"]
LANGUAGE_METRICS = ["ndcg@10", "map", "recall@100"]
MODEL = BM25(k1=1.2, b=0.75)
# Figures that bm25s may differ by (float32 swaps documents that nearly tie), and tantivy (lengths of one byte).
CLOSE = {bm25s_search.NAME: 0.0005, tantivy_search.NAME: 0.01}

Ranking = Callable[[str], np.ndarray]


@dataclass(frozen=True)
class Judged:
    """A collection: ids and words of its documents, queries, and which documents are relevant to each."""

    fields: list[dict[str, str]]
    words: list[list[str]]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


def run(bench: Benchmark) -> None:
    for name in COLLECTIONS[:1] if bench.quick else COLLECTIONS:
        folder = bench.data(f"text/{name}")
        if folder is None:
            bench.check(f"{name} is absent: nothing to compare", True)
            continue
        _compare(bench, name, _read(folder))
        _compare_languages(bench, name, folder)


def _read(folder: Path) -> Judged:
    analysis = Analysis("english", "english")
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    fields = [{"id": record["id"], "title": record["title"], "body": record["body"]} for record in records]
    words = [[term.decode() for name in ("title", "body") for term, _ in analysis.cut(one[name])] for one in fields]
    queries = {
        query.id: " ".join(term.decode() for term, _ in analysis.cut(query.text))
        for query in read_queries(folder / "queries.tsv", operators=False)
    }
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, document, label = line.split()
        relevant.setdefault(query, {})[document] = int(label)
    return Judged(fields, words, queries, relevant)


def _compare(bench: Benchmark, name: str, judged: Judged) -> None:
    with tempfile.TemporaryDirectory(prefix="rankwell-quality-") as folder:
        # The words are already cut: the index uses them as they are.
        with IndexWriter(f"{folder}/index", analysis=Analysis()) as writer:
            writer.add(
                {"id": fields["id"], **_cut_fields(fields, words)}
                for fields, words in zip(judged.fields, judged.words, strict=True)
            )
            writer.commit()
        index = Index.open(f"{folder}/index")
        engines = _engines(index, judged, folder)
        found = {engine: _evaluate(judged, rank) for engine, rank in engines.items()}
    ours = found["rankwell"]
    for rival, close in CLOSE.items():
        if rival in found:
            apart = max(abs(found[rival].mean[metric] - ours.mean[metric]) for metric in METRICS)
            bench.check(f"{name}: {rival} finds as much", apart <= close, f"means {apart:.4f} apart at most")
    for metric in METRICS:
        others = {engine: one.mean[metric] for engine, one in found.items() if engine not in ("rankwell", *CLOSE)}
        for rival in CLOSE:
            bench.record(
                f"{name}: {metric} (trec) compared with {rival}",
                value=ours.mean[metric],
                unit=metric,
                better="higher",
                rival=rival,
                rival_value=found[rival].mean[metric] if rival in found else None,
                note=f"{ours.n_counted(metric)} queries; "
                + ", ".join(f"{engine} {figure:.4f}" for engine, figure in others.items()),
            )


def _compare_languages(bench: Benchmark, name: str, folder: Path) -> None:
    """The detected language against none."""
    qrels = read_qrels(folder / "qrels.txt")
    queries = read_queries(folder / "queries.tsv", operators=False)
    batches = list(read_corpus(folder / "corpus.jsonl.gz"))
    language = detect_language(sample_of(batches[0]))
    bench.check(f"{name}: the language is recognised", language is not None and language.code == "en")
    found = {}
    for analysis in (Analysis(), Analysis.of_language("en")):
        with tempfile.TemporaryDirectory(prefix="rankwell-quality-") as path:
            with IndexWriter(path, analysis=analysis) as writer:
                for batch in batches:
                    writer.add(batch)
                writer.commit()
            index = Index.open(path)
            results = {query.id: index.search(query.text, k=DEPTH, model=MODEL) for query in queries}
            run = {query: dict(zip(one.ids, one.scores.tolist(), strict=True)) for query, one in results.items()}
        judged, scores = queries_of_run(qrels, run, get_convention("trec"))
        found[analysis.language] = evaluate(judged, scores, metrics=LANGUAGE_METRICS, convention="trec")
    for metric in LANGUAGE_METRICS:
        bench.record(
            f"{name}: {metric} (trec), language detected",
            value=found["en"].mean[metric],
            unit=metric,
            better="higher",
            rival="words as they are written",
            rival_value=found[None].mean[metric],
            note=f"{found['en'].n_counted(metric)} queries",
        )


def _cut_fields(fields: dict[str, str], words: Sequence[str]) -> dict[str, str]:
    n_title = len(Analysis("english", "english").cut(fields["title"]))
    return {"title": " ".join(words[:n_title]), "body": " ".join(words[n_title:])}


def _engines(index: Index, judged: Judged, folder: str) -> dict[str, Ranking]:
    """The engines by name: functions from a query's text to document numbers."""
    engines: dict[str, Ranking] = {
        "rankwell": lambda text: index.search(text, k=DEPTH, model=MODEL).docs,
        "BM25F, title twice": lambda text: index.search(text, k=DEPTH, model=BM25F({"title": 2.0, "body": 1.0})).docs,
    }
    if bm25s_search.IS_INSTALLED:
        vocabulary = {
            word: number for number, word in enumerate(dict.fromkeys(w for words in judged.words for w in words))
        }
        numbers = [np.array([vocabulary[word] for word in words], np.int32) for words in judged.words]
        rival = bm25s_search.Bm25sIndex(numbers, len(vocabulary), k1=MODEL.k1, b=MODEL.b)

        def by_bm25s(text: str) -> np.ndarray:
            known = [vocabulary[word] for word in text.split() if word in vocabulary]
            docs, scores = rival.search([known], min(DEPTH, len(numbers)))
            return docs[0][scores[0] > 0]

        engines[bm25s_search.NAME] = by_bm25s
    if tantivy_search.IS_INSTALLED:
        Path(folder, "tantivy").mkdir()
        other = tantivy_search.TantivyIndex((" ".join(words) for words in judged.words), f"{folder}/tantivy")

        def by_tantivy(text: str) -> np.ndarray:
            boosted = " ".join(f"{word}^{count}.0" for word, count in Counter(text.split()).items())
            return other.found(boosted, DEPTH)[0]

        engines[tantivy_search.NAME] = by_tantivy
    return engines


def _evaluate(judged: Judged, rank: Ranking) -> Evaluation:
    """The metrics of the rankings."""
    ids = [fields["id"] for fields in judged.fields]
    labels: list[float] = []
    scores: list[float] = []
    sizes: list[int] = []
    for query, relevant in judged.relevant.items():
        if query not in judged.queries or not any(relevant.values()):
            continue
        found = [ids[doc] for doc in rank(judged.queries[query]).tolist()]
        missed = [document for document in relevant if document not in set(found)]
        # Documents that were not found come after DEPTH documents: they count as relevant, but are not ranked.
        own = [float(relevant.get(document, 0)) for document in found] + [0.0] * (DEPTH - len(found))
        own += [float(relevant[document]) for document in missed]
        labels += own
        scores += range(0, -len(own), -1)
        sizes.append(len(own))
    return evaluate(np.array(labels), np.array(scores, float), metrics=METRICS, convention="trec", group=sizes)
