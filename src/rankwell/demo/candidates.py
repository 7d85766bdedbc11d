"""Candidates: what the first pass finds for each query, with their features and grades, as the commands do it."""

from __future__ import annotations

from pathlib import Path

from rankwell.corpus.reading import read_corpus
from rankwell.data.dataset import RankingDataset
from rankwell.demo.contest import DEPTH, Part
from rankwell.features.feature_set import make_feature_set
from rankwell.features.qrels import Qrels, read_qrels
from rankwell.features.queries import read_queries
from rankwell.features.training_data import judged_features
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter


def build_index(documents: Path, folder: Path, schema: Schema | None = None) -> Index:
    """Index a file of documents, replacing an index in `folder`."""
    analysis = Analysis(stemmer="english", stop_words="english")
    with IndexWriter(folder, schema=schema, analysis=analysis, overwrite=True) as writer:
        for batch in read_corpus([documents]):
            writer.add(batch)
        writer.commit()
    return Index.open(folder)


def gather_candidates(index: Index, queries: Path, judgments: Path) -> Part:
    """BM25's first `DEPTH` documents for each query of a file, and every feature of each.

    Judged documents that are not among them are left out in training as well: adding them gives a ranker lists that do
    not occur in serving, and made every ranker worse in a test.
    """
    features = make_feature_set("full", index.schema.streams, index.schema.statics)
    grades = read_qrels(judgments)
    found = judged_features(index, read_queries(queries), grades, features, source="top", n_candidates=DEPTH)
    first = features.names.index("bm25.whole")
    return Part(found.dataset, found.dataset.features[:, first].astype(float), missed_grades(found.dataset, grades))


def missed_grades(candidates: RankingDataset, judgments: Qrels) -> dict[int, list[float]]:
    """By the number of each judged query, the grades of its judged documents that are not candidates."""
    rows_of = dict(zip(candidates.query_ids.tolist(), candidates.queries(), strict=True))
    names = list(candidates.comments or ())
    missed = {}
    for query, grades in judgments.items():
        found = set(names[rows_of.get(int(query), slice(0, 0))])
        missed[int(query)] = [grade for name, grade in grades.items() if name not in found]
    return missed
