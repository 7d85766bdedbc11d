"""The CUDA kernels against the reference, on the same generated rankers as the CPU's."""

import numpy as np
import pytest
from tests.kernels.scoring.test_scoring import ALL_KINDS, EXPRESSIONS, SIZES, TREES
from tests.scoring.random_rankers import (
    describe,
    forest,
    random_buckets,
    random_lines,
    random_ranker,
    random_rows,
    random_trees,
)
from tests.tolerances import TOLERANCES

from rankwell import RankingDataset
from rankwell.kernels.device_report import report_device
from rankwell.kernels.scoring.cuda import launches
from rankwell.kernels.scoring.rules import IN_CATEGORIES, VALUE, ZERO_IS_MISSING
from rankwell.scoring.description import Dense, ExpressionInputs, LinearInputs, LogLinearInputs, Mean, Sum
from rankwell.scoring.ranker_cache import RankerCache
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.scorer import RankerScorer, kept_scorer, make_scorer, score_description

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]


def on_device(description):
    return make_scorer(description, "cuda")


@pytest.mark.parametrize("case", TREES)
@pytest.mark.parametrize("n_docs", [*SIZES, 255, 256, 257])
def test_trees_are_the_same_bits(case, n_docs):
    options = {"n_trees": 70, "n_features": 5} | TREES[case]
    rng = np.random.default_rng([n_docs, len(case)])
    rows = random_rows(rng, n_docs, options["n_features"])
    description = forest(random_trees(rng, options.pop("n_trees"), options.pop("n_features"), **options), rows.shape[1])
    np.testing.assert_array_equal(on_device(description).score(rows), RankerScorer(description).score(rows))


def test_words_of_64_bits_and_bins_that_do_not_fit_shared_memory():
    rng = np.random.default_rng(0)
    n_features = 3000
    trees = random_trees(rng, 40, n_features, most_leaves=9000, kinds=(VALUE, ZERO_IS_MISSING, IN_CATEGORIES))
    rows = random_rows(rng, 300, n_features)
    description = forest(trees, n_features)
    np.testing.assert_array_equal(on_device(description).score(rows), RankerScorer(description).score(rows))


@pytest.mark.parametrize("n_rounds", [1, 31, 32, 33, 100])
def test_first_rounds(n_rounds):
    rng = np.random.default_rng(n_rounds)
    description, rows = forest(random_trees(rng, 100, 4, kinds=ALL_KINDS), 4, bias=0.5), random_rows(rng, 70, 4)
    expected = RankerScorer(description).score(rows, n_rounds=n_rounds)
    np.testing.assert_array_equal(on_device(description).score(rows, n_rounds=n_rounds), expected)


@pytest.mark.parametrize("layer", [Sum(), Sum(0.25), Mean()])
@pytest.mark.parametrize("n_docs", SIZES)
def test_buckets_and_sums_are_the_same_bits(layer, n_docs):
    rng = np.random.default_rng(n_docs)
    rows = random_rows(rng, n_docs, 6)
    description = describe(6, [random_buckets(rng, 75, 6), random_trees(rng, 3, 6)], [layer])
    np.testing.assert_array_equal(on_device(description).score(rows), reference_scores(description, rows))


@pytest.mark.parametrize("kind", [LinearInputs, LogLinearInputs])
@pytest.mark.parametrize("activation", ["identity", "sigmoid", "relu", "tanh", "exp"])
def test_lines_and_dense_layers(kind, activation):
    rng = np.random.default_rng(3)
    rows = np.where(np.abs(rows := random_rows(rng, 130, 6)) > 100, np.float32(7), rows)
    layers = [
        Dense(rng.normal(size=(21, 700)) / 700, rng.normal(size=21), activation),
        Dense(np.ones((1, 21)), np.zeros(1)),
    ]
    description = describe(6, [random_lines(rng, kind, 700, 6)], layers)
    scores, expected = on_device(description).score(rows), RankerScorer(description).score(rows)
    if kind is LinearInputs and activation in ("identity", "relu"):
        np.testing.assert_array_equal(scores, expected)
    np.testing.assert_allclose(scores, expected, **TOLERANCES["cuda"]["scores"])


@pytest.mark.parametrize("n_docs", [1, 63, 64, 65, 300])
@pytest.mark.parametrize(("n_inputs", "n_units"), [(1, 16), (32, 63), (33, 64), (95, 65), (700, 130)])
def test_wide_layers_are_the_same_bits(n_docs, n_inputs, n_units, monkeypatch):
    monkeypatch.setattr(launches, "_MANY_SUMS", 0)
    rng = np.random.default_rng([n_docs, n_units])
    rows = random_rows(rng, n_docs, 6)
    layers = [
        Dense(rng.normal(size=(n_units, n_inputs)), rng.normal(size=n_units), "relu"),
        Dense(rng.normal(size=(1, n_units)), np.zeros(1)),
    ]
    description = describe(6, [random_buckets(rng, n_inputs, 6)], layers)
    np.testing.assert_array_equal(on_device(description).score(rows), RankerScorer(description).score(rows))


def test_calls_of_changing_sizes_and_rounds():
    """Each of these is asked for often enough to be recorded and replayed, and buffers grow in between."""
    rng = np.random.default_rng(8)
    description, rows = forest(random_trees(rng, 100, 4, kinds=ALL_KINDS), 4), random_rows(rng, 3000, 4)
    scorer, expected = on_device(description), RankerScorer(description)
    for n_docs, n_rounds in [(70, None)] * 4 + [(3000, 40)] * 4 + [(65, None), (96, None), (70, 33)] * 3 + [(1, None)]:
        start = int(rng.integers(len(rows) - n_docs + 1))
        part = rows[start : start + n_docs]
        np.testing.assert_array_equal(
            scorer.score(part, n_rounds=n_rounds), expected.score(part, n_rounds=n_rounds), f"{n_docs} {n_rounds}"
        )


def test_rows_on_the_device():
    import cupy

    rng = np.random.default_rng(9)
    description, rows = random_ranker(rng), random_rows(rng, 300, 7)
    scorer = on_device(description)
    for n_docs in (300, 300, 300, 17, 300):
        scores = scorer.score_on_device(cupy.asarray(rows[:n_docs]))
        np.testing.assert_array_equal(scores.get(), scorer.score(rows[:n_docs]))


@pytest.mark.parametrize("n_docs", SIZES)
def test_all_kinds_of_inputs_at_once(n_docs):
    rng = np.random.default_rng(n_docs)
    description, rows = random_ranker(rng), random_rows(rng, n_docs, 7)
    np.testing.assert_allclose(
        on_device(description).score(rows), reference_scores(description, rows), **TOLERANCES["cuda"]["scores"]
    )


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression):
    rng = np.random.default_rng(len(expression))
    rows = random_rows(rng, 200, 5)
    description = describe(5, [ExpressionInputs((expression,), np.array([-77.0]))], [Sum()])
    scores, expected = on_device(description).score(rows), reference_scores(description, rows)
    np.testing.assert_allclose(scores, expected, **TOLERANCES["cuda"]["scores of expressions"])


def test_a_score_does_not_depend_on_the_batch():
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 300, 7)
    for description in (random_ranker(rng), forest(random_trees(rng, 90, 7), 7)):
        scorer = on_device(description)
        scores = scorer.score(rows)
        for start, end in ((0, 1), (3, 15), (7, 100), (64, 300)):
            np.testing.assert_array_equal(scorer.score(rows[start:end]), scores[start:end])


def test_pinned_rows_score_the_same():
    rng = np.random.default_rng(6)
    description, rows = random_ranker(rng), random_rows(rng, 100, 7)
    scorer = on_device(description)
    pinned = scorer.pinned_rows(100)
    pinned[:] = rows
    np.testing.assert_array_equal(scorer.score(pinned), scorer.score(rows))


def test_the_cache_counts_device_memory():
    rng = np.random.default_rng(7)
    rankers = {name: forest(random_trees(rng, 50, 4, most_leaves=64), 4) for name in "abc"}
    sizes = {name: on_device(ranker).nbytes for name, ranker in rankers.items()}
    assert min(sizes.values()) > 0
    cache = RankerCache(sum(sizes.values()) - 1, on_device)
    for name, ranker in rankers.items():
        cache.get(name, lambda ranker=ranker: ranker)
    assert cache.keys() == ["b", "c"]
    assert cache.nbytes == sizes["b"] + sizes["c"]


def test_a_ranker_is_uploaded_once():
    rng = np.random.default_rng(6)
    description, rows = random_ranker(rng), random_rows(rng, 100, 7)
    scorer = kept_scorer(description, "cuda")
    assert kept_scorer(description, "cuda") is scorer
    dataset = RankingDataset(rows)
    for _ in range(3):
        np.testing.assert_array_equal(score_description(description, dataset, device="cuda"), scorer.score(rows))
    assert kept_scorer(description, "cuda") is scorer
    np.testing.assert_allclose(scorer.score(rows), kept_scorer(description, "cpu").score(rows), rtol=1e-12, atol=1e-12)
