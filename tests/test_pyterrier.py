"""Rankwell's transformers: as plain functions of data frames, and in PyTerrier's pipelines where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.test_trec import QRELS, QUERIES, TEXTS

import rankwell
from rankwell import DataError, Index, IndexWriter
from rankwell.features.feature_set import make_feature_set
from rankwell.features.own_features import OwnFeatures
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features

pd = pytest.importorskip("pandas")

HAS_PYTERRIER = find_spec("pyterrier") is not None
needs_pyterrier = pytest.mark.skipif(not HAS_PYTERRIER, reason="PyTerrier is not installed")
TOPICS = pd.DataFrame({"qid": list(QUERIES), "query": list(QUERIES.values())})


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("index") / "idx"
    with IndexWriter(folder) as writer:
        writer.add([{"id": name, "text": text} for name, text in TEXTS.items()])
        writer.commit()
    return Index.open(folder)


@pytest.fixture(scope="module")
def ranker(index: Index) -> Any:
    features = make_feature_set("mslr", index.schema.streams, index.schema.statics)
    queries = [QueryText(name, text) for name, text in QUERIES.items()]
    data = judged_features(index, queries, QRELS, features).dataset
    return rankwell.LeastSquares(normalize="none").fit(data)


def transformers() -> Any:
    from rankwell import pyterrier

    return pyterrier


def test_retrieval(index: Index) -> None:
    found = transformers().Retriever(index, k=3)(TOPICS)
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    for qid, query in QUERIES.items():
        expected = index.search(query, k=3)
        own = found[found.qid == qid]
        assert own.docno.tolist() == list(expected.ids)
        assert own.score.tolist() == expected.scores.tolist()
        assert own["rank"].tolist() == list(range(len(expected.ids)))
        assert set(own["query"]) == {query}


def test_queries_are_prose_unless_told(index: Index) -> None:
    topics = pd.DataFrame({"qid": ["1"], "query": ['red -fox "']})
    assert "d1" in set(transformers().Retriever(index)(topics).docno)
    topics = pd.DataFrame({"qid": ["1"], "query": ["red -fox"]})
    assert set(transformers().Retriever(index, operators=True)(topics).docno) == {"d3"}


def test_ranked_retrieval_and_reranking_agree(index: Index, ranker: Any) -> None:
    ranked = transformers().Retriever(index, ranker=ranker)(TOPICS)
    again = transformers().Reranker(index, ranker)(transformers().Retriever(index)(TOPICS))
    for frame in (ranked, again):
        assert frame.groupby("qid").score.apply(lambda scores: scores.is_monotonic_decreasing).all()
    by_document = ["qid", "docno"]
    pd.testing.assert_frame_equal(
        ranked.sort_values(by_document)[[*by_document, "score"]].reset_index(drop=True),
        again.sort_values(by_document)[[*by_document, "score"]].reset_index(drop=True),
    )


def test_own_features(index: Index, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("inputs: [{expression: own.number}]")
    ranker = rankwell.MadeRanker.from_yaml(tmp_path / "own.yaml")
    own = OwnFeatures(functions={"number": lambda query, documents: [float(name[1:]) for name in documents]})
    ranked = transformers().Retriever(index, ranker=ranker, own=own)(TOPICS)
    again = transformers().Reranker(index, ranker, own=own)(transformers().Retriever(index)(TOPICS))
    for frame in (ranked, again):
        assert frame.score.tolist() == [float(name[1:]) for name in frame.docno]
        assert frame[frame.qid == "q1"].docno.tolist() == ["d4", "d3", "d2", "d1"]
    with pytest.raises(DataError, match=r"there is no source of own\.number"):
        transformers().Reranker(index, ranker)


def test_features_of_a_frame(index: Index, ranker: Any) -> None:
    """Other columns stay, and equal scores keep their order."""
    rows = np.random.default_rng(0).normal(size=(4, ranker.n_features_in_))
    rows[2] = rows[1]
    frame = pd.DataFrame(
        {"qid": ["b", "a", "a", "a"], "docno": list("wxyz"), "features": list(rows), "more": [1, 2, 3, 4]}
    )
    scored = transformers().FeatureScorer(ranker)(frame)
    assert scored.qid.tolist() == ["b", "a", "a", "a"]
    expected = dict(zip("wxyz", ranker.predict(rows, group=[4]), strict=True))
    assert scored.set_index("docno").score.to_dict() == pytest.approx(expected)
    of_a = scored[scored.qid == "a"]
    assert of_a["rank"].tolist() == [0, 1, 2]
    assert of_a.docno.tolist().index("x") < of_a.docno.tolist().index("y")
    assert scored.set_index("docno").more.to_dict() == {"w": 1, "x": 2, "y": 3, "z": 4}


def test_empty_and_wrong_frames(index: Index, ranker: Any) -> None:
    found = transformers().Retriever(index)(TOPICS.iloc[:0])
    assert len(found) == 0
    assert len(transformers().Reranker(index, ranker)(found)) == 0
    with pytest.raises(DataError, match="must have the columns qid, query; it lacks query"):
        transformers().Retriever(index).transform(TOPICS[["qid"]])
    with pytest.raises(DataError, match="there is no document 'unknown'"):
        transformers().Reranker(index, ranker)(TOPICS.assign(docno="unknown"))


@needs_pyterrier
def test_pipelines_of_pyterrier(index: Index, ranker: Any, tmp_path: Path) -> None:
    import pyterrier as pt

    retrieve, rerank = transformers().Retriever(index), transformers().Reranker(index, ranker)
    pipeline = (retrieve % 2) >> rerank
    assert isinstance(pipeline, pt.Transformer)
    found = pipeline(TOPICS)
    assert (found.groupby("qid").size() <= 2).all()
    qrels = pd.DataFrame(
        [(query, name, int(grade)) for query, grades in QRELS.items() for name, grade in grades.items()],
        columns=["qid", "docno", "label"],
    )
    table = pt.Experiment([retrieve, retrieve >> rerank], TOPICS, qrels, ["map", "ndcg_cut_10"], names=["bm25", "ltr"])
    ours = rankwell.evaluate(
        QRELS,
        {qid: dict(zip(own.docno, own.score, strict=True)) for qid, own in retrieve(TOPICS).groupby("qid")},
        metrics="map",
        convention="trec",
    )
    assert table.set_index("name").loc["bm25", "map"] == pytest.approx(ours.mean["map"], abs=1e-12)
