"""Calls of the search part on synthetic documents: building, merging, checking, searching, features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter

_WORDS = ("wing", "flow", "layer", "heat", "plate", "jet", "shock", "pressure", "boundary", "edge", "theory", "body")
_QUERIES = (
    "wing",
    "heat of the jet",
    '+flow "boundary layer" plate',
    'shock -"edge theory" -jet',
    "naïve 中文 absent",
    'title:wing^2 pla* year:[10 TO 90] -"layer boundary"~3',
)


def _documents(first: int, n_docs: int) -> list[dict[str, Any]]:
    def text(number: int, n_words: int) -> str:
        return " ".join(_WORDS[(number * (place + 3) + place * place) % len(_WORDS)] for place in range(n_words))

    return [
        {
            "id": str(number),
            "title": text(number, 3),
            "body": f"{text(number, 40)} naïve 中文 boundary layer",
            "year": number,
        }
        for number in range(first, first + n_docs)
    ]


def make_index(folder: Path) -> Index:
    """An index of two segments."""
    path = folder / "index"
    analysis = Analysis(stemmer="english", stop_words="english")
    with IndexWriter(path, schema=Schema(forward="all"), analysis=analysis) as writer:
        for number in range(2):
            writer.add(_documents(300 * number, 300))
            writer.commit()
    return Index.open(path)


def build_index(folder: Path) -> None:
    from rankwell.index.checking import check_index

    make_index(folder)
    with IndexWriter(folder / "index") as writer:
        writer.delete(["5", "305"])
        writer.commit()
        writer.merge()
    check_index(folder / "index")
    with IndexWriter(folder / "ordered", schema=Schema(static_order="year")) as writer:
        writer.add(_documents(0, 20))
        writer.commit()
    Index.open(folder / "ordered").search("wing", stop_after=5)


def search(folder: Path) -> None:
    from rankwell.index.search.bm25 import BM25, BM25F

    index = make_index(folder)
    for query in _QUERIES:
        for match in ("any", "all"):
            for model in (BM25(), BM25(stream="title"), BM25F({"title": 3.0, "body": 1.0})):
                index.count(query, match=match, model=model)
                for k in (3, 1000):
                    index.search(query, k=k, match=match, model=model)
    index.more_like("7")
    index.search("presure", typos=True, filter="heat year:<3")
    _find_words(index)


def _find_words(index: Index) -> None:
    """The words of a caption, by the forward index."""
    from rankwell.index.search.caption import WantedTerms
    from rankwell.index.search.indexed_text import DocumentWords, IndexedText

    fields = index.stored(0)
    text = IndexedText(fields["body"], index.schema.streams.index("body"), DocumentWords(index, 0), index.analysis)
    text.hits(WantedTerms(index.parse("boundary layer")))


def extract_features(folder: Path) -> None:
    from rankwell.features.feature_set import SETS, make_feature_set
    from rankwell.features.qrels import Qrels
    from rankwell.features.queries import QueryText
    from rankwell.features.training_data import SOURCES, judged_features
    from rankwell.rankers.least_squares import LeastSquares
    from rankwell.serving.ranking.ranked_search import RankedSearch

    index = make_index(folder)
    queries = [QueryText(str(number), text) for number, text in enumerate(_QUERIES)]
    qrels: Qrels = {query.id: {"1": 1.0, "2": 0.0, "310": 2.0} for query in queries}
    for name in SETS:
        features = make_feature_set(name, index.schema.streams, index.schema.statics)
        for source in SOURCES:
            found = judged_features(index, queries, qrels, features, source=source)
    ranker = LeastSquares().fit(found.dataset)
    RankedSearch(index, ranker, n_candidates=50).search_many(_QUERIES, k=5)
    _pack_hits(index)
    _multiply_vectors(folder)


def _pack_hits(index: Index) -> None:
    """Hits as a device gets them, of so many candidates that their cells are counted in blocks."""
    from rankwell.features.hit_reading import collect_hits
    from rankwell.kernels.extraction.cuda.packing import join_queries, pack

    queries = [index.parse("wing flow heat")] * 100
    hits = collect_hits(index, queries, [np.arange(300)] * len(queries)).for_kernels()
    pack([hits, hits], join_queries([hits, hits]), (), lambda n_bytes: np.empty(n_bytes, np.uint8))


def _multiply_vectors(folder: Path) -> None:
    """Own features of an index with vectors of both kinds."""
    from rankwell.features.feature_set import FeatureSet
    from rankwell.features.own_features import OwnFeatures

    kinds = {"first": (4, "float32"), "second": (4, "int8")}
    with IndexWriter(folder / "vectors", schema=Schema(vectors=kinds)) as writer:
        rows = _documents(0, 20)
        writer.add([row | {name: [1.0, 2.0, 3.0, row["year"]] for name in kinds} for row in rows])
        writer.commit()
    index = Index.open(folder / "vectors")
    own = OwnFeatures(query_vectors={name: lambda text: [1.0, 0.0, 2.0, 1.0] for name in kinds})
    feature_set = FeatureSet(["cosine.first", "cosine.second"])
    own.values(feature_set, index, [index.parse("wing")], [np.arange(20)])
