"""Rankers of every shape, and rows to score: what exports are checked with."""

from dataclasses import replace

import numpy as np
from tests.scoring.random_rankers import (
    describe,
    random_buckets,
    random_lines,
    random_ranker,
    random_rows,
    random_trees,
)

from rankwell.data.dataset import RankingDataset
from rankwell.kernels.scoring.rules import IN_CATEGORIES, VALUE, ZERO_IS_MISSING
from rankwell.scoring.description import (
    Dense,
    ExpressionInputs,
    LinearInputs,
    LogLinearInputs,
    Mean,
    RankerDescription,
    RankerPart,
    Sum,
    default_feature_names,
)
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.scorer import score_description

N_FEATURES = 7
EVERY_OPERATION = (
    "f1 + 2 * f2 - f3 / 4",
    "-f4 ^ 2 + pow(abs(f5), 0.5)",
    "if(f1 < f2, 1, if(f1 <= f3, 2, 3)) + (f1 > f2) + (f1 >= f2) + (f1 == f2) + (f1 != f2)",
    "min(f1, f2, f3) + max(f4, f5)",
    "log(f1) + log1p(f2)",
    "exp(f3 / 10) + sqrt(f4)",
    "if(missing(f6), -1, f6)",
    "if(f1, 3, 4)",
    "2.5e-7",
    "1 / f7",
)


def rng():
    return np.random.default_rng(7)


def standard(description):
    """The same ranker after the standard normaliser; one feature does not vary."""
    scale = np.array([2.0, 0.5, 3.0, np.inf, 1.0, 0.01, 7.0])
    return replace(description, normaliser=Normaliser("standard", {"mean": np.linspace(-1, 2, 7), "scale": scale}))


_SUM = (Sum(0.25),)


def trees(n_trees=40, kinds=(VALUE,), layers=_SUM, **options):
    return describe(N_FEATURES, [random_trees(rng(), n_trees, N_FEATURES, kinds=kinds, **options)], layers)


def buckets():
    return describe(N_FEATURES, [random_buckets(rng(), 40, N_FEATURES)], [Sum(0.5)])


def network():
    draw = rng()
    hidden = [Dense(draw.normal(size=(5, N_FEATURES)) / 4, draw.normal(size=5), "tanh")]
    hidden.append(Dense(draw.normal(size=(3, 5)), draw.normal(size=3), "relu"))
    return describe(
        N_FEATURES,
        [LinearInputs.identity(N_FEATURES)],
        [*hidden, Dense(draw.normal(size=(1, 3)), draw.normal(size=1), "sigmoid")],
    )


def linear(intercept=0.5):
    weights = rng().normal(size=(1, N_FEATURES))
    return describe(N_FEATURES, [LinearInputs.identity(N_FEATURES)], [Dense(weights, np.full(1, intercept))])


def transformed():
    draw = rng()
    inputs = [random_lines(draw, LinearInputs, 3, N_FEATURES), random_lines(draw, LogLinearInputs, 4, N_FEATURES)]
    return describe(N_FEATURES, inputs, [Sum(-1.0)])


def expressions():
    return describe(N_FEATURES, [ExpressionInputs(EVERY_OPERATION, np.linspace(0.1, 1, len(EVERY_OPERATION)))], [Sum()])


def made_of_rankers():
    """A sum of a feature and the scores of two rankers, one of them over other features in another order."""
    few = describe(3, [LinearInputs.identity(3)], [Dense(np.array([[1.0, -2.0, 0.5]]), np.zeros(1))])
    parts = (
        RankerPart("trees", tuple(range(N_FEATURES)), standard(trees(5))),
        RankerPart("unread", (0, 1, 2), few),
        RankerPart("few", (6, 2, 0), few),
    )
    inputs = LinearInputs(np.array([1, 7, 9], np.int32), np.array([1.0, 2.0, 3.0]), np.zeros(3), np.zeros(3))
    return RankerDescription(default_feature_names(N_FEATURES), Normaliser("none"), (inputs,), (Sum(),), parts)


RANKERS = {
    "trees": trees(),
    "mean of trees": trees(layers=(Mean(),)),
    "trees of one leaf": trees(8, most_leaves=1),
    "weighted trees": trees(12, layers=(Dense(rng().normal(size=(1, 12)), np.full(1, 0.5)),)),
    "probability of trees": trees(layers=(Sum(0.25), Dense(np.full((1, 1), 2.0), np.zeros(1), "sigmoid"))),
    "exponential of trees": trees(10, layers=(Sum(0.25), Dense(np.full((1, 1), 0.1), np.zeros(1), "exp"))),
    "standardised trees": standard(trees()),
    "categories and zeros": trees(kinds=(VALUE, ZERO_IS_MISSING, IN_CATEGORIES), missing="left"),
    "buckets": buckets(),
    "standardised buckets": standard(buckets()),
    "linear": linear(),
    "linear through zero": linear(0.0),
    "standardised linear": standard(linear()),
    "network": network(),
    "standardised network": standard(network()),
    "transformed": transformed(),
    "expressions": expressions(),
    "every kind": random_ranker(rng(), N_FEATURES),
    "made of rankers": made_of_rankers(),
    "query-minmax": replace(network(), normaliser=Normaliser("query-minmax")),
    "letor": replace(trees(), normaliser=Normaliser("letor")),
}
BY_DOCUMENT = [name for name, ranker in RANKERS.items() if not ranker.normaliser.needs_queries]


# Rankers whose numbers overflow near the limits of float32, here as there.
_OVERFLOWING = {name for name, ranker in RANKERS.items() if ranker.normaliser.name == "standard"} | {
    "expressions",
    "every kind",
    "made of rankers",
}


def rows(n_docs=300, *, missing=True):
    """Awkward values: missing, zero, tiny, near the limits of float32."""
    made = random_rows(rng(), n_docs, N_FEATURES)
    return made if missing else np.nan_to_num(made)


def rows_for(name, n_docs=300, *, missing=True):
    """Rows for a ranker of `RANKERS`: without the largest numbers where those overflow."""
    made = rows(n_docs, missing=missing)
    return np.where(np.abs(made) > 1e30, np.float32(3), made) if name in _OVERFLOWING else made


def expected_scores(description, features):
    """Scores of one query's documents."""
    return score_description(description, RankingDataset(features, group=[len(features)]))
