"""The CPU kernels against the reference: trees, buckets and sums to the bit, logarithms and exponentials to 1e-12."""

import numpy as np
import pytest
from tests.scoring.random_rankers import (
    describe,
    forest,
    random_buckets,
    random_lines,
    random_ranker,
    random_rows,
    random_trees,
    symmetric_trees,
)
from tests.tolerances import TOLERANCES

from rankwell.kernels.scoring.rules import IN_CATEGORIES, VALUE, ZERO_IS_MISSING
from rankwell.scoring.description import Dense, ExpressionInputs, LinearInputs, LogLinearInputs, Mean, Sum
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.scorer import RankerScorer
from rankwell.scoring.tree_layout import lay_out

ALL_KINDS = (VALUE, ZERO_IS_MISSING, IN_CATEGORIES)
SIZES = [0, 1, 12, 13, 63, 64, 65, 130]

TREES = {
    "plain": {},
    "one leaf each": {"most_leaves": 1},
    "missing left": {"missing": "left"},
    "missing right": {"missing": "right"},
    "zeros and categories": {"kinds": ALL_KINDS},
    "more thresholds than a byte counts": {"n_features": 1, "n_thresholds": 3000, "most_leaves": 200},
    "256 leaves": {"most_leaves": 256, "n_trees": 4},
    "more leaves than a byte counts": {"most_leaves": 700, "n_trees": 6},
    # Trees with few different tests are tables; here they are among others.
    "few different tests": {"n_features": 2, "n_thresholds": 4, "missing": "left", "most_leaves": 40},
}


@pytest.mark.parametrize("case", TREES)
@pytest.mark.parametrize("n_docs", SIZES)
def test_trees_are_the_same_bits(case, n_docs):
    options = {"n_trees": 70, "n_features": 5} | TREES[case]
    rng = np.random.default_rng([n_docs, len(case)])
    rows = random_rows(rng, n_docs, options["n_features"])
    description = forest(random_trees(rng, options.pop("n_trees"), options.pop("n_features"), **options), rows.shape[1])
    np.testing.assert_array_equal(RankerScorer(description).score(rows), reference_scores(description, rows))


@pytest.mark.parametrize("n_tests", [1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("n_docs", SIZES)
def test_symmetric_trees_are_tables_and_the_same_bits(n_tests, n_docs):
    rng = np.random.default_rng([n_tests, n_docs])
    trees, rows = symmetric_trees(rng, 70, 5, n_tests), random_rows(rng, n_docs, 5)
    n_tables = np.count_nonzero(np.diff(lay_out(trees).trees.test_ptr))
    assert n_tables == (70 if 3 <= n_tests <= 8 else 0)
    for description in (forest(trees, 5), forest(trees.first(33), 5, bias=0.5)):
        np.testing.assert_array_equal(RankerScorer(description).score(rows), reference_scores(description, rows))


def test_many_columns_make_words_of_64_bits():
    rng = np.random.default_rng(0)
    trees = random_trees(rng, 20, 70_000, most_leaves=300)
    rows = random_rows(rng, 70, 70_000)
    rows[:, trees.column_feature] = random_rows(rng, 70, len(trees.column_feature))
    wide = forest(trees, 70_000)
    np.testing.assert_array_equal(RankerScorer(wide).score(rows), reference_scores(wide, rows))
    few = rows[:3]
    np.testing.assert_array_equal(RankerScorer(wide).score(few), reference_scores(wide, few))


@pytest.mark.parametrize("n_trees", [1, 7, 8, 31, 32, 33, 64, 100])
def test_first_rounds_are_the_first_trees(n_trees):
    rng = np.random.default_rng(n_trees)
    trees = random_trees(rng, 100, 4)
    rows = random_rows(rng, 70, 4)
    description = forest(trees, 4, bias=0.5)
    expected = reference_scores(forest(trees.first(n_trees), 4, bias=0.5), rows)
    scorer = RankerScorer(description)
    np.testing.assert_array_equal(scorer.score(rows, n_rounds=n_trees), expected)
    np.testing.assert_array_equal(scorer.score(rows[:3], n_rounds=n_trees), expected[:3])
    np.testing.assert_array_equal(RankerScorer(description.first_rounds(n_trees)).score(rows), expected)


@pytest.mark.parametrize("layer", [Sum(), Sum(0.25), Mean()])
@pytest.mark.parametrize("n_docs", SIZES)
def test_buckets_and_sums_are_the_same_bits(layer, n_docs):
    rng = np.random.default_rng(n_docs)
    rows = random_rows(rng, n_docs, 6)
    description = describe(6, [random_buckets(rng, 75, 6), random_trees(rng, 3, 6)], [layer])
    np.testing.assert_array_equal(RankerScorer(description).score(rows), reference_scores(description, rows))


@pytest.mark.parametrize("kind", [LinearInputs, LogLinearInputs])
@pytest.mark.parametrize("activation", ["identity", "sigmoid", "relu", "tanh", "exp"])
def test_lines_and_dense_layers(kind, activation):
    rng = np.random.default_rng(3)
    rows = np.where(np.abs(rows := random_rows(rng, 130, 6)) > 100, np.float32(7), rows)
    layers = [Dense(rng.normal(size=(5, 40)) / 40, rng.normal(size=5), activation), Dense(np.ones((1, 5)), np.zeros(1))]
    description = describe(6, [random_lines(rng, kind, 40, 6)], layers)
    scores, expected = RankerScorer(description).score(rows), reference_scores(description, rows)
    if kind is LinearInputs and activation in ("identity", "relu"):
        np.testing.assert_array_equal(scores, expected)
    np.testing.assert_allclose(scores, expected, **TOLERANCES["cpu"]["scores"])


@pytest.mark.parametrize("n_docs", SIZES)
def test_all_kinds_of_inputs_at_once(n_docs):
    rng = np.random.default_rng(n_docs)
    description, rows = random_ranker(rng), random_rows(rng, n_docs, 7)
    np.testing.assert_allclose(
        RankerScorer(description).score(rows), reference_scores(description, rows), **TOLERANCES["cpu"]["scores"]
    )


EXPRESSIONS = [
    "f1 + f2 * f3 - f4 / f5",
    "(f1 - f2) ^ 2 ^ 0.5",
    "-f1 ^ 2",
    "min(f1, f2, f3) + max(f4, f5)",
    "if(f1 > f2, sqrt(abs(f3)), exp(f4 / 8))",
    "(f1 < f2) + 2 * (f1 <= f2) + 4 * (f1 > f2) + 8 * (f1 >= f2) + 16 * (f1 == f2) + 32 * (f1 != f2)",
    "log(f1) + log1p(f2) + sqrt(f3)",
    "missing(f1) + pow(f2, 3)",
    "if(f1, 1, 2)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression):
    rng = np.random.default_rng(len(expression))
    rows = random_rows(rng, 200, 5)
    description = describe(5, [ExpressionInputs((expression,), np.array([-77.0]))], [Sum()])
    scores, expected = RankerScorer(description).score(rows), reference_scores(description, rows)
    np.testing.assert_allclose(scores, expected, **TOLERANCES["cpu"]["scores of expressions"])
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_score_depends_neither_on_the_batch_nor_on_threads(n_jobs):
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 300, 7)
    for description in (random_ranker(rng), forest(random_trees(rng, 90, 7), 7)):
        scorer = RankerScorer(description)
        scores = scorer.score(rows)
        np.testing.assert_array_equal(scorer.score(rows, n_jobs=n_jobs), scores)
        for start, end in ((0, 1), (3, 15), (7, 100), (64, 300)):
            np.testing.assert_array_equal(scorer.score(rows[start:end], n_jobs=n_jobs), scores[start:end])
