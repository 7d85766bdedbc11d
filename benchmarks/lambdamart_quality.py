"""How good is LambdaMART beside LightGBM, XGBoost and CatBoost with the same number of settings tried?

Every library tries the same settings (leaves and learning rate, half of the features for each tree) with two losses,
each with one seed; everything else is its own default. Setting, loss and, with every seed, the number of rounds are
those with the highest figure on validation data. Four seeds give four models: rows have their mean test figure, and the
figure of the mean of their scores. A test fold is evaluated once for each of them.

LETOR: the five folds of MQ2007 and MQ2008 under `letor4`, chosen by MeanNDCG. The best published figures are MeanNDCG
.5003 (RankBoost on MQ2007) and .4950 (AdaRank-NDCG on MQ2008). MQ2008 is small: 0.005 there is noise.

The demo's training, validation and test queries, and Cranfield, CISI and CACM in five folds over their queries (three
to learn from, one to choose, one to test), with the features of `untuned_rankers`: NDCG@10 under `burges`, beside
LightGBM. p is Fisher's randomisation test over all test queries, two-sided.

The last row has nothing chosen: LightGBM's default settings on five synthetic collections of the shape of MSLR-WEB10K,
and the mean difference of the test NDCG@10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from benchmarks.rivals.tree_curves import STEP, CurveMaker, TreeSetting, curve_makers
from benchmarks.tuned_trees import Criterion, FoldResult, fold_result
from benchmarks.untuned_rankers import TEXT, candidates_of, demo_parts, difference_interval, joined, query_folds
from rankwell import compare, make_ranking
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.metrics.significance import Comparison

LETOR = Criterion("letor4", "mean_ndcg", ("mean_ndcg", "map"))
WEB = Criterion("burges", "ndcg@10", ("ndcg@10",))
N_SEEDS = 4
SETTINGS = [TreeSetting(leaves, rate, 0.5, 300) for leaves, rate in product((7, 15, 31), (0.05, 0.1))]
# What one model, the mean over seeds, and the mean of the models must reach.
TARGETS = {
    ("MQ2007", "mean_ndcg"): (0.505, 0.507),
    ("MQ2007", "map"): (0.469, 0.470),
    ("MQ2008", "mean_ndcg"): (0.484, 0.487),
    ("MQ2008", "map"): (0.4735, 0.476),
}
# Losses of one library, among which validation chooses: two each, so that all have equally many tries.
FAMILIES = {
    "LambdaMART": ("LambdaMART lambdarank", "LambdaMART xendcg"),
    "LightGBM": ("LightGBM lambdarank", "LightGBM rank_xendcg"),
    "XGBoost": ("XGBoost rank:ndcg", "XGBoost rank:pairwise"),
    "CatBoost": ("CatBoost YetiRank", "CatBoost QuerySoftMax"),
}
OURS, RIVAL = "LambdaMART", "LightGBM"
# The paired runs: documents of a collection, of which a third are tested, and what both libraries are told.
PAIRED_RUNS, PAIRED_DOCS = 5, 180_000
PAIRED_SETTING = TreeSetting(31, 0.1, 1.0, 100)
PAIRED_TOLERANCE = 0.002


@dataclass(frozen=True)
class Study:
    """A collection in folds, and how it is judged. families : the libraries that are tried on it"""

    name: str
    folds: list[FoldData]
    criterion: Criterion
    families: tuple[str, ...] = tuple(FAMILIES)


def run(bench: Benchmark) -> None:
    few = [TreeSetting(4, 0.1, 0.5, 2 * STEP)]
    for study in studies(bench):
        if study.folds:
            measure_study(bench, study, few if bench.quick else SETTINGS, 2 if bench.quick else N_SEEDS)
    measure_paired_runs(bench)


def studies(bench: Benchmark) -> Iterator[Study]:
    """Those whose data are present; in the quick form a synthetic one."""
    if bench.quick:
        yield Study("synthetic", [synthetic_fold(0.1)], LETOR)
        return
    for name in ("MQ2007", "MQ2008"):
        yield Study(name, letor_folds(bench, name), LETOR)
    parts = demo_parts()
    yield Study("demo", [FoldData("demo", parts["train"], parts["vali"], parts["test"])], WEB, (OURS, RIVAL))
    for name in TEXT:
        folder = bench.data(f"text/{name}")
        yield Study(name, [] if folder is None else text_folds(candidates_of(folder)), WEB, (OURS, RIVAL))


def text_folds(data: RankingDataset) -> list[FoldData]:
    """Every fold of the queries is tested once; the one after it chooses, and the others are learnt from."""
    fold_of_query = query_folds(data)
    n_folds = int(fold_of_query.max()) + 1
    return [
        FoldData(
            f"Fold{test + 1}",
            data.subset((fold_of_query != test) & (fold_of_query != (test + 1) % n_folds)),
            data.subset(fold_of_query == (test + 1) % n_folds),
            data.subset(fold_of_query == test),
        )
        for test in range(n_folds)
    ]


def measure_study(bench: Benchmark, study: Study, settings: list[TreeSetting], n_seeds: int) -> None:
    makers = curve_makers()
    families = {name: FAMILIES[name] for name in study.families if all(loss in makers for loss in FAMILIES[name])}
    by_loss = {
        loss: [fold_result(fold, makers[loss], settings, n_seeds, study.criterion) for fold in study.folds]
        for losses in families.values()
        for loss in losses
    }
    chosen = {
        family: [max((by_loss[loss][fold] for loss in losses), key=_validation) for fold in range(len(study.folds))]
        for family, losses in families.items()
    }
    for family, results in chosen.items():
        bench.check(
            f"{study.name}, {family}: a finite score for every test document and seed",
            all(
                np.isfinite(one.seeds).all() and one.seeds.shape == (n_seeds, fold.test.n_docs)
                for one, fold in zip(results, study.folds, strict=True)
            ),
        )
    record_rows(bench, study, {**chosen, **by_loss}, n_seeds)


def _validation(result: FoldResult) -> float:
    return result.validation


@dataclass(frozen=True)
class Figures:
    """A test metric, the mean over folds. seeds : of each seed's model, float64 (n_seeds,); mean : of their mean"""

    seeds: np.ndarray
    mean: float

    @property
    def one(self) -> float:
        """Of one model, whichever seed it has."""
        return float(self.seeds.mean())


def record_rows(bench: Benchmark, study: Study, results: Mapping[str, list[FoldResult]], n_seeds: int) -> None:
    """Two rows for every library, loss and metric: of one model, and of the mean of the models."""
    for metric in study.criterion.metrics:
        figures = {name: mean_figures(study, of_folds, metric, n_seeds) for name, of_folds in results.items()}
        rival = figures.get(RIVAL)
        beside = None if rival is None else compare_models(study, results[OURS], results[RIVAL], metric)
        least = TARGETS.get((study.name, metric)) or (None if rival is None else (rival.one, rival.mean))
        for name, own in figures.items():
            is_ours = name == OURS
            targets = least if is_ours and least is not None and not bench.quick else (None, None)
            case, end = f"{study.name}, {name}", f"test {metric} ({study.criterion.convention})"
            ends = f"seeds from {own.seeds.min():.4f} to {own.seeds.max():.4f}"
            bench.record(
                f"{case}, one model, mean of {n_seeds} seeds, {end}",
                value=own.one,
                unit="",
                better="higher",
                target=targets[0],
                rival=RIVAL if is_ours else None,
                rival_value=rival.one if is_ours and rival else None,
                note=f"{ends}; {'; '.join(one.setting for one in results[name])}",
            )
            bench.record(
                f"{case}, mean of {n_seeds} models, {end}",
                value=own.mean,
                unit="",
                better="higher",
                target=targets[1],
                rival=RIVAL if is_ours else None,
                rival_value=rival.mean if is_ours and rival else None,
                note=_significance(beside) if is_ours and beside else "",
                interval=difference_interval(beside) if is_ours and beside else None,
            )


def mean_figures(study: Study, of_folds: list[FoldResult], metric: str, n_seeds: int) -> Figures:
    def figure(test: RankingDataset, scores: np.ndarray) -> float:
        return study.criterion.judge(test, scores).mean[metric]

    pairs = [(fold.test, one) for fold, one in zip(study.folds, of_folds, strict=True)]
    seeds = [np.mean([figure(test, one.seeds[seed]) for test, one in pairs]) for seed in range(n_seeds)]
    return Figures(np.array(seeds), float(np.mean([figure(test, one.mean) for test, one in pairs])))


def compare_models(study: Study, ours: list[FoldResult], theirs: list[FoldResult], metric: str) -> Comparison:
    """The mean models of both, over all test queries."""
    tests = joined([fold.test for fold in study.folds])
    judged = [
        study.criterion.judge(tests, np.concatenate([one.mean for one in of_folds])) for of_folds in (ours, theirs)
    ]
    return compare(*judged, metric=metric)


def _significance(outcome: Comparison) -> str:
    return f"{RIVAL} {outcome.mean_b:.4f} over all test queries ({outcome.difference:+.4f}, p = {outcome.fisher_p:.2g})"


def measure_paired_runs(bench: Benchmark) -> None:
    """Ours less LightGBM's test figure at equal settings, on synthetic collections of several seeds."""
    makers = curve_makers()
    if "LightGBM lambdarank" not in makers:
        return
    setting = TreeSetting(4, 0.1, 1.0, STEP) if bench.quick else PAIRED_SETTING
    pairs = []
    for seed in range(2 if bench.quick else PAIRED_RUNS):
        fold = synthetic_split(4_000 if bench.quick else PAIRED_DOCS, seed)
        pairs.append(
            [
                last_figure(fold, makers[loss], setting, seed)
                for loss in ("LambdaMART lambdarank", "LightGBM lambdarank")
            ]
        )
    ours, theirs = np.array(pairs).T
    outcome = compare(ours, theirs)
    bench.record(
        f"mslr10k shape, ours less LightGBM's test ndcg@10 (burges), mean of {len(pairs)} paired runs",
        value=outcome.difference,
        unit="",
        better="higher",
        target=None if bench.quick else -PAIRED_TOLERANCE,
        note=f"{RIVAL} {theirs.mean():.4f}; differences {', '.join(f'{one:+.4f}' for one in ours - theirs)}",
    )


def synthetic_split(n_docs: int, seed: int) -> FoldData:
    """Two thirds of the queries of a synthetic collection to learn from, the rest to test; nothing is chosen."""
    whole = make_ranking("mslr10k", n_docs=n_docs, random_state=seed)
    border = 2 * whole.n_queries // 3
    test = whole.subset(range(border, whole.n_queries))
    return FoldData(f"seed {seed}", whole.subset(range(border)), test, test)


def last_figure(fold: FoldData, make: CurveMaker, setting: TreeSetting, seed: int) -> float:
    """The test NDCG@10 after all rounds."""
    return WEB.judge(fold.test, make(fold, setting, seed).test[-1]).mean[WEB.chosen_by]
