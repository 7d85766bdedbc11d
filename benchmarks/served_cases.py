"""What is served in benchmarks of serving: collections as indexes, with a ranker of two passes, and queries.

*Demo*: the documentation of Python's standard library, and its known-item queries. *Varied*: Reuters-21578 20 times
with its words varied; a query is one to eight words of a document, which is the one to find. 1,000 candidates go
through a first pass of what selection knows (BM25's score and the document's length), 100 of them to RankBoost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.select_documents import LENGTHS, varied_collection
from rankwell import Index, IndexWriter, LeastSquares, MadeRanker, RankBoost
from rankwell.data.dataset import RankingDataset
from rankwell.demo.candidates import build_index
from rankwell.demo.collection import make_collection
from rankwell.demo.collection_files import write_documents
from rankwell.demo.library import read_library
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.index.text.analysis import Analysis
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.scoring.feature_use import read_features

N_CANDIDATES, KEEP = 1000, 100
FIRST = ("bm25.whole", "length.whole")
N_QUERIES, _N_TRAINING = 400, 100


@dataclass(frozen=True)
class ServedCase:
    """A collection that can be served.

    folder : has `index`, `cascade.rank` and `documents.jsonl`
    texts : queries
    read : the features that the second pass reads; train : rows of them, with labels
    is_stemmed : whether words are stemmed and stop words left out
    """

    name: str
    folder: Path
    texts: list[str]
    read: tuple[str, ...]
    train: RankingDataset
    is_stemmed: bool


def demo_case(folder: Path, *, quick: bool) -> ServedCase:
    collection = make_collection(read_library(), N_QUERIES, 0)
    index = build_index(write_documents(collection.documents, folder), folder / "index")
    judged = [(item.query, dict(item.grades)) for item in collection.known_items]
    return _trained("demo", folder, index, judged, quick=quick, is_stemmed=True)


def varied_case(bench: Benchmark, folder: Path) -> ServedCase:
    collection = varied_collection(bench)
    _write_lines(collection.documents(), folder / "documents.jsonl")
    with IndexWriter(folder / "index", analysis=Analysis()) as writer:
        writer.add(collection.documents())
        writer.commit()
        writer.merge()
    judged = _known_items(collection.words)
    del collection
    return _trained("varied", folder, Index.open(folder / "index"), judged, quick=bench.quick, is_stemmed=False)


def _known_items(documents: Sequence[Sequence[str]]) -> list[tuple[str, dict[str, float]]]:
    """Queries of different words of a document, and the document."""
    rng = np.random.default_rng(7)
    items = []
    for number in range(N_QUERIES):
        n_words, drawn = LENGTHS[number % len(LENGTHS)], {}
        while len(drawn) < n_words:
            doc = int(rng.integers(len(documents)))
            drawn = dict.fromkeys(documents[doc][place] for place in rng.permutation(len(documents[doc])))
        items.append((" ".join(list(drawn)[:n_words]), {str(doc): 1.0}))
    return items


def _trained(
    name: str,
    folder: Path,
    index: Index,
    judged: Sequence[tuple[str, Mapping[str, float]]],
    *,
    quick: bool,
    is_stemmed: bool,
) -> ServedCase:
    """The case with a ranker that is trained on some of its queries."""
    known = judged[: 20 if quick else _N_TRAINING]
    queries = [QueryText(str(number), text) for number, (text, _) in enumerate(known)]
    qrels = {str(number): dict(grades) for number, (_, grades) in enumerate(known)}
    # Feedback is left out: it reads what selection found, which another library's selection does not give.
    features = make_feature_set("full", tuple(index.schema.streams), tuple(index.schema.statics)).without_feedback()
    train = judged_features(index, queries, qrels, features, source="top", n_candidates=N_CANDIDATES).dataset
    few = [features.names.index(name) for name in FIRST]
    first = LeastSquares().fit(train.features[:, few], train.labels, group=train.query_sizes)
    second = RankBoost(n_rounds=10 if quick else 100, n_jobs=1).fit(train).description_
    part = RankerPart("first", tuple(few), replace(first.description_, feature_names=FIRST))
    cascade = replace(second, parts=(part,), first_pass=FirstPass(0, KEEP))
    MadeRanker.from_description(cascade).save(folder / "cascade.rank")
    # With those that expressions among them are made of.
    read = features.containing(read_features(second)).names
    columns = [features.names.index(name) for name in read]
    rows = RankingDataset(
        np.ascontiguousarray(train.features[:, columns]), train.labels, group=train.query_sizes, feature_names=read
    )
    return ServedCase(name, folder, [text for text, _ in judged], read, rows, is_stemmed)


def _write_lines(documents: Iterable[Mapping[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8") as lines:
        lines.writelines(f"{json.dumps(document, ensure_ascii=False)}\n" for document in documents)
