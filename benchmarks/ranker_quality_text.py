"""Do rankers trained on text collections rank better than BM25, on queries they have not seen?

Cranfield, CISI and CACM, indexed with English stems and stop words. The candidates of every query are the first 200
documents by BM25, in training as in testing, and never documents that only the judgments knew: a ranker that learns
from those learns what judges found, not what the first pass finds, and ranks worse. Five folds over the queries. What
is chosen (which features a ranker sees, RankSVM's C, RankBoost's bins and rounds, ListNet's epochs) is chosen inside
the training queries, by the mean MAP of a cross-validation over the four other folds; then the ranker learns from all
four and ranks the fifth. Features are normalised within a query. Equal scores keep the order of the first pass, as when
they are served. Relevant documents that the first pass missed count as missed. p is Fisher's randomisation test, paired
by query, two-sided, and not corrected for the number of comparisons.

What is not chosen inside: that training reads the first pass's candidates, the normaliser, equal weight for each query,
200 candidates, a ListNet without hidden units, and which values are offered to the choice. These were settled while
looking at results on these same collections, of about fifteen configurations, so the differences are somewhat
flattered: a collection that nobody tuned on is the better witness.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.harness import Benchmark
from rankwell import Index, IndexWriter, ListNet, RankBoost, RankSVM, compare, evaluate
from rankwell.corpus.reading import read_corpus
from rankwell.data.dataset import RankingDataset
from rankwell.demo.judged_ranking import evaluate_candidates
from rankwell.features.feature_set import make_feature_set
from rankwell.features.qrels import Qrels, read_qrels
from rankwell.features.queries import read_queries
from rankwell.features.training_data import judged_features
from rankwell.index.analysis import Analysis
from rankwell.metrics.evaluation import Evaluation
from rankwell.rankers.base import Ranker

COLLECTIONS = ("cranfield", "cisi", "cacm")
FIRST_PASS, DEPTH = "bm25.whole", 200
STREAMS = ("title", "body", "author", "source")
FULL = make_feature_set("full", STREAMS)
# Few scores of whole retrieval models; all that are scores, coverage or proximity; everything.
SETS: dict[str, tuple[str, ...]] = {
    "compact": (
        *(f"bm25.{stream}" for stream in (*STREAMS, "whole")),
        *(f"{model}.whole" for model in ("lm_absolute", "lm_dirichlet", "lm_jelinek_mercer")),
        *(f"bm25_proximity.{stream}" for stream in ("title", "body")),
        "bm25f",
    ),
    "models": tuple(
        feature.name
        for feature in FULL.features
        if feature.kind.startswith(("bm25", "lm_", "vector_space", "query_completeness", "covered_ratio"))
        or feature.kind in ("forward_proximity", "window_density", "unordered_pairs", "longest_sequence")
    ),
    "full": FULL.names,
}
METRICS, CONVENTION = (f"map@{DEPTH}", "ndcg@10"), "trec"
N_FOLDS, SEED = 5, 0
# One thread: the data is small, and rankers do not depend on it.
COMMON: dict[str, Any] = {"normalize": "query-minmax", "eval_metric": "map", "device": "cpu", "n_jobs": 1}


@dataclass(frozen=True)
class Contender:
    """A ranker and what is chosen for it.

    parameter, values : the parameter whose values are tried in every variant
    variants : other parameters that are tried, each with each feature set
    steps : whether one training tells of all values
    weighs_pairs : whether queries with many pairs must be held back, because the ranker counts every pair alike
    """

    name: str
    ranker: Ranker
    parameter: str
    values: Sequence[float]
    variants: Sequence[dict[str, Any]] = ({},)
    steps: bool = False
    weighs_pairs: bool = False

    def settings(self) -> list[tuple[str, dict[str, Any]]]:
        """(feature set, parameters) of everything that can be chosen, the values changing fastest."""
        return [
            (name, {**variant, self.parameter: value})
            for name in SETS
            for variant in self.variants
            for value in self.values
        ]

    def validate(self, train: RankingDataset, validation: RankingDataset) -> list[float]:
        """The MAP on validation queries for each of `settings`."""
        figures: list[float] = []
        for name in SETS:
            learn, check = columns(train, name), columns(validation, name)
            for variant in self.variants:
                figures += self._validate_values(learn, check, variant)
        return figures

    def _validate_values(self, train: RankingDataset, check: RankingDataset, variant: dict[str, Any]) -> list[float]:
        if self.steps:
            fitted = self.make({**variant, self.parameter: max(self.values)}).fit(train, eval_set=check)
            by_step = next(values for name, values in fitted.history_.items() if "map" in name)
            return [by_step[min(int(value), len(by_step)) - 1] for value in self.values]
        fitted_all = [self.make({**variant, self.parameter: value}).fit(train) for value in self.values]
        return [float(evaluate(check, one.predict(check), metrics="map").mean["map"]) for one in fitted_all]

    def make(self, parameters: dict[str, Any]) -> Ranker:
        return clone(self.ranker).set_params(**parameters)


CONTENDERS = (
    Contender("RankSVM", RankSVM(tol=1e-3, max_iter=100, **COMMON), "C", (1e-2, 1e-1, 1.0, 10.0), weighs_pairs=True),
    Contender(
        "RankBoost",
        RankBoost(binning="quantile", pair_weight="queries", **COMMON),
        "n_rounds",
        (25, 50, 100, 200),
        variants=({"n_bins": 16}, {"n_bins": 256}),
        steps=True,
    ),
    Contender("ListNet", ListNet(hidden=(), **COMMON), "n_epochs", (25, 50, 100, 200), steps=True),
)


def columns(data: RankingDataset, name: str) -> RankingDataset:
    """The data with the features of one of `SETS` alone."""
    numbers = [FULL.names.index(feature) for feature in SETS[name]]
    return RankingDataset(
        np.ascontiguousarray(data.features[:, numbers]),
        data.labels,
        group=data.query_sizes,
        query_weights=data.query_weights,
        feature_names=SETS[name],
    )


def run(bench: Benchmark) -> None:
    for collection in COLLECTIONS[-1:] if bench.quick else COLLECTIONS:
        folder = bench.data(f"text/{collection}")
        if folder is not None:
            measure_collection(bench, collection, folder)
    if not bench.rows:
        bench.check("the collections are not there: nothing to measure", True)


def measure_collection(bench: Benchmark, collection: str, folder: Path) -> None:
    qrels = read_qrels(folder / "qrels.txt")
    data = candidates_of(folder, qrels)
    if bench.quick:
        data = data.subset(np.arange(15))
    missed = missed_grades(data, qrels)
    bench.check(f"{collection}: candidates come from the first pass alone", int(data.query_sizes.max()) <= DEPTH)
    first_pass = data.features[:, FULL.names.index(FIRST_PASS)].astype(np.float64)
    baseline = judge(data, first_pass, missed)
    for metric in METRICS:
        bench.record(
            f"{collection}, BM25, {metric}", value=baseline[metric].mean[metric], unit="", better="higher",
            note=f"{data.n_queries} queries",
        )  # fmt: skip
    for contender in CONTENDERS:
        scores, chosen = cross_validated(data, contender, quick=bench.quick)
        for metric, evaluation in judge(data, scores, missed).items():
            record_comparison(bench, f"{collection}, {contender.name}, {metric}", evaluation, baseline[metric], chosen)


def candidates_of(folder: Path, qrels: Qrels) -> RankingDataset:
    """The first documents by BM25 for each query, in this order, with their features."""
    with tempfile.TemporaryDirectory(prefix="rankwell-quality-") as place:
        with IndexWriter(Path(place) / "index", analysis=Analysis("english", "english")) as writer:
            for batch in read_corpus([folder / "corpus.jsonl.gz"]):
                writer.add(batch)
            writer.commit()
        queries = read_queries(folder / "queries.tsv", operators=False)
        index = Index.open(Path(place) / "index")
        data = judged_features(index, queries, qrels, FULL, source="top", n_candidates=DEPTH).dataset
    first_pass = data.features[:, FULL.names.index(FIRST_PASS)]
    order = np.lexsort((-first_pass, data.query_of_rows()))
    names = list(data.comments or [])
    return RankingDataset(
        data.features[order],
        data.labels[order],
        qid=data.qid_of_rows()[order],
        comments=[names[row] for row in order],
        feature_names=FULL.names,
    )


def missed_grades(data: RankingDataset, qrels: Qrels) -> dict[Any, list[float]]:
    """By query, the grades of judged documents that are not among the candidates."""
    names = list(data.comments or [])
    found = [set(names[rows]) for rows in data.queries()]
    return {
        query: [grade for name, grade in qrels[str(query)].items() if name not in own]
        for query, own in zip(data.query_ids.tolist(), found, strict=True)
    }


def judge(data: RankingDataset, scores: np.ndarray, missed: Mapping[Any, list[float]]) -> dict[str, Evaluation]:
    """Every metric of a ranking; equal scores stay in the order of the first pass, in which the rows are."""
    untied = np.empty(data.n_docs)
    for rows in data.queries():
        best_first = np.argsort(-scores[rows], kind="stable")
        untied[rows.start + best_first] = -np.arange(len(best_first))
    return {
        metric: evaluate_candidates(data, untied, missed, depth=DEPTH, metrics=[metric], convention=CONVENTION)
        for metric in METRICS
    }


def cross_validated(data: RankingDataset, contender: Contender, *, quick: bool) -> tuple[np.ndarray, list[str]]:
    """Scores of every row by a ranker that learnt from the other folds, and what was chosen for each fold."""
    data = balanced(data) if contender.weighs_pairs else data
    folds = np.array_split(np.random.default_rng(SEED).permutation(data.n_queries), N_FOLDS)
    scores, chosen = np.empty(data.n_docs), []
    for number, test in enumerate(folds):
        others = [fold for place, fold in enumerate(folds) if place != number]
        name, parameters = contender.settings()[0] if quick else choose(data, contender, others)
        ranker = contender.make(parameters).fit(columns(data.subset(np.concatenate(others)), name))
        part, start = ranker.predict(columns(data.subset(test), name)), 0
        for query in test.tolist():
            rows = slice(data.query_ptr[query], data.query_ptr[query + 1])
            scores[rows] = part[start : start + rows.stop - rows.start]
            start += rows.stop - rows.start
        chosen.append(f"{name} {' '.join(f'{value:g}' for value in parameters.values())}")
    return scores, chosen


def choose(data: RankingDataset, contender: Contender, folds: Sequence[np.ndarray]) -> tuple[str, dict[str, Any]]:
    """What has the best mean MAP over these folds, each validated by rankers that learnt from the others."""
    outcomes = [
        contender.validate(
            data.subset(np.concatenate([fold for place, fold in enumerate(folds) if place != number])),
            data.subset(validation),
        )
        for number, validation in enumerate(folds)
    ]
    means = np.average(outcomes, axis=0, weights=[len(fold) for fold in folds])
    return contender.settings()[int(np.argmax(means))]


def balanced(data: RankingDataset) -> RankingDataset:
    """Every query with the same weight in all: without it, queries with many relevant documents have most pairs."""
    weights = []
    for rows in data.queries():
        _, counts = np.unique(data.labels[rows], return_counts=True)
        n_pairs = (counts.sum() ** 2 - (counts**2).sum()) / 2
        weights.append(1.0 / n_pairs if n_pairs else 0.0)
    return data.replace(query_weights=weights)


def record_comparison(
    bench: Benchmark, case: str, evaluation: Evaluation, baseline: Evaluation, chosen: Sequence[str]
) -> None:
    outcome = compare(evaluation, baseline)
    bench.record(
        case,
        value=outcome.mean_a,
        unit="",
        better="higher",
        target=None if bench.quick else outcome.mean_b,
        rival="BM25",
        rival_value=outcome.mean_b,
        note=f"{outcome.difference:+.4f}, p = {outcome.fisher_p:.2g}; better on {outcome.wins}, worse on "
        f"{outcome.losses} queries; chosen {', '.join(chosen)}",
    )
