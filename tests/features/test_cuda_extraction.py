"""Extraction on a CUDA device against the CPU's, and scores of hits without features in between."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.features.random_hits import (
    FIVE_STREAMS,
    hits_of_documents,
    join_hits,
    phrase_hits,
    random_documents,
    random_hits,
    scattered_hits,
)
from tests.scoring.random_rankers import random_trees
from tests.tolerances import TOLERANCES

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.features.cuda_extraction import CudaFeatureExtractor
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.kernels.device_report import report_device
from rankwell.scoring.cuda_scorer import CudaRankerScorer
from rankwell.scoring.description import LinearInputs, RankerDescription, Sum
from rankwell.scoring.normaliser import NORMALISERS, Normaliser
from rankwell.scoring.ranker_cache import RankerCache
from rankwell.scoring.scorer import RankerScorer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]

STATICS = ("rank", "age")
FULL = make_feature_set("full", FIVE_STREAMS, STATICS).without_feedback()
MSLR = make_feature_set("mslr", FIVE_STREAMS)


def assert_same_as_the_cpu(extractor, hits):
    rows, expected = extractor.extract(hits), extract(hits, extractor.feature_set)
    assert rows.dtype == np.float32
    assert rows.shape == expected.shape
    has_log = np.array([name.startswith("lm_") for name in extractor.feature_set.names])
    np.testing.assert_array_equal(rows[:, ~has_log], expected[:, ~has_log])
    # Logarithms may differ in the last place of float64: their sums, rounded, in the last place of float32.
    np.testing.assert_array_max_ulp(rows[:, has_log], expected[:, has_log], maxulp=1)


def trees_over(feature_set, seed, normaliser="none"):
    rng = np.random.default_rng(seed)
    n_features = len(feature_set)
    arrays = {}
    if normaliser == "standard":
        arrays = {"mean": rng.normal(size=n_features), "scale": rng.uniform(0.5, 2.0, n_features)}
    trees = random_trees(rng, 60, n_features)
    lines = LinearInputs(np.arange(5, dtype=np.int32), rng.normal(size=5), rng.normal(size=5), np.zeros(5))
    return RankerDescription(feature_set.names, Normaliser(normaliser, arrays), (trees, lines), (Sum(0.5),))


@pytest.mark.parametrize("seed", range(6))
def test_awkward_queries(seed):
    assert_same_as_the_cpu(CudaFeatureExtractor(FULL), random_hits(seed, n_docs=11 * seed))


@pytest.mark.parametrize("seed", range(4))
def test_terms_that_share_places(seed):
    feature_set = make_feature_set("full", FIVE_STREAMS).without_feedback()
    assert_same_as_the_cpu(CudaFeatureExtractor(feature_set), scattered_hits(seed))


@pytest.mark.parametrize("seed", range(3))
def test_queries_with_phrases(seed):
    feature_set = make_feature_set("full", FIVE_STREAMS).without_feedback()
    assert_same_as_the_cpu(CudaFeatureExtractor(feature_set), phrase_hits(seed))


@pytest.mark.parametrize("n_docs", [1, 31, 32, 33, 127, 128, 129, 300])
def test_around_a_block(n_docs):
    documents = random_documents(np.random.default_rng(n_docs), n_docs)
    assert_same_as_the_cpu(CudaFeatureExtractor(MSLR), hits_of_documents(documents, [[1, 2, 3, 4]]))


def test_many_terms_and_long_documents():
    rng = np.random.default_rng(0)
    documents = random_documents(rng, 3, streams=("body",), longest=4000, vocabulary=40)
    queries = [rng.integers(0, 50, 30).tolist(), list(range(70)), [1, 2]]
    hits = hits_of_documents(documents, queries, streams=("body",))
    assert_same_as_the_cpu(CudaFeatureExtractor(make_feature_set("full", ("body",)).without_feedback()), hits)


def test_expressions_of_features():
    names = ["tf_sum.body", "static.rank", "ratio = tf_sum.body / (static.rank - 1)", "root = sqrt(ratio) - 2"]
    feature_set = FeatureSet([*names, "far = 1e38 * root"])
    assert_same_as_the_cpu(CudaFeatureExtractor(feature_set), random_hits(3, n_docs=40))


def test_batches_of_changing_sizes_and_schemas():
    """Each is asked for often enough to be recorded and replayed, and buffers grow in between."""
    feature_set = FeatureSet(["bm25.body", "lm_dirichlet.body", "window_matched.body"])
    extractor = CudaFeatureExtractor(feature_set)
    batches = [random_hits(seed, n_docs=n_docs) for seed, n_docs in enumerate((5, 50, 6))]
    batches.append(random_hits(9, n_docs=20, streams=("title", "body")))
    for hits in [*batches[:1] * 4, *batches * 4]:
        assert_same_as_the_cpu(extractor, hits)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_scores_are_those_of_the_cpu(normaliser):
    feature_set = FeatureSet([name for name in FULL.names if not name.startswith("lm_")])
    description = trees_over(feature_set, 1, normaliser)
    extractor, scorer = CudaFeatureExtractor(feature_set), CudaRankerScorer(description)
    for seed, n_docs in ((0, 30), (1, 30), (2, 30), (3, 7), (4, 90), (5, 30)):
        hits = random_hits(seed, n_docs=n_docs)
        rows = normalised(extract(hits, feature_set), hits, description)
        np.testing.assert_array_equal(extractor.score(hits, scorer), RankerScorer(description).score(rows))


def normalised(rows, hits, description):
    if description.normaliser.name == "none" or len(rows) == 0:
        return rows
    sizes = np.diff(hits.query_ptr)
    dataset = RankingDataset(rows, group=sizes[sizes > 0])
    return description.normaliser.apply(dataset)


def parts_of_one_collection():
    """Batches of very different sizes: a part may have no candidates, one, or queries of many terms."""
    rng = np.random.default_rng(8)
    documents = random_documents(rng, 40, longest=80, vocabulary=40)
    statics = {"rank": rng.normal(size=40).tolist(), "age": [float("nan")] * 40}
    asked = [[[1, 2]], [[], [3, 3, 4]], [list(range(30)), [5]], [[6]], [rng.integers(0, 50, 12).tolist()]]
    chosen = [[range(40)], [range(9), range(3)], [range(33), [7]], [[]], [range(40)]]
    return [
        hits_of_documents(documents, queries, candidates=candidates, statics=statics)
        for queries, candidates in zip(asked, chosen, strict=True)
    ]


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_scores_of_parts_are_those_of_the_cpu(normaliser):
    """Often enough to be recorded and replayed, in several orders, so that buffers hold what was there before."""
    feature_set = FeatureSet([name for name in FULL.names if not name.startswith("lm_")])
    description = trees_over(feature_set, 1, normaliser)
    extractor, scorer = CudaFeatureExtractor(feature_set), CudaRankerScorer(description)
    parts = parts_of_one_collection()
    for own in (parts, parts[::-1], parts[2:], parts[3:4], parts, parts[::-1], parts):
        hits = join_hits(own)
        expected = RankerScorer(description).score(normalised(extract(hits, feature_set), hits, description))
        np.testing.assert_array_equal(extractor.score(own, scorer), expected)


def test_features_of_parts_are_those_of_the_whole_batch():
    extractor, parts = CudaFeatureExtractor(FULL), parts_of_one_collection()
    for _ in range(3):
        np.testing.assert_array_equal(extractor.extract(parts), extractor.extract(join_hits(parts)))
        assert_same_as_the_cpu(extractor, join_hits(parts))


def test_a_large_batch_in_parts_is_packed_by_several_threads():
    documents = random_documents(np.random.default_rng(3), 300, longest=300, vocabulary=30)
    own = [hits_of_documents(documents, [[1 + query, 2, 3, 4 + query]]) for query in range(12)]
    extractor, scorer = CudaFeatureExtractor(MSLR), CudaRankerScorer(trees_over(MSLR, 2))
    expected = np.concatenate([extractor.score(part, scorer) for part in own])
    np.testing.assert_array_equal(extractor.score(own * 8, scorer), np.tile(expected, 8))


def test_rankers_from_the_cache():
    hits = random_hits(1, n_docs=40)
    rankers = {name: trees_over(MSLR, seed) for seed, name in enumerate("abc")}
    size = CudaRankerScorer(rankers["a"]).nbytes
    cache = RankerCache(int(2.5 * size), CudaRankerScorer)
    extractor, rows = CudaFeatureExtractor(MSLR), extract(hits, MSLR)
    for name in "abcabcaabbcc":
        scores = extractor.score(hits, cache.get(name, lambda name=name: rankers[name]))
        expected = RankerScorer(rankers[name]).score(rows)
        np.testing.assert_allclose(scores, expected, **TOLERANCES["cuda"]["scores of extracted features"])
    assert cache.nbytes <= 2.5 * size


def test_threads_share_a_ranker():
    scorer = CudaRankerScorer(trees_over(MSLR, 4))
    extractors = [CudaFeatureExtractor(MSLR), CudaFeatureExtractor(MSLR)]
    batches = [random_hits(seed, n_docs=20 + 30 * seed) for seed in range(4)]
    expected = [extractors[0].score(hits, scorer) for hits in batches]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = pool.map(lambda i: extractors[i % 2].score(batches[i], scorer), range(4))
            for scores, alone in zip(found, expected, strict=True):
                np.testing.assert_array_equal(scores, alone)


def test_a_ranker_of_other_features_is_refused():
    scorer = CudaRankerScorer(trees_over(FULL, 1))
    with pytest.raises(DataError, match="the ranker's 216 features are not the 125 of this feature set"):
        CudaFeatureExtractor(MSLR).score(random_hits(1), scorer)


def test_parts_of_different_collections_are_refused():
    parts = [random_hits(1, n_docs=20), random_hits(1, n_docs=21)]
    with pytest.raises(DataError, match="the hits of a batch must be of one collection"):
        CudaFeatureExtractor(MSLR).extract(parts)
    with pytest.raises(DataError, match="a batch needs hits"):
        CudaFeatureExtractor(MSLR).extract([])


def test_asked_for_by_device():
    hits = random_hits(2, n_docs=25)
    np.testing.assert_array_max_ulp(extract(hits, MSLR, device="cuda"), extract(hits, MSLR), maxulp=1)


def test_no_candidates():
    hits = hits_of_documents([{"body": [1, 2]}], [[1], []], candidates=[[], []])
    assert CudaFeatureExtractor(MSLR).extract(hits).shape == (0, 125)
    assert CudaFeatureExtractor(MSLR).score(hits, CudaRankerScorer(trees_over(MSLR, 1))).shape == (0,)
