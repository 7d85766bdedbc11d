"""Feedback features: the formula, by hand and against the reference; the same in training and in serving."""

import math

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import ANALYSIS, index_of, text_of

from rankwell import LeastSquares
from rankwell.corpus.document import Place, document_of
from rankwell.errors import DataError, ParameterError
from rankwell.features import forward_counting
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet
from rankwell.features.feedback import ModelSettings, relevance_model, with_feedback
from rankwell.features.forward_counting import count_forward
from rankwell.features.hit_reading import collect_hits, count_hits
from rankwell.features.names import parse_feature
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features, logged_features
from rankwell.index.query.query import parse_query
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.segments import document_terms
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.sink import MemorySink
from rankwell.kernels.device_report import report_device
from rankwell.kernels.extraction.reference.relevance_model import relevance_model_feature, term_weights, whole
from rankwell.serving.ranking.feature_log import FeatureLog, FeatureLogReader
from rankwell.serving.ranking.ranked_search import RankedSearch

STREAMS = ("title", "body")
NAMES = [
    "relevance_model.whole",
    "relevance_model.title(terms=3)",
    "relevance_model.body(b=0.3;documents=4;k1=0;original=0)",
]
FEATURES = FeatureSet(["bm25.whole", *NAMES, "twice = 2 * relevance_model.whole"])
QUERIES = [[1, 2, 1], [7, 8, 9, 10], [], [999, 3], [998], [30, 31, 32, 5]]


@pytest.fixture(scope="module")
def documents():
    return random_documents(np.random.default_rng(8), 90, streams=STREAMS, vocabulary=400)


@pytest.fixture(scope="module")
def index(documents):
    return index_of(documents, streams=STREAMS, cuts=(40, 41), forward="all")


def rows_of(index, queries, feature_set, candidates=None, n_candidates=30, n_jobs=None):
    parsed = [parse_query(text_of(words), index.analysis) for words in queries]
    found = [index.search(query, k=n_candidates) for query in parsed]
    docs = [result.docs for result in found] if candidates is None else candidates
    hits = collect_hits(index, parsed, docs, n_jobs=n_jobs)
    hits = with_feedback(hits, feature_set, index, found, docs, n_jobs=n_jobs).check()
    return extract(hits, feature_set, n_jobs=n_jobs), found


def test_the_formula_by_hand():
    """w1 finds the two documents that have it; with twenty documents, a term of two of them may join the model."""
    documents = [{"body": [1, 2]}, {"body": [1, 3, 3, 3]}, {"body": [3, 4]}, *({"body": [9, 9]} for _ in range(17))]
    index = index_of(documents, streams=("body",))
    found = index.search("w1", k=2)
    first, second = found.scores.tolist()
    assert found.docs.tolist() == [0, 1]
    # r(t): document 0 has w1 and w2 once in two words, document 1 w1 once and w3 thrice in four.
    w1, w2, w3 = first / 2 + second / 4, first / 2, second * 3 / 4
    said = w1 + w2 + w3
    model = relevance_model(index, found, ModelSettings(10, 10, 0.25))
    assert list(model) == [b"w1", *((b"w3", b"w2") if w3 > w2 else (b"w2", b"w3"))]
    np.testing.assert_allclose(
        [model[b"w1"], model[b"w2"], model[b"w3"]],
        [0.25 + 0.75 * w1 / said, 0.75 * w2 / said, 0.75 * w3 / said],
        rtol=1e-12,
    )
    # Document 2, which lacks the query's word, has w3 once in two words; all documents have 42.
    relative = 2 / (42 / 20)
    idf = math.log(1 + (20 - 2 + 0.5) / (2 + 0.5))
    expected = 0.75 * w3 / said * idf * 1 * 2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * relative))
    rows, _ = rows_of(index, [[1]], FeatureSet(["relevance_model.body(original=0.25)"]), [np.array([2, 3])])
    np.testing.assert_allclose(rows[:, 0], [expected, 0], rtol=1e-6)


def test_the_textbook_s_parameters_are_the_usual_ones():
    settings = parse_feature("relevance_model.whole").settings
    assert settings == {"k1": 1.2, "b": 0.75, "documents": 10, "terms": 10, "original": 0.5}


def test_terms_of_many_documents_do_not_join():
    documents = [{"body": [1, 2, 3]}, {"body": [2]}, {"body": [2]}, *({"body": [4]} for _ in range(17))]
    index = index_of(documents, streams=("body",))
    model = relevance_model(index, index.search("w1"), ModelSettings(10, 10, 0.5))
    # w2 is in 3 of 20, w1 and w3 in one.
    assert model == {b"w1": 0.75, b"w3": 0.25}


def test_if_all_terms_are_common_none_joins():
    documents = [{"body": [1, 2]}] * 12
    index = index_of(documents, streams=("body",), cuts=(6,), forward="all")
    assert list(relevance_model(index, index.search("w1"), ModelSettings(10, 10, 0.5))) == [b"w1"]


def test_of_equal_terms_the_first_ones_join():
    index = index_of([{"body": [5, 8, 7, 6]}, *({"body": [4]} for _ in range(19))], streams=("body",))
    assert list(relevance_model(index, index.search("w7"), ModelSettings(1, 2, 0.5))) == [b"w7", b"w5", b"w6"]


@pytest.mark.parametrize("forward", ["all", ("body",), ()])
@pytest.mark.parametrize("cuts", [(), (40, 41)])
@pytest.mark.parametrize("deleted", [(), (3, 17, 40, 88)])
def test_equal_to_the_reference(documents, deleted, cuts, forward):
    index = index_of(documents, streams=STREAMS, cuts=cuts, deleted=deleted, forward=forward)
    left = [number for number in range(len(documents)) if number not in deleted]
    texts = [
        {stream: [f"w{word}".encode() for word in documents[number].get(stream, ()) if word >= 0] for stream in STREAMS}
        for number in left
    ]
    rows, found = rows_of(index, QUERIES, FEATURES, [np.array(left)] * len(QUERIES))
    by_query = rows.reshape(len(QUERIES), len(left), len(FEATURES))
    for query, result, own in zip(QUERIES, found, by_query, strict=True):
        words = [f"w{word}".encode() for word in query]
        for column, feature in enumerate(map(parse_feature, NAMES), start=1):
            settings = feature.settings
            fed_back = list(zip(result.docs.tolist(), result.scores.tolist(), strict=True))[
                : int(settings["documents"])
            ]
            weights = term_weights(
                words,
                texts,
                [(left.index(doc), score) for doc, score in fed_back],
                int(settings["terms"]),
                settings["original"],
            )
            streams = [whole(text) if feature.stream == "whole" else text[feature.stream] for text in texts]
            expected = [
                relevance_model_feature(weights, streams, number, settings["k1"], settings["b"])
                for number in range(len(left))
            ]
            np.testing.assert_allclose(own[:, column], expected, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(own[:, -1], 2 * own[:, 1])
    assert (by_query[0, :, 1:] > 0).any(axis=0).all()


@pytest.mark.parametrize("cuts", [(), (40, 41)])
def test_a_forward_index_changes_no_value(documents, cuts):
    indexes = [index_of(documents, streams=STREAMS, cuts=cuts, forward=forward) for forward in ((), "all")]
    without, with_it = (rows_of(index, QUERIES, FEATURES)[0] for index in indexes)
    np.testing.assert_array_equal(with_it, without)


@pytest.mark.parametrize("cuts", [(), (40, 41)])
def test_counts_from_the_forward_index(documents, cuts, monkeypatch):
    """Whichever is quicker: both ways count the same."""
    index = index_of(documents, streams=STREAMS, cuts=cuts, forward="all")
    parsed = [parse_query(text_of(words), index.analysis) for words in QUERIES]
    docs = [np.arange(60, 20, -1)] * len(parsed)
    forward = count_hits(index, parsed, docs)
    assert all(count_forward(index, query, own) is not None for query, own in zip(parsed, docs, strict=True))
    for name in ("BATCH_BYTES", "CANDIDATE_BYTES", "LIST_BYTES", "LOOKUP_BYTES"):
        monkeypatch.setattr(forward_counting, name, 0)
    assert count_forward(index, parsed[0], docs[0]) is None
    for one, other in zip(forward, count_hits(index, parsed, docs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_neither_the_batch_nor_threads_matter(index):
    together, found = rows_of(index, QUERIES, FEATURES, n_jobs=2)
    alone = [rows_of(index, [query], FEATURES, n_jobs=1)[0] for query in QUERIES]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    few, _ = rows_of(index, QUERIES[:1], FEATURES, [found[0].docs[5:8]])
    np.testing.assert_array_equal(few, together[5:8])


def test_what_is_served_is_what_was_trained(index, tmp_path):
    queries = [QueryText(str(number), text_of(words)) for number, words in enumerate(QUERIES)]
    qrels = {query.id: {f"d{doc}": float(doc % 3) for doc in range(0, 90, 2)} for query in queries}
    train = judged_features(index, queries, qrels, FEATURES, source="top", n_candidates=30).dataset
    both = judged_features(index, queries, qrels, FEATURES, source="judged+top", n_candidates=30).dataset
    with FeatureLog(tmp_path / "log", FEATURES) as log:
        searcher = RankedSearch(index, LeastSquares().fit(train), n_candidates=30, log=log)
        for query in queries:
            searcher.search(query.text, query_id=query.id)
    logged = logged_features(FeatureLogReader(tmp_path / "log"), qrels).dataset

    def keyed(data):
        rows = zip(data.qid_of_rows().tolist(), data.comments, data.features, strict=True)
        return {(query, name): row.tobytes() for query, name, row in rows}

    assert len(keyed(train)) > 30
    assert keyed(logged) == keyed(train)
    assert keyed(train).items() <= keyed(both).items()


def test_counts_are_those_of_the_hits(index):
    parsed = [parse_query(text_of(words), index.analysis) for words in QUERIES]
    docs = [np.arange(7, 60)] * len(parsed)
    hits = collect_hits(index, parsed, docs)
    counts = np.concatenate([own.reshape(-1) for own in count_hits(index, parsed, docs)])
    np.testing.assert_array_equal(counts, np.diff(hits.cell_ptr))


def one_document_index(body, others=19):
    builder = SegmentBuilder(Schema(("body",), {"price": None}), ANALYSIS)
    fields = [{"id": "long", "body": body, "price": 3}, *({"id": f"d{n}", "body": "w0"} for n in range(others))]
    builder.add([document_of(one, Place("test", 1)) for one in fields])
    sink = MemorySink()
    builder.write(sink)
    return Index([sink.segment()], [None], Schema(("body",), {"price": None}), ANALYSIS)


def test_texts_in_lists_are_read():
    index = one_document_index(["w1 w2", "w3"])
    assert set(relevance_model(index, index.search("w1"), ModelSettings(10, 10, 0.5))) == {b"w1", b"w2", b"w3"}


def test_of_a_long_text_the_beginning_is_read(monkeypatch):
    monkeypatch.setattr(document_terms, "LONGEST_TEXT", 10)
    index = one_document_index("w1 w22 w33333 w4")
    assert set(relevance_model(index, index.search("w4"), ModelSettings(10, 10, 0.5))) == {b"w1", b"w22", b"w4"}


def test_hits_without_feedback_are_refused(index):
    hits = collect_hits(index, [parse_query("w1", index.analysis)], [np.arange(3)])
    with pytest.raises(DataError, match=r"the hits lack relevance_model.whole, .*with_feedback"):
        extract(hits, FEATURES)


def test_a_static_with_the_feature_s_name_is_refused(documents):
    index = index_of(documents, streams=STREAMS, statics={"relevance_model.whole": [1.0] * len(documents)})
    with pytest.raises(DataError, match=r"a static called 'relevance_model.whole'"):
        rows_of(index, QUERIES, FEATURES)


def test_a_stream_the_index_lacks_is_named(index):
    with pytest.raises(DataError, match=r"lacks what 1 feature needs: relevance_model.url"):
        judged_features(index, [], {}, FeatureSet(["relevance_model.url"]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("relevance_model", "name a stream, as in relevance_model.title"),
        ("relevance_model.whole(mu=3)", "its settings are: k1, b, documents, terms, original"),
        ("relevance_model.whole(terms=2.5)", "terms must be a whole number, got 2.5"),
        ("relevance_model.whole(documents=0)", r"documents must be in \[1, 100\], got 0"),
        ("relevance_model.whole(original=1.5)", r"original must be in \[0, 1\], got 1.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, message):
    with pytest.raises(ParameterError, match=message):
        parse_feature(name)


@pytest.mark.gpu
@pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description)
def test_a_device_has_the_host_s_values(index):
    parsed = [parse_query(text_of(words), index.analysis) for words in QUERIES]
    found = [index.search(query, k=30) for query in parsed]
    docs = [result.docs for result in found]
    hits = with_feedback(collect_hits(index, parsed, docs), FEATURES, index, found, docs)
    np.testing.assert_array_equal(extract(hits, FEATURES, device="cuda"), extract(hits, FEATURES))
