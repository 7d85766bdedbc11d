"""Do rankers trained on text collections rank better than BM25, on queries they have not seen?

Cranfield, CISI and CACM, indexed with English stems and stop words. The candidates of every query are the first 200
documents by BM25, in training as in testing, and never documents that are only in the judgments: a ranker that learns
from those learns what judges found, not what the first pass finds, and ranks worse. A ranker reads twelve features: the
scores of whole retrieval models, and `relevance_model.whole`, pseudo-relevance feedback from the first ten documents,
with the textbook's parameters (RM3: 10 documents, 10 terms, the query's share one half). Features are normalised within
a query.

Five folds over the queries, five times with other folds. One number is chosen for each ranker (RankSVM's C, RankBoost's
rounds, ListNet's epochs), inside the training queries, by the MAP of a cross-validation over the four other folds; then
it learns from all four and ranks the fifth. A RankBoost is the mean of ten, each trained on a bootstrap sample of the
training queries: it varies most with the queries it learns from, and the mean of RankBoosts is a RankBoost
of all their weak rankers. Equal scores keep the order of the first pass, as in serving. Relevant documents
that the first pass missed count as missed. A query's figure is the mean of its five; p is Fisher's randomisation test,
paired by query, two-sided, and not corrected for the number of comparisons.

The same queries have many documents in common, and a ranker that recognises a document by its features could rank it
from memory. The rows "of other documents" exclude that: documents are divided into two halves by their names, a ranker
learns from the training queries' candidates of one half and ranks the test queries' candidates of the other, and the
first pass is measured on these shorter lists too. A query's figure is the mean over both halves.

Choices that were made with results on these collections known. On all queries: about fifteen earlier configurations
without the relevance model (which data to train on, the normaliser, 200 candidates, a ListNet without hidden units,
which values are offered), and eight forms of feedback as rankings by themselves. On every other query only, the
development half: about 120 more, from which came the twelve features instead of all, the bootstrap for RankBoost and
its 16 bins of equal width; choosing by NDCG as well, interpolation with BM25 and bootstrap for the others gave no gain.
This form was then run on all queries once. The note of each row gives the difference on the other half, which none of
the 120 used: less biased, and with half the queries less certain.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.harness import Benchmark
from rankwell import Index, IndexWriter, ListNet, RankBoost, RankSVM, compare, evaluate
from rankwell.corpus.reading import read_corpus
from rankwell.data.dataset import RankingDataset
from rankwell.demo.judged_ranking import evaluate_candidates
from rankwell.features.feature_set import FeatureSet
from rankwell.features.qrels import Qrels, read_qrels
from rankwell.features.queries import read_queries
from rankwell.features.training_data import judged_features
from rankwell.index.text.analysis import Analysis
from rankwell.metrics.evaluation import Evaluation
from rankwell.rankers.base import Ranker

COLLECTIONS = ("cranfield", "cisi", "cacm")
FIRST_PASS, FEEDBACK, DEPTH = "bm25.whole", "relevance_model.whole", 200
FEATURES = FeatureSet(
    (
        *(f"bm25.{stream}" for stream in ("title", "body", "author", "source", "whole")),
        *(f"{model}.whole" for model in ("lm_absolute", "lm_dirichlet", "lm_jelinek_mercer")),
        *(f"bm25_proximity.{stream}" for stream in ("title", "body")),
        "bm25f",
        FEEDBACK,
    )
)
METRICS, CONVENTION = (f"map@{DEPTH}", "ndcg@10"), "trec"
N_FOLDS, N_REPETITIONS = 5, 5
# One thread: the data is small, and rankers do not depend on it.
COMMON: dict[str, Any] = {"normalize": "query-minmax", "eval_metric": "map", "device": "cpu", "n_jobs": 1}


@dataclass(frozen=True)
class Contender:
    """A ranker and what is chosen for it.

    parameter, values : the parameter that is chosen, and from what
    n_drawn : of how many rankers it is the mean, each from training queries drawn at random; 1 takes them all
    steps : whether one training gives the results for all values
    weighs_pairs : whether queries with many pairs must be weighted down, because the ranker counts every pair alike
    """

    name: str
    ranker: Ranker
    parameter: str
    values: Sequence[float]
    n_drawn: int = 1
    steps: bool = False
    weighs_pairs: bool = False

    def make(self, value: float) -> Ranker:
        return clone(self.ranker).set_params(**{self.parameter: value})

    def validate(self, train: RankingDataset, validation: RankingDataset) -> list[float]:
        """The MAP on validation queries for each of `values`."""
        if self.steps:
            fitted = self.make(max(self.values)).fit(train, eval_set=validation)
            by_step = next(figures for name, figures in fitted.history_.items() if "map" in name)
            return [by_step[min(int(value), len(by_step)) - 1] for value in self.values]
        fitted_all = [self.make(value).fit(train) for value in self.values]
        return [float(evaluate(validation, one.predict(validation), metrics="map").mean["map"]) for one in fitted_all]

    def rank(
        self, train: RankingDataset, test: RankingDataset, value: float, random: np.random.Generator
    ) -> np.ndarray:
        """The scores of test rows after training."""
        if self.n_drawn == 1:
            return self.make(value).fit(train).predict(test)
        scores = np.zeros(test.n_docs)
        for _ in range(self.n_drawn):
            drawn = np.unique(random.choice(train.n_queries, train.n_queries))
            scores += self.make(value).fit(train.subset(drawn)).predict(test) / self.n_drawn
        return scores


CONTENDERS = (
    Contender("RankSVM", RankSVM(tol=1e-3, max_iter=100, **COMMON), "C", (1e-2, 1e-1, 1.0, 10.0), weighs_pairs=True),
    Contender(
        "RankBoost",
        RankBoost(learning_rate=1.0, binning="width", n_bins=16, pair_weight="queries", **COMMON),
        "n_rounds",
        (25, 50, 100, 200),
        n_drawn=10,
        steps=True,
    ),
    Contender(
        "ListNet",
        ListNet(hidden=(), learning_rate=0.1, lr_decay=0.0, n_seeds=1, **COMMON),
        "n_epochs",
        (25, 50, 100, 200),
        steps=True,
    ),
)


def run(bench: Benchmark) -> None:
    for collection in COLLECTIONS[-1:] if bench.quick else COLLECTIONS:
        folder = bench.data(f"text/{collection}")
        if folder is not None:
            measure_collection(bench, collection, folder)
    if not bench.rows:
        bench.check("the collections are absent: nothing to measure", True)


def measure_collection(bench: Benchmark, collection: str, folder: Path) -> None:
    qrels = read_qrels(folder / "qrels.txt")
    data = candidates_of(folder, qrels)
    if bench.quick:
        data = data.subset(np.arange(15))
    missed = missed_grades(data, qrels)
    bench.check(f"{collection}: candidates come from the first pass only", int(data.query_sizes.max()) <= DEPTH)
    baseline = judge(data, feature_of(data, FIRST_PASS), missed)
    for metric in METRICS:
        bench.record(
            f"{collection}, BM25, {metric}", value=baseline[metric].mean[metric], unit="", better="higher",
            note=f"{data.n_queries} queries",
        )  # fmt: skip
    for metric, evaluation in judge(data, feature_of(data, FEEDBACK), missed).items():
        case = f"{collection}, {FEEDBACK} without learning, {metric}"
        record_comparison(bench, case, evaluation, baseline[metric])
    for contender in CONTENDERS:
        repetitions = [
            cross_validated(data, data, contender, seed, quick=bench.quick)
            for seed in range(1 if bench.quick else N_REPETITIONS)
        ]
        judged = mean_of([judge(data, scores, missed) for scores, _ in repetitions])
        chosen = sorted(value for _, values in repetitions for value in values)
        for metric, evaluation in judged.items():
            case = f"{collection}, {contender.name}, {metric}"
            record_comparison(bench, case, evaluation, baseline[metric], chosen)
    measure_other_documents(bench, collection, data, qrels)


def measure_other_documents(bench: Benchmark, collection: str, data: RankingDataset, qrels: Qrels) -> None:
    """The rankers on documents that they have not learnt from, for queries that they have not learnt from."""
    halves = halves_of(data)
    own_qrels = [
        {query: {name: grade for name, grade in of_query.items() if half_of(name) == half}
         for query, of_query in qrels.items()}
        for half in (0, 1)
    ]  # fmt: skip
    missed = [missed_grades(part, judgments) for part, judgments in zip(halves, own_qrels, strict=True)]
    names = [set(part.comments or []) for part in halves]
    bench.check(f"{collection}: no document is in both halves", not names[0] & names[1])
    baseline = mean_of([judge(part, feature_of(part, FIRST_PASS), missed[half]) for half, part in enumerate(halves)])
    for contender in CONTENDERS:
        judged, chosen = [], []
        for seed in range(1 if bench.quick else N_REPETITIONS):
            for half in (0, 1):
                scores, values = cross_validated(halves[1 - half], halves[half], contender, seed, quick=bench.quick)
                judged.append(judge(halves[half], scores, missed[half]))
                chosen += values
        for metric, evaluation in mean_of(judged).items():
            case = f"{collection}, of other documents, {contender.name}, {metric}"
            record_comparison(bench, case, evaluation, baseline[metric], sorted(chosen))


def half_of(name: str) -> int:
    """The half that a document belongs to, by its name."""
    return hashlib.blake2b(name.encode(), digest_size=1).digest()[0] & 1


def halves_of(data: RankingDataset) -> list[RankingDataset]:
    """The rows of each half of the documents, for the queries that have rows in both."""
    names, qid = list(data.comments or []), data.qid_of_rows()
    half = np.array([half_of(name) for name in names])
    in_both = np.isin(qid, np.intersect1d(qid[half == 0], qid[half == 1]))
    return [
        RankingDataset(
            data.features[rows],
            data.labels[rows],
            qid=qid[rows],
            comments=[names[row] for row in rows.tolist()],
            feature_names=FEATURES.names,
        )
        for rows in (np.flatnonzero(in_both & (half == own)) for own in (0, 1))
    ]


def candidates_of(folder: Path, qrels: Qrels) -> RankingDataset:
    """The first documents by BM25 for each query, in this order, with their features."""
    with tempfile.TemporaryDirectory(prefix="rankwell-quality-") as place:
        with IndexWriter(Path(place) / "index", analysis=Analysis("english", "english")) as writer:
            for batch in read_corpus([folder / "corpus.jsonl.gz"]):
                writer.add(batch)
            writer.commit()
        queries = read_queries(folder / "queries.tsv", operators=False)
        index = Index.open(Path(place) / "index")
        data = judged_features(index, queries, qrels, FEATURES, source="top", n_candidates=DEPTH).dataset
    order = np.lexsort((-feature_of(data, FIRST_PASS), data.query_of_rows()))
    names = list(data.comments or [])
    return RankingDataset(
        data.features[order],
        data.labels[order],
        qid=data.qid_of_rows()[order],
        comments=[names[row] for row in order],
        feature_names=FEATURES.names,
    )


def feature_of(data: RankingDataset, name: str) -> np.ndarray:
    return data.features[:, FEATURES.names.index(name)].astype(np.float64)


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


def mean_of(repetitions: Sequence[dict[str, Evaluation]]) -> dict[str, Evaluation]:
    """By metric, the mean of each query's figures over the repetitions."""
    means = {}
    for metric in METRICS:
        of_queries = np.mean([judged[metric].per_query[metric] for judged in repetitions], axis=0)
        means[metric] = replace(
            repetitions[0][metric], per_query={metric: of_queries}, mean={metric: float(np.nanmean(of_queries))}
        )
    return means


def cross_validated(
    learnt: RankingDataset, data: RankingDataset, contender: Contender, seed: int, *, quick: bool
) -> tuple[np.ndarray, list[float]]:
    """Scores of every row of `data` by a ranker that learnt from the other folds' queries, and what was chosen for each
    fold. learnt : the same queries in the same order, with the rows to learn from
    """
    learnt = balanced(learnt) if contender.weighs_pairs else learnt
    random = np.random.default_rng(seed)
    folds = np.array_split(random.permutation(data.n_queries), N_FOLDS)
    scores, chosen = np.empty(data.n_docs), []
    for number, test in enumerate(folds):
        others = [fold for place, fold in enumerate(folds) if place != number]
        chosen.append(contender.values[0] if quick else choose(learnt, contender, others))
        part = contender.rank(learnt.subset(np.concatenate(others)), data.subset(test), chosen[-1], random)
        rows = [np.arange(data.query_ptr[query], data.query_ptr[query + 1]) for query in test.tolist()]
        scores[np.concatenate(rows)] = part
    return scores, chosen


def choose(data: RankingDataset, contender: Contender, folds: Sequence[np.ndarray]) -> float:
    """The value with the best mean MAP over these folds, each validated by rankers that learnt from the others."""
    outcomes = [
        contender.validate(
            data.subset(np.concatenate([fold for place, fold in enumerate(folds) if place != number])),
            data.subset(validation),
        )
        for number, validation in enumerate(folds)
    ]
    means = np.average(outcomes, axis=0, weights=[len(fold) for fold in folds])
    return contender.values[int(np.argmax(means))]


def balanced(data: RankingDataset) -> RankingDataset:
    """Every query with the same total weight: without it, queries with many relevant documents have most pairs."""
    weights = []
    for rows in data.queries():
        _, counts = np.unique(data.labels[rows], return_counts=True)
        n_pairs = (counts.sum() ** 2 - (counts**2).sum()) / 2
        weights.append(1.0 / n_pairs if n_pairs else 0.0)
    return data.replace(query_weights=weights)


def record_comparison(
    bench: Benchmark, case: str, evaluation: Evaluation, baseline: Evaluation, chosen: Sequence[float] = ()
) -> None:
    """A row compared with BM25; the trained ranker must be at least as good."""
    outcome, metric = compare(evaluation, baseline), next(iter(evaluation.mean))
    unseen = np.nanmean((evaluation.per_query[metric] - baseline.per_query[metric])[1::2])
    note = (
        f"{outcome.difference:+.4f}, p = {outcome.fisher_p:.2g}; better on {outcome.wins}, worse on {outcome.losses} "
        f"queries; {unseen:+.4f} outside the development half"
    )
    if chosen:
        note += f"; chosen {min(chosen):g} to {max(chosen):g}, mostly {max(set(chosen), key=chosen.count):g}"
    bench.record(
        case,
        value=outcome.mean_a,
        unit="",
        better="higher",
        target=outcome.mean_b if chosen and not bench.quick else None,
        rival="BM25",
        rival_value=outcome.mean_b,
        note=note,
    )
