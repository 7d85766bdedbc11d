"""Phrases as terms of a query: their hits, and what features and selection make of them."""

import math

import numpy as np
import pytest
from tests.features.random_hits import hits_of_documents, random_documents
from tests.features.small_index import index_of, text_of

from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.hit_reading import collect_hits
from rankwell.index.search.bm25 import BM25
from rankwell.kernels.extraction.rules import Kind

STREAMS = ("title", "body")
# The words of queries, -1 a stop word, and the phrases that are terms of each.
QUERIES = [
    ("{0} w3", [1, 2, 3], [(1, 2)]),
    ("{0}", [1, 2], [(1, 2)]),
    ("w3 {0} {1} {0}", [3, 1, 2, 0, -1, 1, 1, 2], [(1, 2), (0, -1, 1)]),
    ("+{0} -{1} w3", [1, 2, 3], [(1, 2)]),
    ("{0} OR w3", [1, 2, 3], [(1, 2)]),
    ("w1 w2", [1, 2], []),
]


@pytest.fixture(scope="module")
def documents():
    return random_documents(np.random.default_rng(3), 60, streams=STREAMS, vocabulary=5, longest=40)


def query_text(pattern):
    return pattern.format('"w1 w2"', '"w0 gap w1"')


def test_hits_are_those_of_the_documents(documents):
    """Three segments, the first without a body: every array is what counting over all documents gives."""
    first = [{"title": document.get("title", np.empty(0))} for document in documents[:10]]
    documents = [*first, *documents[10:]]
    index = index_of(documents, streams=STREAMS, cuts=(10, 30))
    queries = [index.parse(query_text(pattern)) for pattern, _, _ in QUERIES]
    candidates = [np.random.default_rng(number).permutation(60)[:25] for number in range(len(QUERIES))]
    found = collect_hits(index, queries, candidates).check()
    wanted = hits_of_documents(
        documents,
        [words for _, words, _ in QUERIES],
        streams=STREAMS,
        candidates=[docs.tolist() for docs in candidates],
        phrases=[phrases for _, _, phrases in QUERIES],
    )
    for name, array in wanted.arrays().items():
        if name not in ("query_frequency", "word_places"):
            np.testing.assert_array_equal(getattr(found, name), array, err_msg=name)
    # "w1 w2" is in the third query twice.
    by_query = np.split(found.query_frequency, found.term_ptr[1:-1])
    assert by_query[2].tolist() == [1, 3, 2, 1, 2, 1]
    frequencies = collect_hits(index, queries, candidates, places=False)
    np.testing.assert_array_equal(frequencies.cell_ptr, found.cell_ptr)
    assert not frequencies.has_places


def test_deleted_documents_do_not_count(documents):
    index = index_of(documents, streams=STREAMS, cuts=(20,), deleted=(3, 25))
    left = [document for number, document in enumerate(documents) if number not in (3, 25)]
    found = collect_hits(index, [index.parse('"w1 w2"')], [np.array([0, 1])])
    wanted = hits_of_documents(left, [[1, 2]], streams=STREAMS, phrases=[[(1, 2)]])
    np.testing.assert_array_equal(found.doc_freq, wanted.doc_freq)
    np.testing.assert_array_equal(found.occurrences, wanted.occurrences)


def test_by_hand():
    """Four documents; the phrase is twice in the first and once in the second, its words are in three."""
    texts = [[1, 2, 0, 1, 2], [1, 2, 3], [2, 1, 3], [0]]
    index = index_of([{"body": np.array(text)} for text in texts], streams=("body",))
    query = index.parse('"w1 w2" w3')
    assert query.phrases[0].terms == (b"w1", b"w2")
    names = ["covered_terms", "tf_sum", "tf_max", "idf", "bm25", "boolean", "query_completeness"]
    places = ["window_matched", "pair_distance", "field_completeness", "phrase_count", "first_place"]
    feature_set = FeatureSet([f"{name}.body" for name in (*names, *places)])
    rows = extract(collect_hits(index, [query], [np.arange(4)]), feature_set)

    def idf(df):
        return math.log(1 + (4 - df + 0.5) / (df + 0.5))

    word, third, phrase = idf(3), idf(2), idf(2)
    # Lengths are 5, 3, 3 and 1, the mean is 3.
    norm = 1.2 * (0.25 + 0.75 * 5 / 3)
    first = (2 * word + phrase) * 2 * 2.2 / (2 + norm)
    every = 2 * word + third + phrase
    wanted = [
        [3, 2 + 2 + 2, 2, every, first, 0, (2 * word + phrase) / every, 2, 1, 2 / 5, 0, 1],
        [4, 1 + 1 + 1 + 1, 1, every, every, 1, 1, 3, 1, 1, 1, 1],
        [3, 3, 1, every, 2 * word + third, 0, (2 * word + third) / every, 3, 1, 1, 0, 1],
        [0, 0, 0, every, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    np.testing.assert_allclose(rows, wanted, rtol=1e-6)
    # A phrase must occur, unless OR says otherwise.
    scores = {"d0": first, "d1": every, "d2": 2 * word + third}
    for text, ids in (('"w1 w2" w3', ["d1", "d0"]), ('"w1 w2" OR w3', ["d1", "d0", "d2"])):
        result = index.search(text, k=4)
        assert result.ids == ids
        assert result.scores.tolist() == pytest.approx([scores[name] for name in ids])


@pytest.mark.parametrize("stream", [None, "body"])
def test_selection_s_score_is_the_feature(documents, stream):
    index = index_of(documents, streams=STREAMS, cuts=(20,))
    feature_set = FeatureSet([f"bm25.{stream or 'whole'}"])
    for pattern, _, _ in QUERIES:
        result = index.search(query_text(pattern), k=60, model=BM25(stream=stream))
        assert len(result) or pattern.startswith("w3")
        rows = extract(collect_hits(index, [result.query], [result.docs]), feature_set)
        np.testing.assert_allclose(rows[:, 0], result.scores, rtol=1e-6)


def test_features_of_places_are_those_of_the_words(documents):
    index = index_of(documents, streams=STREAMS)
    feature_set = make_feature_set("full", STREAMS).without_feedback()
    of_places = [
        column
        for column, feature in enumerate(feature_set.features)
        if feature.expression is None
        and feature.kind.upper() in Kind.__members__
        and Kind[feature.kind.upper()] >= Kind.FIELD_COMPLETENESS
    ]
    docs = np.arange(60)
    with_phrase, words = (
        extract(collect_hits(index, [index.parse(text)], [docs]), feature_set) for text in ('"w1 w2" w3', "w1 w2 w3")
    )
    np.testing.assert_array_equal(with_phrase[:, of_places], words[:, of_places])
    assert (with_phrase != words).any()


def test_a_phrase_with_slop_is_a_condition_only(documents):
    index = index_of(documents, streams=STREAMS)
    assert index.parse('"w1 w2"~2').phrases == ()
    assert index.parse('w1 -"w1 w2"').phrases == ()
    assert index.parse(text_of([1, 2])).phrases == ()
