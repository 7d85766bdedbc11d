"""Features of documents small enough to work out by hand."""

from math import log, sqrt

import numpy as np
import pytest
from tests.features.random_hits import hits_of_documents

from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set

# Words: 1 = red, 2 = fox, 3 = dog, 0 = filler, -1 = a stop word. The query is "red fox".
DOCUMENTS = [
    {"title": [1, 2], "body": [0, 1, 0, 0, 2, 1, 2, 0]},
    {"title": [2, -1, 1], "body": [0, 0]},
    {"title": [3], "body": []},
    {"body": [1, 0, 0, 0]},
]
QUERY = [1, 2]


def idf(n_docs, doc_freq):
    return log(1 + (n_docs - doc_freq + 0.5) / (doc_freq + 0.5))


def values_of(names, documents=DOCUMENTS, queries=(QUERY,), streams=("title", "body"), **options):
    hits = hits_of_documents(documents, queries, streams=streams, **options)
    return extract(hits, FeatureSet(names))


def column(name, **options):
    return values_of([name], **options)[:, 0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("covered_terms.title", [2, 2, 0, 0]),
        ("covered_ratio.body", [1, 0, 0, 0.5]),
        ("length.title", [2, 2, 1, 0]),
        ("length.whole", [10, 4, 1, 4]),
        ("idf.title", [2 * idf(4, 2)] * 4),
        ("idf.body", [idf(4, 2) + idf(4, 1)] * 4),
        ("tf_sum.body", [4, 0, 0, 1]),
        ("tf_min.body", [2, 0, 0, 0]),
        ("tf_max.body", [2, 0, 0, 1]),
        ("tf_mean.body", [2, 0, 0, 0.5]),
        ("tf_variance.body", [0, 0, 0, 0.25]),
        ("tf_sum.whole", [6, 2, 0, 1]),
        ("normalised_tf_sum.body", [4 / 8, 0, 0, 1 / 4]),
        ("normalised_tf_variance.body", [0, 0, 0, (1 / 8) ** 2]),
        ("tfidf_max.body", [2 * idf(4, 1), 0, 0, idf(4, 2)]),
        ("boolean.body", [1, 0, 0, 0]),
        ("vector_space.title", [1, 1, 0, 0]),
        ("vector_space.body", [1, 0, 0, idf(4, 2) / sqrt(idf(4, 2) ** 2 + idf(4, 1) ** 2)]),
        ("bm25.title", [2 * idf(4, 2) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / (5 / 4)))] * 2 + [0, 0]),
        ("query_completeness.body", [1, 0, 0, idf(4, 2) / (idf(4, 2) + idf(4, 1))]),
        ("field_completeness.title", [1, 1, 0, 0]),
        ("field_completeness.body", [2 / 8, 0, 0, 1 / 4]),
        ("first_place.body", [2, 0, 0, 1]),
        ("last_place.body", [7, 0, 0, 1]),
        ("last_place.title", [2, 3, 0, 0]),
        ("earliness.body", [1 - 1 / 8, 0, 0, 1]),
        ("window_all.body", [2, 0, 0, 0]),
        ("window_matched.body", [2, 0, 0, 1]),
        ("window_matched.title", [2, 3, 0, 0]),
        ("window_density.title", [1, 2 / 3, 0, 0]),
        ("window_order.title", [1, 0, 0, 0]),
        ("window_order.body", [0, 0, 0, 1]),
        ("pair_distance.title", [1, 2, 0, 0]),
        ("pair_distance.body", [1, 0, 0, 0]),
        ("longest_sequence.body", [2, 0, 0, 1]),
        ("sequence_ratio.body", [1, 0, 0, 0.5]),
        ("phrase_count.body", [1, 0, 0, 0]),
        ("exact_match.title", [1, 0, 0, 0]),
        ("exact_match.body", [0, 0, 0, 0]),
        ("ordered_pairs.body", [1, 0, 0, 0]),
        # red at 1 and 5, fox at 4 and 6: distances 3, 5, 1, 1.
        ("unordered_pairs.body", [4, 0, 0, 0]),
        ("forward_distance.body", [1, 0, 0, 0]),
        ("reverse_distance.body", [1, 0, 0, 0]),
        ("forward_distance.title", [1, 0, 0, 0]),
        ("reverse_distance.title", [0, 2, 0, 0]),
        ("forward_proximity.title", [1, 0, 0, 0]),
        ("reverse_proximity.title", [0, 0.5, 0, 0]),
    ],
)
def test_by_hand(name, expected):
    np.testing.assert_allclose(column(name), expected, rtol=2e-7)


def test_language_models_by_hand():
    """Of "red red fox dog", one of two documents, the query "red dog"; the other is "fox fox"."""
    documents = [{"body": [1, 1, 2, 3]}, {"body": [2, 2]}, {"body": []}]
    # The collection has 6 words: red twice, dog once.
    p_red, p_dog = 2 / 6, 1 / 6
    names = ["lm_absolute.body(delta=0.5)", "lm_dirichlet.body(mu=2)", "lm_jelinek_mercer.body(lambda=0.25)"]
    rows = values_of(names, documents, [[1, 3]], ("body",))
    full = [
        log((1.5 + 0.5 * 3 * p_red) / 4) + log((0.5 + 0.5 * 3 * p_dog) / 4),
        log((2 + 2 * p_red) / 6) + log((1 + 2 * p_dog) / 6),
        log(0.75 * 2 / 4 + 0.25 * p_red) + log(0.75 * 1 / 4 + 0.25 * p_dog),
    ]
    without = [
        log(0.5 * 1 * p_red / 2) + log(0.5 * 1 * p_dog / 2),
        log(2 * p_red / 4) + log(2 * p_dog / 4),
        log(0.25 * p_red) + log(0.25 * p_dog),
    ]
    np.testing.assert_allclose(rows, [full, without, [log(p_red) + log(p_dog)] * 3], rtol=2e-7)


def test_language_models_leave_out_terms_that_the_stream_s_collection_lacks():
    documents = [{"body": [1, 2]}, {"body": [2]}]
    name = "lm_dirichlet.body"
    np.testing.assert_array_equal(
        column(name, documents=documents, queries=[[1, 99]], streams=("body",)),
        column(name, documents=documents, queries=[[1]], streams=("body",)),
    )


def test_a_repeated_query_word_counts_as_often():
    documents = [{"body": [1, 2, 0]}, {"body": [1, 0]}]
    for name in ("bm25.body", "lm_absolute.body"):
        one = column(name, documents=documents, queries=[[1]], streams=("body",))
        other = column(name, documents=documents, queries=[[2]], streams=("body",))
        both = column(name, documents=documents, queries=[[1, 2, 1]], streams=("body",))
        np.testing.assert_allclose(both, 2 * one + other, rtol=1e-6)
    assert column("tf_sum.body", documents=documents, queries=[[1, 1]], streams=("body",)).tolist() == [1, 1]


def test_stop_words_leave_the_same_gap_in_the_query():
    """ "king of norway" is the phrase "king of norway", and not "king norway"."""
    documents = [{"body": [1, -1, 2]}, {"body": [1, 2]}, {"body": [2, -1, 1, -1, 2]}]
    rows = values_of(["phrase_count.body", "ordered_pairs.body"], documents, [[1, -1, 2]], ("body",))
    assert rows.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_bm25f_sums_before_it_saturates():
    documents = [{"title": [1], "body": [1, 0, 0]}, {"title": [0], "body": [0]}]
    # Mean lengths: title 1, body 2. Term 1 is in one of two documents.
    frequency = 3 * 1 / (1 - 0.5 + 0.5 * 1) + 1 / (1 - 0.75 + 0.75 * 3 / 2)
    expected = idf(2, 1) * frequency * 2.2 / (frequency + 1.2)
    found = column("bm25f(b.title=0.5;weight.title=3)", documents=documents, queries=[[1]])
    np.testing.assert_allclose(found, [expected, 0], rtol=2e-7)


def test_bm25f_of_one_stream_is_bm25():
    found = values_of(["bm25.body", "bm25f"], [{"body": [1, 1, 0]}, {"body": [1]}], [[1, 0]], ("body",))
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-6)


def test_proximity_of_neighbours_by_hand():
    """red at 0, fox at 2: each lends the other idf / 4."""
    documents = [{"body": [1, 0, 2]}, {"body": [0, 0, 0]}]
    near = idf(2, 1) / 4
    expected = 2 * min(1, idf(2, 1)) * near * 2.2 / (near + 1.2)
    found = column("bm25_proximity.body", documents=documents, queries=[[1, 2]], streams=("body",))
    np.testing.assert_allclose(found, [expected, 0], rtol=2e-7)


def test_a_query_without_words_has_lengths_and_nothing_else():
    feature_set = make_feature_set("full", ("title", "body")).without_feedback()
    row = extract(hits_of_documents(DOCUMENTS, [[]], streams=("title", "body")), feature_set)[0]
    found = {name: value for name, value in zip(feature_set.names, row.tolist(), strict=True) if value}
    assert found == {"length.title": 2, "length.body": 8, "length.whole": 10}
