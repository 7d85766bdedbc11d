"""Training data: which candidates, which labels, what is left out; from an index and from a log."""

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import index_of, text_of

from rankwell.errors import DataError, ParameterError
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.hit_reading import collect_hits
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features, logged_features
from rankwell.index.query.query import parse_query
from rankwell.serving.ranking.feature_log import FeatureLog, FeatureLogReader

STREAMS = ("title", "body")
FEATURES = make_feature_set("mslr", STREAMS)
QUERIES = [QueryText("7", text_of([1, 2])), QueryText("3", text_of([3])), QueryText("unjudged", "w1")]
QRELS = {"7": {"d2": 2.0, "d0": 0.0, "absent": 1.0}, "3": {"d1": 1.0}, "never asked": {"d0": 1.0}}


@pytest.fixture(scope="module")
def index():
    rng = np.random.default_rng(4)
    return index_of(random_documents(rng, 60, streams=STREAMS), streams=STREAMS, cuts=(20,))


@pytest.mark.parametrize("source", ["judged", "top", "judged+top"])
def test_candidates_and_labels(index, source):
    judged = judged_features(index, QUERIES, QRELS, FEATURES, source=source, n_candidates=5)
    data = judged.dataset
    assert (judged.absent_documents, judged.unjudged_queries, judged.unasked_queries) == (1, 1, 1)
    assert data.query_ids.tolist() == [7, 3]
    assert data.feature_names == FEATURES.names
    names = list(data.comments)
    for number, query in enumerate(QUERIES[:2]):
        own = slice(*data.query_ptr[number : number + 2])
        top = index.search(query.text, k=5).ids
        known = [name for name in QRELS[query.id] if name != "absent"]
        wanted = {"judged": set(known), "top": set(top), "judged+top": {*known, *top}}[source]
        assert set(names[own]) == wanted
        assert names[own] == sorted(names[own], key=lambda name: int(name[1:]))
        assert data.labels[own].tolist() == [QRELS[query.id].get(name, 0.0) for name in names[own]]


def test_features_are_those_of_each_candidate_alone(index):
    data = judged_features(index, QUERIES, QRELS, FEATURES, n_candidates=5).dataset
    for row, (name, qid) in enumerate(zip(data.comments, data.qid_of_rows(), strict=True)):
        text = next(query.text for query in QUERIES if query.id == str(qid))
        hits = collect_hits(index, [parse_query(text, index.analysis)], [np.array([index.find(name)])])
        np.testing.assert_array_equal(data.features[row], extract(hits, FEATURES)[0])


def test_bm25_of_the_whole_document_is_the_first_pass_s(index):
    data = judged_features(index, QUERIES, QRELS, FEATURES, source="top", n_candidates=60).dataset
    column = data.features[:, FEATURES.names.index("bm25.whole")]
    for number, query in enumerate(QUERIES[:2]):
        found = index.search(query.text, k=60)
        scores = dict(zip(found.ids, found.scores.tolist(), strict=True))
        own = range(*data.query_ptr[number : number + 2])
        assert len(own) == len(scores) > 3
        np.testing.assert_allclose(column[own], [scores[data.comments[row]] for row in own], rtol=1e-6)


def test_a_log_gives_the_same_data(index, tmp_path):
    data = judged_features(index, QUERIES, QRELS, FEATURES, source="top", n_candidates=9).dataset
    with FeatureLog(tmp_path / "log", FEATURES) as log:
        log.append("7", ["d0"], np.zeros((1, len(FEATURES)), np.float32))
        for number, query_id in enumerate(data.query_ids.tolist()):
            own = slice(*data.query_ptr[number : number + 2])
            log.append(str(query_id), list(data.comments)[own], data.features[own])
        log.append("unjudged", ["d5"], np.zeros((1, len(FEATURES)), np.float32))
    judged = logged_features(FeatureLogReader(tmp_path / "log"), QRELS)
    np.testing.assert_array_equal(judged.dataset.features, data.features)
    np.testing.assert_array_equal(judged.dataset.labels, data.labels)
    assert judged.dataset.query_ids.tolist() == data.query_ids.tolist()
    assert judged.dataset.feature_names == FEATURES.names
    assert (judged.unjudged_queries, judged.unasked_queries) == (1, 1)
    found = {(str(qid), name) for qid, name in zip(data.qid_of_rows(), data.comments, strict=True)}
    asked = {(qid, name) for qid in ("7", "3") for name in QRELS[qid]}
    assert judged.absent_documents == len(asked - found)


def test_mistakes_are_told(index):
    with pytest.raises(ParameterError, match=r"source must be one of top, judged\+top, judged"):
        judged_features(index, QUERIES, QRELS, FEATURES, source="all")
    with pytest.raises(ParameterError, match="n_candidates must be at least 1"):
        judged_features(index, QUERIES, QRELS, FEATURES, n_candidates=0)
    with pytest.raises(DataError, match=r"lacks what 1 feature needs: bm25.abstract"):
        judged_features(index, QUERIES, QRELS, FeatureSet(["bm25.abstract"]))
    with pytest.raises(DataError, match="no candidate of a judged query was found"):
        judged_features(index, QUERIES, {"other": {"d0": 1.0}}, FEATURES)
