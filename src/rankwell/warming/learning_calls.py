"""Calls of the learning part on synthetic data: reading, measuring, binning, every ranker, every kind of model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from rankwell.data.dataset import RankingDataset

_QUERY_SIZE = 16
# Large enough for RankBoost to search by bounds.
LARGE = {"n_queries": 640, "n_features": 48}


@cache
def made_up_data(n_queries: int = 12, n_features: int = 6, *, is_sparse: bool = False, n_labels: int = 3) -> Any:
    """Queries of `_QUERY_SIZE` documents each."""
    generator = np.random.default_rng(0)
    n_docs = n_queries * _QUERY_SIZE
    features: Any = generator.standard_normal((n_docs, n_features)).astype(np.float32)
    labels = np.clip(np.round(2 * features[:, 0] + generator.standard_normal(n_docs)), 0, n_labels - 1)
    if is_sparse:
        from scipy import sparse

        features = sparse.csr_array(np.where(np.abs(features) > 1.0, features, np.float32(0.0)))
    return RankingDataset(features, labels, qid=np.repeat(np.arange(n_queries), _QUERY_SIZE))


def read_text(folder: Path) -> None:
    from rankwell.data.files import read, write

    data = made_up_data()
    write(data, folder / "plain.txt")
    (folder / "gaps.txt").write_text("1 qid:7 2:1.5 900:-2e-3 # a name\n0 qid:7 1:0.25\n", encoding="ascii")
    for name in ("plain", "gaps"):
        read(folder / f"{name}.txt")


def measure(folder: Path) -> None:
    from rankwell.metrics.conventions import CONVENTIONS
    from rankwell.metrics.evaluation import evaluate
    from rankwell.metrics.metric import Metric
    from rankwell.metrics.names import FAMILIES
    from rankwell.metrics.significance import compare

    data = made_up_data()
    scores = np.arange(data.n_docs, dtype=float)
    for convention in CONVENTIONS:
        for family in FAMILIES.values():
            metric = Metric(family, None if family.cutoff == "none" else 3)
            evaluate(data, scores, metrics=metric, convention=convention)
        first, second = (evaluate(data, sign * scores, convention=convention) for sign in (1.0, -1.0))
    # Whole numbers are counted, few other labels too, and many different labels are sorted.
    for labels in (data.labels / 4, np.linspace(0.0, 1.0, data.n_docs)):
        evaluate(labels, scores, query_ptr=np.array([0, data.n_docs]))
    compare(first, second, metric="ndcg@10")
    compare(np.linspace(0, 1, 40), np.linspace(1, 0, 40) ** 2, n_resamples=100)


def train_least_squares(folder: Path) -> None:
    from rankwell.rankers.least_squares import LeastSquares

    _train_and_score(LeastSquares())


def train_rankboost(folder: Path) -> None:
    from rankwell.data.binning import LAYOUTS, STRATEGIES, Binner
    from rankwell.kernels.boosting.cpu.pairs import WEAK_LEARNERS
    from rankwell.rankers.pair_weights import PAIR_WEIGHTS
    from rankwell.rankers.rankboost import RankBoost

    for strategy in STRATEGIES:
        for layout in LAYOUTS:
            Binner(strategy=strategy).fit_transform(made_up_data(), layout)
    for weak_learner in WEAK_LEARNERS:
        _train_and_score(RankBoost(n_rounds=3, weak_learner=cast("Any", weak_learner), device="cpu"))
    for pair_weight in PAIR_WEIGHTS:
        _train_and_score(RankBoost(n_rounds=40, pair_weight=cast("Any", pair_weight), device="cpu"))
    RankBoost(n_rounds=40, device="cpu").fit(made_up_data(**LARGE))
    RankBoost(n_rounds=2, device="cpu").fit(made_up_data(is_sparse=True))
    queries = np.repeat(np.arange(12), _QUERY_SIZE)
    pairs = np.arange(0, len(queries), 2)[:, None] + np.array([0, 1])
    pair_ranker = RankBoost(n_rounds=3, device="cpu").fit_pairs(made_up_data().features, pairs, qid=queries)
    for _ in pair_ranker.staged_predict(made_up_data()):
        pass


def train_lambdamart(folder: Path) -> None:
    from rankwell.rankers.lambdamart import LambdaMART

    ranker = LambdaMART(n_rounds=3, n_leaves=3, min_docs_leaf=1, device="cpu")
    _train_and_score(ranker)
    for _ in ranker.staged_predict(made_up_data()):
        pass
    ranker.contributions(made_up_data())
    LambdaMART(n_rounds=2, device="cpu").fit(made_up_data(is_sparse=True))
    LambdaMART(n_rounds=2, device="cpu", binning="width", noise=0.3).fit(made_up_data())
    LambdaMART(n_rounds=2, device="cpu", loss="xendcg").fit(made_up_data())
    LambdaMART(n_rounds=2, device="cpu", growth="symmetric", query_fraction=0.5).fit(made_up_data())


def train_ranksvm(folder: Path) -> None:
    from rankwell.kernels.pair_loss.method import METHODS
    from rankwell.rankers.ranksvm import RankSVM

    for method in METHODS:
        for n_labels in (3, _QUERY_SIZE):
            for is_sparse in (False, True):
                ranker = RankSVM(method=cast("Any", method), normalize="none", device="cpu")
                data = made_up_data(is_sparse=is_sparse, n_labels=n_labels)
                ranker.fit(data, eval_set=data)
                ranker.fit(data.replace(document_weights=np.linspace(1.0, 2.0, data.n_docs)))
    for normalize in ("auto", "standard"):
        RankSVM(normalize=normalize, device="cpu").fit(made_up_data(), eval_set=made_up_data())


def train_networks(folder: Path) -> None:
    from rankwell.kernels.lists.cpu.pair_sums import PARALLEL_DOCS
    from rankwell.rankers.lambdarank import LambdaRank
    from rankwell.rankers.listmle import ListMLE
    from rankwell.rankers.listnet import ListNet
    from rankwell.rankers.ranknet import RankNet

    for loss in (LambdaRank, ListMLE, RankNet, ListNet):
        _train_and_score(loss(n_epochs=2, device="cpu"))
    few: dict[str, Any] = {"n_epochs": 2, "n_seeds": 1, "device": "cpu"}
    _train_and_score(LambdaRank(loss="xendcg", **few))
    for k in (2, 3):
        _train_and_score(ListNet(k, **few))
    # One long list: its sums over pairs are divided among threads.
    data = made_up_data(-(-PARALLEL_DOCS // _QUERY_SIZE))
    ListNet(3, n_epochs=1, n_seeds=1, device="cpu").fit(
        RankingDataset(data.features, data.labels, qid=np.zeros(data.n_docs))
    )
    for distribution in ("uniform", "fixed", "adaptive"):
        _train_and_score(ListNet(4, sampling="stochastic", sample_size=8, sample_distribution=distribution, **few))
    _train_and_score(ListNet(3, sampling="position-aware", **few))
    for method in ("direct", "adaptive", "batch"):
        _train_and_score(ListNet(precision="fixed8", fixed_point=method, **few))
    for hidden in ((), (4,), (4, 3)):
        for activation in ("sigmoid", "relu", "tanh", "linear"):
            _train_and_score(ListNet(hidden=hidden, activation=activation, dropout=0.1 if hidden else 0.0, **few))
    _train_and_score(ListNet(optimizer="adam", batch_queries=3, weight_decay=0.01, **few))


def score_models(folder: Path) -> None:
    """Every kind of input and layer, one document and many."""
    from rankwell.scoring.description import RankerDescription, Sum, default_feature_names
    from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, LinearInputs, LogLinearInputs
    from rankwell.scoring.layers import Dense, Mean
    from rankwell.scoring.normaliser import Normaliser
    from rankwell.scoring.tree_builder import Tree, TreeBuilder

    builder = TreeBuilder()
    columns = [builder.column(0, kind, (1, 3) if kind == 2 else ()) for kind in range(3)]
    for column in columns:
        builder.add(Tree([column], [0.5], [True], [-1], [-2], np.array([0.25, -0.5])))
    one = np.ones(1)
    feature = np.zeros(1, np.int32)
    inputs = (
        LinearInputs(feature, one, one, one),
        LogLinearInputs(feature, one, one, one),
        BucketInputs(feature, np.array([0, 1]), np.zeros(1, np.float32), np.arange(2.0), one),
        ExpressionInputs(("log(1 + abs(f1)) * 2",), one),
        builder.build(),
    )
    n_inputs = sum(len(cast("Any", group)) for group in inputs)
    dense = Dense(np.ones((1, n_inputs)), np.zeros(1), "sigmoid")
    names = default_feature_names(2)
    models = [((group,), (layer,)) for group in inputs for layer in (Sum(), Mean())] + [(inputs, (dense,))]
    for groups, layers in models:
        description = RankerDescription(names, Normaliser("none", {}), inputs=groups, layers=layers)
        for n_docs in (1, 300):
            _score(description, np.ones((n_docs, 2), np.float32))


def _score(description: Any, features: np.ndarray) -> None:
    from rankwell.scoring.scorer import score_description

    score_description(description, RankingDataset(features, group=[len(features)]))


def _train_and_score(ranker: Any) -> None:
    data = made_up_data()
    with _silenced():
        ranker.fit(data, eval_set=data)
    for rows in (data.features[:1], data.features):
        ranker.predict(rows, group=[len(rows)])
    weights = np.linspace(1.0, 2.0, data.n_queries)
    # Networks take weights of documents only if they are equal within a query.
    ranker.fit(data.replace(query_weights=weights, document_weights=np.repeat(weights, data.query_sizes)))


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress the rankers' warnings about very small data."""
    logger = logging.getLogger("rankwell")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
