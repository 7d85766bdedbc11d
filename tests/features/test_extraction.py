"""The CPU kernel against the reference on generated hits, and the rules both must keep."""

import numpy as np
import pytest
from tests.features.random_hits import (
    FIVE_STREAMS,
    hits_of_documents,
    phrase_hits,
    random_documents,
    random_hits,
    scattered_hits,
)
from tests.tolerances import TOLERANCES

from rankwell.errors import DataError
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.kernels.extraction.reference.features import extract_features

STATICS = ("rank", "age")
FULL = make_feature_set("full", FIVE_STREAMS, STATICS).without_feedback()


def reference(hits, feature_set):
    columns = feature_set.columns(hits.streams, hits.static_names)
    return extract_features(hits.for_kernels(), hits.n_docs, columns, len(feature_set))


def assert_equals_reference(hits, feature_set):
    rows, expected = extract(hits, feature_set), reference(hits, feature_set)
    assert rows.dtype == np.float32
    plain = [column for column, feature in enumerate(feature_set.features) if feature.expression is None]
    np.testing.assert_allclose(rows[:, plain], expected[:, plain], **TOLERANCES["cpu"]["features"])


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_reference(seed):
    assert_equals_reference(random_hits(seed), FULL)


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_reference_where_terms_share_places(seed):
    assert_equals_reference(scattered_hits(seed), make_feature_set("full", FIVE_STREAMS).without_feedback())


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_reference_with_phrases(seed):
    assert_equals_reference(phrase_hits(seed), make_feature_set("full", FIVE_STREAMS).without_feedback())


@pytest.mark.parametrize("n_docs", [0, 1, 15, 16, 17, 33])
def test_equals_the_reference_around_a_block(n_docs):
    assert_equals_reference(random_hits(n_docs, n_docs=n_docs), FULL)


def test_equals_the_reference_for_long_documents_and_one_stream():
    rng = np.random.default_rng(0)
    documents = random_documents(rng, 3, streams=("body",), longest=4000, vocabulary=40)
    hits = hits_of_documents(documents, [rng.integers(0, 50, 30).tolist()], streams=("body",))
    assert_equals_reference(hits, make_feature_set("full", ("body",)).without_feedback())


def test_equals_the_reference_with_other_parameters():
    parameters = {"k1": 0.9, "b": 0.4, "b.title": 1.0, "mu": 10, "lambda": 0.1, "delta": 0.3, "weight.title": 3}
    feature_set = make_feature_set("full", FIVE_STREAMS, STATICS, parameters).without_feedback()
    hits = random_hits(77)
    assert_equals_reference(hits, feature_set)
    assert (extract(hits, feature_set) != extract(hits, FULL)).any()


def test_longer_than_the_words_that_sequences_read():
    query = list(range(70))
    documents = [{"body": query}, {"body": query[:64]}, {"body": [0, 1, 0, 1] * 40}]
    hits = hits_of_documents(documents, [query, [0, 1] * 40], streams=("body",))
    feature_set = make_feature_set("full", ("body",)).without_feedback()
    assert_equals_reference(hits, feature_set)
    rows = extract(hits, feature_set)
    assert rows[0, feature_set.names.index("longest_sequence.body")] == 64
    assert rows[0, feature_set.names.index("phrase_count.body")] == 0


def test_the_same_on_any_number_of_threads_and_in_any_batch():
    hits = random_hits(5, n_docs=60)
    rows = extract(hits, FULL, n_jobs=1)
    np.testing.assert_array_equal(extract(hits, FULL, n_jobs=2), rows)
    rng = np.random.default_rng(3)
    documents = random_documents(rng, 30)
    both = hits_of_documents(documents, [[1, 2, 3], [4, 5]])
    mslr = make_feature_set("mslr", FIVE_STREAMS)
    alone = [extract(hits_of_documents(documents, [query]), mslr) for query in ([1, 2, 3], [4, 5])]
    np.testing.assert_array_equal(extract(both, mslr), np.concatenate(alone))


def test_a_part_of_a_set_has_the_same_values():
    hits = random_hits(8)
    names = [name for name in FULL.names if not name.startswith("completeness")][::7]
    part = FeatureSet(names)
    columns = [FULL.names.index(name) for name in names]
    np.testing.assert_array_equal(extract(hits, part), extract(hits, FULL)[:, columns])


def test_no_feature_is_infinite_and_only_statics_are_missing():
    rows = extract(random_hits(9), FULL)
    statics = [column for column, name in enumerate(FULL.names) if name.startswith("static.")]
    assert np.isfinite(np.delete(rows, statics, axis=1)).all()
    assert np.isnan(rows[:, FULL.names.index("static.age")]).all()
    assert np.isfinite(rows[:, FULL.names.index("static.rank")]).all()


def test_a_stream_that_a_document_lacks_is_an_empty_stream():
    documents = [{"title": [1], "body": [1, 2]}, {"title": [1]}, {"title": [1], "body": []}]
    rows = extract(hits_of_documents(documents, [[1, 2]]), make_feature_set("mslr", FIVE_STREAMS))
    np.testing.assert_array_equal(rows[1], rows[2])


def test_features_the_index_lacks_are_named():
    hits = random_hits(1)
    feature_set = FeatureSet(["bm25.abstract", "bm25.body", "static.clicks", "bm25f(weight.abstract=2)"])
    with pytest.raises(DataError, match=r"lacks what 3 features need: bm25.abstract, static.clicks, bm25f\(weight"):
        extract(hits, feature_set)


def test_expressions_read_earlier_features_and_each_other():
    documents = [{"title": [1, 1, 2]}, {"title": [3]}]
    hits = hits_of_documents(documents, [[1, 2]], streams=("title",), statics={"age": [4.0, float("nan")]})
    names = ["tf_sum.title", "static.age", "fresh = tf_sum.title / (1 + static.age)", "log_fresh = log(fresh) + 1e-30"]
    rows = extract(hits, FeatureSet([*names, "huge = 1e38 * 1e38 * tf_sum.title"]))
    np.testing.assert_allclose(rows[0, :4], [3, 4, 3 / 5, np.log(np.float32(3 / 5))], rtol=1e-6)
    assert np.isnan(rows[1, 1:4]).all()
    assert np.isnan(rows[0, 4])
    assert rows[1, 4] == 0
