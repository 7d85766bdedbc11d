"""LambdaMART beside other libraries on a collection in folds, every choice made on queries that are not tested.

Every library tries the same settings (leaves and learning rate, half of the features for each tree) in three forms: two
losses, and one of them with trees that grow or vary in another way. Everything else is its own default. Form and
setting are chosen by cross-validation over the four parts of a collection that a fold does not test: learnt on three of
them with one seed, judged by the best round on the fourth. (One validation part of MQ2007 has some 340 queries; chosen
by it, forms changed from fold to fold.) What is chosen is then trained on the fold's training parts with four seeds,
each of which has the number of rounds that is best on the validation part. Rows have the mean test figure of the four
models, and the figure of the mean of their scores. p is Fisher's randomisation test over all test queries, two-sided.
Of a collection that is not in folds, the validation part chooses form and setting too.

The third form was chosen on LETOR's validation data, among those that a library offers: LightGBM regression, no
truncation and extra trees; CatBoost QueryRMSE, PairLogit, YetiRank's mode NDCG, and no random splits or bagging;
Rankwell symmetric trees and noise. XGBoost's is growth by levels, its default, after squared error and sampled pairs
had done worse than the first two. LETOR's validation parts are test parts of other folds, for all libraries alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from joblib import Parallel, cpu_count, delayed

from benchmarks.harness import Benchmark
from benchmarks.rivals.tree_curves import STEP, TreeSetting, curve_makers
from benchmarks.tuned_trees import Criterion, FoldResult, best_figures, fold_result
from benchmarks.untuned_rankers import difference_interval, joined
from rankwell import compare
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.metrics.significance import Comparison

LETOR = Criterion("letor4", "mean_ndcg", ("mean_ndcg", "map"))
WEB = Criterion("burges", "ndcg@10", ("ndcg@10",))
N_SEEDS = 4
SETTINGS = [TreeSetting(leaves, rate, 0.5, 300) for leaves, rate in product((7, 15, 31), (0.05, 0.1))]
QUICK_SETTINGS = [TreeSetting(4, 0.1, 0.5, 2 * STEP)]
# Forms of one library, among which validation chooses: three each, so that all have equally many tries.
FAMILIES = {
    "LambdaMART": ("LambdaMART lambdarank", "LambdaMART xendcg", "LambdaMART symmetric xendcg"),
    "LightGBM": ("LightGBM lambdarank", "LightGBM rank_xendcg", "LightGBM extra-trees rank_xendcg"),
    "XGBoost": ("XGBoost rank:ndcg", "XGBoost rank:pairwise", "XGBoost depthwise rank:pairwise"),
    "CatBoost": ("CatBoost YetiRank", "CatBoost QuerySoftMax", "CatBoost plain YetiRank"),
}
OURS, RIVAL = "LambdaMART", "LightGBM"


@dataclass(frozen=True)
class Study:
    """A collection in folds, and how it is judged.

    families : the libraries that are tried on it; targets : by metric what LambdaMART must reach, one model (the mean
    over seeds) and the mean of the models; without them LightGBM's figures
    """

    name: str
    folds: list[FoldData]
    criterion: Criterion
    families: tuple[str, ...] = tuple(FAMILIES)
    targets: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def measure_study(bench: Benchmark, study: Study) -> None:
    settings, n_seeds = (QUICK_SETTINGS, 2) if bench.quick else (SETTINGS, N_SEEDS)
    makers = curve_makers()
    families = {name: FAMILIES[name] for name in study.families if all(form in makers for form in FAMILIES[name])}
    forms = [form for of_family in families.values() for form in of_family]
    # Nothing is timed, and every library uses one thread.
    with Parallel(n_jobs=1 if bench.quick else cpu_count()) as work:
        splits = choosing_splits(study.folds)
        tried = work(
            delayed(best_figures)(split, makers[form], settings, study.criterion)
            for form in forms
            for split in splits.values()
        )
        figures = {
            form: choosing_figures(len(study.folds), dict(zip(splits, tried[i * len(splits) :], strict=False)))
            for i, form in enumerate(forms)
        }
        best = {form: figures[form].argmax(axis=1) for form in forms}
        tested = iter(
            work(
                delayed(fold_result)(fold, makers[form], settings[best[form][i]], n_seeds, study.criterion)
                for form in forms
                for i, fold in enumerate(study.folds)
            )
        )
        by_form = {form: [next(tested) for _ in study.folds] for form in forms}
    chosen = {
        family: [by_form[max(own, key=lambda form: figures[form][i].max())][i] for i in range(len(study.folds))]
        for family, own in families.items()
    }
    for family, results in chosen.items():
        bench.check(
            f"{study.name}, {family}: a finite score for every test document and seed",
            all(
                np.isfinite(one.seeds).all() and one.seeds.shape == (n_seeds, fold.test.n_docs)
                for one, fold in zip(results, study.folds, strict=True)
            ),
        )
    record_rows(bench, study, {**chosen, **by_form}, n_seeds)


def choosing_splits(folds: list[FoldData]) -> dict[tuple[int, int], FoldData]:
    """By two parts, what is trained on all others: of folds, whose tests are the parts; or the only fold, as it is."""
    if len(folds) == 1:
        return {(1, 0): folds[0]}
    parts = [fold.test for fold in folds]
    return {
        (one, other): FoldData(
            f"without {one} and {other}",
            joined([part for number, part in enumerate(parts) if number not in (one, other)]),
            parts[one],
            parts[other],
        )
        for one, other in combinations(range(len(parts)), 2)
    }


def choosing_figures(n_folds: int, tried: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray:
    """Of each fold and setting, the mean figure of the parts that are not tested: float64 (n_folds, n_settings).

    tried : by two parts, the figures of each, with what is trained on all others: neither has the test part
    """
    return np.array(
        [
            np.mean([figures[:, 1 - pair.index(fold)] for pair, figures in tried.items() if fold in pair], axis=0)
            for fold in range(n_folds)
        ]
    )


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
    """Two rows for every library, form and metric: of one model, and of the mean of the models."""
    for metric in study.criterion.metrics:
        figures = {name: mean_figures(study, of_folds, metric, n_seeds) for name, of_folds in results.items()}
        rival = figures.get(RIVAL)
        beside = None if rival is None else compare_models(study, results[OURS], results[RIVAL], metric)
        least = study.targets.get(metric) or (None if rival is None else (rival.one, rival.mean))
        for name, own in figures.items():
            is_ours = name == OURS
            targets = least if is_ours and least is not None and not bench.quick else (None, None)
            settings = "; ".join(one.setting for one in results[name])
            is_compared = is_ours and beside is not None
            kinds = (
                (
                    f"one model, mean of {n_seeds} seeds",
                    (own.one, rival and rival.one),
                    f"seeds from {own.seeds.min():.4f} to {own.seeds.max():.4f}; {settings}",
                    None,
                ),
                (
                    f"mean of {n_seeds} models",
                    (own.mean, rival and rival.mean),
                    _significance(beside) if is_compared else "",
                    difference_interval(beside) if is_compared else None,
                ),
            )
            for (kind, (value, of_rival), note, interval), target in zip(kinds, targets, strict=True):
                bench.record(
                    f"{study.name}, {name}, {kind}, test {metric} ({study.criterion.convention})",
                    value=value,
                    unit="",
                    better="higher",
                    target=target,
                    rival=RIVAL if is_ours else None,
                    rival_value=of_rival if is_ours else None,
                    note=note,
                    interval=interval,
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
