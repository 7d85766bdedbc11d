"""How good are rankers without a single parameter set, beside BM25 and the untuned LightGBM and XGBoost?

Every ranker is trained as it comes, on training data only: `Ranker().fit(train)`, `LGBMRanker()`, `XGBRanker()`. The
figure is the mean NDCG@10 (convention `burges`) over all test queries of a collection; p is Fisher's randomisation
test, paired by query, two-sided, not corrected for the number of comparisons.

Text collections (Cranfield, CISI, CACM): the first 100 documents by BM25 of an English index, with every feature of
the set `full`; five folds over the queries, four to learn from. The demo: its own training and test queries, BM25's
first 50. LETOR: the five folds of MQ2007 and MQ2008, and the sample of MSLR, training and test parts.

The last rows are `rankwell crossval NAME` without a grid: training with each fold's validation data, under `letor4`,
beside the figures that Microsoft published. Defaults were chosen on validation folds, without these test figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from benchmarks.published_tables import published_figures
from benchmarks.rivals.untuned_trees import Scorer, installed_rivals
from rankwell import Index, IndexWriter, compare, evaluate
from rankwell.cli.demo import make_files, make_parts
from rankwell.corpus.reading import read_corpus
from rankwell.data.dataset import RankingDataset
from rankwell.data.files import read
from rankwell.data.scores import feature_scores
from rankwell.features.feature_set import make_feature_set
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import read_queries
from rankwell.features.training_data import judged_features
from rankwell.index.text.analysis import Analysis
from rankwell.metrics.evaluation import Evaluation
from rankwell.metrics.significance import Comparison
from rankwell.rankers.registry import RANKERS, ranker_class

TEXT = ("cranfield", "cisi", "cacm")
LETOR = ("MQ2007", "MQ2008")
METRIC, CONVENTION = "ndcg@10", "burges"
FIRST_PASS = "bm25.whole"
# Those that must reach BM25 on text and must not be significantly below LightGBM on LETOR.
DEMANDED = ("least-squares", "ranksvm", "rankboost", "listnet")
PUBLISHED = {"rankboost": "RankBoost", "ranksvm": "RankSVM-Struct", "listnet": "ListNet"}
# How much less than the published figure is enough: MQ2008 is small, .005 there is noise.
NOISE = {"MQ2007": 0.0, "MQ2008": 0.005}
N_FOLDS, N_CANDIDATES = 5, 100


@dataclass(frozen=True)
class Collection:
    """Pairs of training and test data; the test queries of all pairs are measured together."""

    name: str
    is_text: bool
    splits: list[tuple[RankingDataset, RankingDataset]]


def run(bench: Benchmark) -> None:
    rivals = {} if bench.quick else installed_rivals()
    for collection in collections(bench):
        measure_collection(bench, collection, rivals)
    for name in LETOR:
        for ranker in PUBLISHED:
            measure_crossval(bench, name, ranker)


def collections(bench: Benchmark) -> Iterator[Collection]:
    """Those that are present; in the quick form a synthetic one."""
    if bench.quick:
        fold = synthetic_fold(0.05)
        yield Collection("synthetic", is_text=False, splits=[(fold.train, fold.test)])
        return
    for name in TEXT:
        folder = bench.data(f"text/{name}")
        if folder is not None:
            yield Collection(name, is_text=True, splits=folds_over_queries(candidates_of(folder)))
    parts = demo_parts()
    yield Collection("demo", is_text=True, splits=[(parts["train"], parts["test"])])
    for name in LETOR:
        splits = [(fold.train, fold.test) for fold in letor_folds(bench, name)]
        if splits:
            yield Collection(name, is_text=False, splits=splits)
    folder = bench.data("mslr-sample")
    if folder is not None:
        yield Collection(
            "mslr-sample", is_text=False, splits=[(read(folder / "train.txt.gz"), read(folder / "test.txt.gz"))]
        )


def demo_parts() -> dict[str, RankingDataset]:
    """The demo's candidates: train, vali and test."""
    with tempfile.TemporaryDirectory(prefix="rankwell-untuned-") as place:
        make_files(Path(place), quiet=True)
        return {name: part.candidates for name, part in make_parts(Path(place), quiet=True).items()}


def candidates_of(folder: Path) -> RankingDataset:
    """BM25's first documents for each judged query, with their features, as `rankwell features` makes them."""
    with tempfile.TemporaryDirectory(prefix="rankwell-untuned-") as place:
        with IndexWriter(Path(place) / "index", analysis=Analysis("english", "english")) as writer:
            for batch in read_corpus([folder / "corpus.jsonl.gz"]):
                writer.add(batch)
            writer.commit()
        index = Index.open(Path(place) / "index")
        features = make_feature_set("full", index.schema.streams, index.schema.statics)
        queries, qrels = read_queries(folder / "queries.tsv", operators=False), read_qrels(folder / "qrels.txt")
        return judged_features(index, queries, qrels, features, source="top", n_candidates=N_CANDIDATES).dataset


def query_folds(data: RankingDataset) -> np.ndarray:
    """The fold of each query, 0 to N_FOLDS - 1, int64 (n_queries,)."""
    return np.random.default_rng(0).permutation(np.arange(data.n_queries) % N_FOLDS)


def folds_over_queries(data: RankingDataset) -> list[tuple[RankingDataset, RankingDataset]]:
    fold_of_query = query_folds(data)
    return [(data.subset(fold_of_query != fold), data.subset(fold_of_query == fold)) for fold in range(N_FOLDS)]


def measure_collection(bench: Benchmark, collection: Collection, rivals: Mapping[str, Scorer]) -> None:
    """A row for every ranker; where it is demanded, BM25 is the target, or not to be significantly below LightGBM."""
    tests = joined([test for _, test in collection.splits])
    known = {name: judge(tests, [scorer(*split) for split in collection.splits]) for name, scorer in rivals.items()}
    if collection.is_text:
        known["BM25"] = judge(tests, [feature_scores(test, FIRST_PASS) for _, test in collection.splits])
    below = []
    for name in RANKERS:
        scores = [scores_of(name, *split) for split in collection.splits]
        is_whole = sum(map(len, scores)) == tests.n_docs and all(np.isfinite(part).all() for part in scores)
        bench.check(f"{collection.name}, {name}: a finite score for every test row", is_whole)
        evaluation = judge(tests, scores)
        notes, interval = [], None
        for rival, other in known.items():
            outcome = compare(evaluation, other, metric=METRIC)
            if rival == ("BM25" if collection.is_text else "LightGBM"):
                interval = difference_interval(outcome)
            notes.append(f"{rival} {outcome.mean_b:.4f} ({outcome.difference:+.4f}, p = {outcome.fisher_p:.2g})")
            if rival == "LightGBM" and name in DEMANDED and outcome.difference < 0 and outcome.fisher_p <= 0.05:
                below.append(name)
        rival = "BM25" if collection.is_text else "LightGBM"
        value = known[rival].mean[METRIC] if rival in known else None
        bench.record(
            f"{collection.name}, {name}, {METRIC}",
            value=evaluation.mean[METRIC],
            unit="",
            better="higher",
            target=value if collection.is_text and name in DEMANDED else None,
            rival=rival,
            rival_value=value,
            note="; ".join(notes),
            interval=interval,
        )
    if "LightGBM" in known:
        bench.record(
            f"{collection.name}, of {', '.join(DEMANDED)} significantly below LightGBM (p at most .05)",
            value=len(below),
            unit="rankers",
            target=0,
            note=", ".join(below),
        )


def difference_interval(outcome: Comparison) -> tuple[float, float] | None:
    """The 95 % confidence interval of the difference by Student's t, paired by query; None where nothing differs."""
    if outcome.n_queries < 2 or outcome.t_statistic == 0 or not np.isfinite(outcome.t_statistic):
        return None
    error = outcome.difference / outcome.t_statistic
    half = float(stdtrit(outcome.n_queries - 1, 0.975)) * error
    return outcome.difference - half, outcome.difference + half


def scores_of(name: str, train: RankingDataset, test: RankingDataset) -> np.ndarray:
    """The scores of test rows by a ranker without a parameter set."""
    return ranker_class(name)().fit(train).predict(test)


def joined(tests: list[RankingDataset]) -> RankingDataset:
    whole = tests[0]
    for test in tests[1:]:
        whole = whole.joined(test)
    return whole


def judge(tests: RankingDataset, scores: list[np.ndarray]) -> Evaluation:
    return evaluate(tests, np.concatenate(scores), metrics=METRIC, convention=CONVENTION)


def measure_crossval(bench: Benchmark, collection: str, name: str) -> None:
    """`rankwell crossval NAME` without a grid, beside the published figures."""
    from rankwell.rankers.tuning import cross_validate

    folds = letor_folds(bench, collection)
    if not folds:
        return
    ranker = ranker_class(name)()
    ranker.set_params(eval_convention="letor4")
    mean = cross_validate(ranker, folds, metrics=("mean_ndcg", "map"), convention="letor4").mean
    published = published_figures(bench, PUBLISHED[name], collection)
    for metric, value in mean.items():
        paper = published.get(("average", metric))
        bench.record(
            f"{collection}, crossval {name} without a grid, mean of 5 folds, test {metric} (letor4)",
            value=value,
            unit="",
            better="higher",
            target=None if paper is None else paper - NOISE[collection],
            paper=paper,
        )
