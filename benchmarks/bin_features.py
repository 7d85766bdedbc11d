"""How fast are features binned to one byte each, and with how much memory?

100 million values of a synthetic collection with 136 features, as in MSLR-WEB10K: by equal width (equation 3 of the FAR
paper) and by quantile, into each layout; and memory at the FAR paper's own size. The tree libraries bin by quantile as
the first step of training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, measure
from benchmarks.rivals import lightgbm_binning, sklearn_binning, xgboost_binning
from rankwell import Binner, RankingDataset, make_ranking
from rankwell.data.binning import LAYOUTS, STRATEGIES
from rankwell.kernels.binning import reference as reference
from rankwell.kernels.threads import available_cores

TARGET_S = 3.0
MOST_MEMORY = 1.5  # times the bins themselves, at the FAR paper's size

_held: dict[str, Any] = {}  # what `hold_far` made, for `bin_far` in the same child process


def run(bench: Benchmark) -> None:
    n_docs = 5_000 if bench.quick else 735_294  # times 136 is 100 million
    dataset = make_ranking(n_docs=n_docs, n_queries=n_docs // 120, n_features=136)
    record_compilation(bench, dataset.subset([0, 1]))
    for strategy in STRATEGIES:
        check_bins(bench, dataset, strategy)
    rivals = {"width": time_width_rival(bench, dataset), "quantile": time_quantile_rivals(bench, dataset)}
    for strategy in STRATEGIES:
        time_strategy(bench, dataset, strategy, rivals[strategy])
    record_memory(bench)


def record_compilation(bench: Benchmark, small: RankingDataset) -> None:
    """The cost of the first use: compiling every kernel, or loading what an earlier run compiled."""

    def use_all() -> None:
        for strategy in STRATEGIES:
            for layout in LAYOUTS:
                Binner(strategy=strategy).fit_transform(small, layout)

    timing = bench.time("first use of all kernels", use_all, repeat=1)
    bench.record("first use of all kernels", value=timing.first_s, unit="s", note="compiled, or loaded if cached")


def check_bins(bench: Benchmark, dataset: RankingDataset, strategy: str) -> None:
    """The bins of some rows against the reference, bit for bit, and the layouts against each other."""
    binner = Binner(strategy=strategy).fit(dataset)
    rows = binner.transform(dataset)
    chosen = np.random.default_rng(0).choice(dataset.n_docs, 20 if bench.quick else 200, replace=False)
    right = all(
        np.array_equal(rows[chosen, feature], reference.bins_of_values(dataset.features[chosen, feature], thresholds))
        for feature, thresholds in enumerate(binner.thresholds)
    )
    bench.check(f"{strategy}: bins are the reference's", right)
    by_feature = binner.transform(dataset, "features")[:, : dataset.n_docs]
    bench.check(f"{strategy}: feature-major holds the same", np.array_equal(by_feature.T, rows))
    interleaved = binner.transform(dataset, "interleaved16").transpose(1, 0, 2).reshape(dataset.n_docs, -1)
    bench.check(f"{strategy}: interleaved holds the same", np.array_equal(interleaved[:, : dataset.n_features], rows))
    one_thread = Binner(strategy=strategy).fit_transform(dataset, n_jobs=1)
    bench.check(f"{strategy}: one thread gives the same", np.array_equal(one_thread, rows))


def time_strategy(bench: Benchmark, dataset: RankingDataset, strategy: str, rivals: dict[str, float | None]) -> None:
    """Fit, transform into each layout, and both together against the target."""
    binner = Binner(strategy=strategy)
    fit = bench.time(f"{strategy}: fit", lambda: binner.fit(dataset))
    bench.record(f"{strategy}: fit", value=fit.minimum, unit="s")
    for layout in LAYOUTS:
        timing = bench.time(f"{strategy}: transform, {layout}", lambda layout=layout: binner.transform(dataset, layout))
        speed = dataset.features.size / timing.minimum / 1e9
        note = f"{speed:.2f} billion values per second"
        bench.record(f"{strategy}: transform, {layout}", value=timing.minimum, unit="s", note=note)
    both = bench.time(f"{strategy}: fit and transform", lambda: Binner(strategy=strategy).fit_transform(dataset))
    for rival, rival_value in rivals.items():
        bench.record(
            f"{strategy}: fit and transform",
            value=both.minimum,
            unit="s",
            target=None if bench.quick else TARGET_S,
            rival=rival,
            rival_value=rival_value,
            note=f"{dataset.features.size / 1e6:.0f} million values, {available_cores()} threads",
        )


def time_width_rival(bench: Benchmark, dataset: RankingDataset) -> dict[str, float | None]:
    timing = bench.time(
        f"{sklearn_binning.WIDTH_NAME}: fit and transform",
        lambda: sklearn_binning.bin_by_width(dataset.features),
        repeat=1,
        warmup=0,
    )
    return {sklearn_binning.WIDTH_NAME: timing.minimum}


def time_quantile_rivals(bench: Benchmark, dataset: RankingDataset) -> dict[str, float | None]:
    """Seconds of each rival, None if it is not installed."""
    seconds = {sklearn_binning.QUANTILE_NAME: time_quantile_sklearn(bench, dataset)}
    for rival in (lightgbm_binning, xgboost_binning):
        seconds[rival.NAME] = None
        if rival.IS_INSTALLED:
            timing = bench.time(
                f"{rival.NAME}: fit and transform",
                lambda rival=rival: rival.bin_features(dataset.features, available_cores()),
                repeat=3,
            )
            seconds[rival.NAME] = timing.minimum
    return seconds


def time_quantile_sklearn(bench: Benchmark, dataset: RankingDataset) -> float | None:
    wide = dataset.features.astype(np.float64)
    return bench.time(
        f"{sklearn_binning.QUANTILE_NAME}: fit and transform",
        lambda: sklearn_binning.bin_by_quantile(wide, available_cores()),
        repeat=3,
    ).minimum


def record_memory(bench: Benchmark) -> None:
    """The peak of fit and transform above the features, at the FAR paper's size."""
    scale = 0.01 if bench.quick else 1.0
    for strategy in STRATEGIES:
        for layout in LAYOUTS[:1] if bench.quick else LAYOUTS:
            peak = measure.peak_memory(
                "benchmarks.bin_features:bin_far",
                strategy,
                layout,
                prepare=("benchmarks.bin_features:hold_far", scale, strategy, layout),
            )
            bins = round(1_196_711 * scale) * 646
            bench.record(
                f"{strategy}, {layout}: peak memory at `far`",
                value=peak / bins,
                unit="x bins",
                target=None if bench.quick else MOST_MEMORY,
                note=f"{peak / 1e6:.0f} MB for {bins / 1e6:.0f} MB of bins",
            )


def hold_far(scale: float, strategy: str, layout: str) -> None:
    """Make the collection and compile, before memory is counted."""
    _held["far"] = make_ranking("far", scale=scale)
    Binner(strategy=strategy).fit_transform(_held["far"].subset([0, 1]), layout)


def bin_far(strategy: str, layout: str) -> np.ndarray:
    return Binner(strategy=strategy).fit_transform(_held["far"], layout)
