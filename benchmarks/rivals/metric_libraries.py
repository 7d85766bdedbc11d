"""Ranking metrics of scikit-learn, pytrec_eval, ir-measures, LightGBM, XGBoost and CatBoost, on the same arrays.

A rival is prepared with labels, scores and queries, and returns the call to time: what a user of that library would run
once the data is in the form the library needs. Its figures are returned under our names, one number per query, or one
number in all if the library gives no more.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Figures = dict[str, np.ndarray]
Prepare = Callable[[np.ndarray, np.ndarray, np.ndarray, Sequence[str]], Callable[[], Figures]]


@dataclass(frozen=True)
class MetricRival:
    """A library, our convention that reproduces it, and its metrics.

    Attributes
    ----------
    name : str
    package : str
        What is imported.
    convention : str
    families : tuple of str
        Our names before the ``@``; with `needs_cutoff` only those with a cut-off.
    """

    name: str
    package: str
    convention: str
    families: tuple[str, ...]
    needs_cutoff: bool
    prepare: Prepare

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def has(self, metric: str) -> bool:
        family, at, _ = metric.partition("@")
        return family in self.families and bool(at or not self.needs_cutoff)


def _prepare_sklearn(
    labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray, metrics: Sequence[str]
) -> Callable[[], Figures]:
    from sklearn.metrics import average_precision_score, ndcg_score

    queries = [(labels[start:end], scores[start:end]) for start, end in pairwise(query_ptr.tolist())]

    def figure(metric: str, own_labels: np.ndarray, own_scores: np.ndarray) -> float:
        family, _, cutoff = metric.partition("@")
        if family == "map":
            return average_precision_score(own_labels >= 1, own_scores)
        return ndcg_score(own_labels[None], own_scores[None], k=int(cutoff) if cutoff else None)

    return lambda: {metric: np.array([figure(metric, *query) for query in queries]) for metric in metrics}


def _document(row: int) -> str:
    """Document ids that grow with the row, so that trec_eval's order of ties is known: the later row first."""
    return f"{row:09d}"


_TREC_NAMES = {"ndcg": "ndcg", "map": "map", "mrr": "recip_rank"}
_TREC_CUT_NAMES = {"ndcg": "ndcg_cut", "map": "map_cut", "p": "P", "recall": "recall"}


def _trec_name(metric: str) -> str:
    family, _, cutoff = metric.partition("@")
    return f"{_TREC_CUT_NAMES[family]}_{cutoff}" if cutoff else _TREC_NAMES[family]


def _prepare_pytrec_eval(
    labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray, metrics: Sequence[str]
) -> Callable[[], Figures]:
    import pytrec_eval

    judgments: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query, (start, end) in enumerate(pairwise(query_ptr.tolist())):
        judgments[str(query)] = {_document(row): int(labels[row]) for row in range(start, end)}
        run[str(query)] = {_document(row): float(scores[row]) for row in range(start, end)}
    evaluator = pytrec_eval.RelevanceEvaluator(judgments, {_trec_name(metric) for metric in metrics})
    n_queries = len(query_ptr) - 1

    def evaluate() -> Figures:
        figures = evaluator.evaluate(run)
        return {
            metric: np.array([figures[str(query)][_trec_name(metric)] for query in range(n_queries)])
            for metric in metrics
        }

    return evaluate


def _prepare_ir_measures(
    labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray, metrics: Sequence[str]
) -> Callable[[], Figures]:
    import ir_measures

    spellings = {"ndcg": "nDCG", "map": "AP", "mrr": "RR", "p": "P", "recall": "R"}
    measures = {}
    for metric in metrics:
        family, at, cutoff = metric.partition("@")
        measures[ir_measures.parse_measure(spellings[family] + at + cutoff)] = metric
    judgments: list[Any] = []
    run: list[Any] = []
    for query, (start, end) in enumerate(pairwise(query_ptr.tolist())):
        for row in range(start, end):
            judgments.append(ir_measures.Qrel(str(query), _document(row), int(labels[row])))
            run.append(ir_measures.ScoredDoc(str(query), _document(row), float(scores[row])))
    evaluator = ir_measures.evaluator(list(measures), judgments)
    n_queries = len(query_ptr) - 1

    def evaluate() -> Figures:
        figures = {metric: np.full(n_queries, np.nan) for metric in metrics}
        for figure in evaluator.iter_calc(run):
            figures[measures[figure.measure]][int(figure.query_id)] = figure.value
        return figures

    return evaluate


def _prepare_lightgbm(
    labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray, metrics: Sequence[str]
) -> Callable[[], Figures]:
    import lightgbm

    cutoffs = sorted({int(metric.partition("@")[2]) for metric in metrics})
    families = sorted({metric.partition("@")[0] for metric in metrics})
    quiet = {"verbose": -1, "feature_pre_filter": False, "min_data_in_bin": 1}
    # A model without trees: the initial score is evaluated.
    data = lightgbm.Dataset(
        np.zeros((len(labels), 1)), labels, group=np.diff(query_ptr), init_score=scores, params=quiet
    )
    settings = {"objective": "lambdarank", "metric": families, "eval_at": cutoffs, "lambdarank_truncation_level": 10}
    booster = lightgbm.Booster({**settings, **quiet}, data)

    def evaluate() -> Figures:
        figures = {figure[1]: np.float64(figure[2]) for figure in booster.eval_train()}
        return {metric: np.asarray(figures[metric]) for metric in metrics}

    return evaluate


def _prepare_xgboost(
    labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray, metrics: Sequence[str]
) -> Callable[[], Figures]:
    import xgboost

    def spelling(metric: str) -> str:
        return metric.replace("p@", "pre@") if metric.startswith("p@") else metric

    # Average precision and precision are for labels 0 and 1 there: only label 1 counts as relevant.
    needs_binary = any(metric.partition("@")[0] in ("map", "p") for metric in metrics)
    data = xgboost.DMatrix(
        np.zeros((len(labels), 1)),
        label=(labels >= 1).astype(float) if needs_binary else labels,
        base_margin=scores.astype(np.float32),
    )
    data.set_group(np.diff(query_ptr))
    settings = {"objective": "rank:pairwise", "eval_metric": [spelling(metric) for metric in metrics]}
    booster = xgboost.train(settings, data, num_boost_round=0)

    def evaluate() -> Figures:
        text = booster.eval(data)
        figures = dict(part.split(":") for part in text.replace("eval-", "").split("\t")[1:])
        return {metric: np.asarray(float(figures[spelling(metric)])) for metric in metrics}

    return evaluate


def _prepare_catboost(
    labels: np.ndarray, scores: np.ndarray, query_ptr: np.ndarray, metrics: Sequence[str]
) -> Callable[[], Figures]:
    from catboost.utils import eval_metric

    spellings = {"ndcg": "NDCG", "map": "MAP", "mrr": "MRR", "p": "PrecisionAt", "recall": "RecallAt"}

    def spelling(metric: str) -> str:
        family, at, cutoff = metric.partition("@")
        return f"{spellings[family]}:top={cutoff}" if at else spellings[family]

    group_id = np.repeat(np.arange(len(query_ptr) - 1), np.diff(query_ptr))
    return lambda: {
        metric: np.asarray(eval_metric(labels, scores, spelling(metric), group_id=group_id, thread_count=-1)[0])
        for metric in metrics
    }


RIVALS = (
    MetricRival("scikit-learn", "sklearn", "sklearn", ("ndcg", "map"), False, _prepare_sklearn),
    MetricRival(
        "pytrec_eval", "pytrec_eval", "trec", ("ndcg", "map", "mrr", "p", "recall"), False, _prepare_pytrec_eval
    ),
    MetricRival(
        "ir-measures", "ir_measures", "trec", ("ndcg", "map", "mrr", "p", "recall"), False, _prepare_ir_measures
    ),
    MetricRival("LightGBM", "lightgbm", "gbdt", ("ndcg", "map"), True, _prepare_lightgbm),
    MetricRival("XGBoost", "xgboost", "gbdt", ("ndcg", "map", "p"), True, _prepare_xgboost),
    MetricRival("CatBoost", "catboost", "catboost", ("ndcg", "map", "mrr", "p", "recall"), False, _prepare_catboost),
)
