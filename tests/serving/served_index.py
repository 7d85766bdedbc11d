"""A small index on disk and rankers trained on it, for tests of what serves them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.features.random_hits import random_documents
from tests.features.small_index import text_of

from rankwell import Index, IndexWriter, LeastSquares, MadeRanker, RankBoost
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.ranker_file import read_ranker_file

STREAMS = ("title", "body")
QUERIES = [text_of([number % 9, (number * 5) % 11]) for number in range(24)]
N_CANDIDATES, KEEP = 30, 6


def make_served_index(folder: Path) -> dict[str, Path]:
    """`folder/index` of 80 documents; returns ranker files by name."""
    rng = np.random.default_rng(4)
    with IndexWriter(folder / "index") as writer:
        for number, document in enumerate(random_documents(rng, 80, streams=STREAMS)):
            texts = {stream: text_of(words) for stream, words in document.items()}
            writer.add([{"id": f"d{number}", **texts}])
        writer.commit()
    index = Index.open(folder / "index")
    features = make_feature_set("full", STREAMS)
    queries = [QueryText(str(number), text) for number, text in enumerate(QUERIES)]
    qrels = {query.id: {f"d{doc}": float(rng.integers(0, 3)) for doc in range(80)} for query in queries}
    train = judged_features(index, queries, qrels, features, source="top", n_candidates=N_CANDIDATES).dataset
    linear, boosted = LeastSquares().fit(train), RankBoost(n_rounds=5).fit(train)
    first = RankerPart("first", tuple(range(train.n_features)), linear.description_)
    cascade = MadeRanker.from_description(replace(boosted.description_, parts=(first,), first_pass=FirstPass(0, KEEP)))
    paths = {}
    for name, ranker in {"boosted": boosted, "linear": linear, "cascade": cascade}.items():
        paths[name] = folder / f"{name}.rank"
        ranker.save(paths[name])
    return paths


def save_alone(ranker: Path, path: Path) -> Path:
    """A ranker file like `ranker` that scores each document alone, so that nodes do, and documents in blocks."""
    description = read_ranker_file(ranker).description
    MadeRanker.from_description(replace(description, normaliser=Normaliser())).save(path)
    return path


def add_document(folder: Path, document_id: str, text: str) -> None:
    """Commit one more document."""
    with IndexWriter(folder / "index") as writer:
        writer.add([{"id": document_id, "title": text, "body": text}])
        writer.commit()
