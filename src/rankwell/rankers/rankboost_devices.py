"""Which kernels run a RankBoost training: by device and by weak learner.

| weak learner | of Table I | runs on | search per round |
| ------------ | ---------- | ------- | -------------- |
| `m3.int`     | document-wise, integral histograms | CPU, CUDA, OpenCL, simulated FPGA | O(documents · features) |
| `m3`         | document-wise, naive | CPU | O(documents · features · thresholds) |
| `m2.2dint`   | pair-wise, 2-D integral histograms | CPU | O(pairs · features) |
| `m2`         | pair-wise, naive | CPU | O(pairs · features · thresholds) |
"""

from __future__ import annotations

from typing import Any

from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.errors import Parameter, ParameterError
from rankwell.kernels.boosting.contract import (
    BIN_LAYOUTS,
    LEVEL_BOOSTING,
    PAIR_BOOSTING,
    Booster,
    BoostingSizes,
    LevelledQueries,
    PairList,
    ScoreWeights,
)
from rankwell.kernels.device import device_for, load
from rankwell.kernels.threads import kernel_threads
from rankwell.rankers.weak_rankers import WeakRankers

WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")


def boosting_device(
    wanted: str,
    weak_learner: str,
    source: LevelledQueries | PairList,
    n_features: int,
    *,
    by_rank: bool,
    streamed: bool = False,
) -> str:
    """The device to train on.

    by_rank : whether documents are weighed by their ranks; streamed : whether bins are on disk
    """
    if streamed and (isinstance(source, PairList) or weak_learner != "m3.int"):
        raise ParameterError(
            "data larger than memory is trained on by labels and with weak_learner='m3.int' only. Leave out ",
            Parameter("memory"),
            ".",
        )
    if isinstance(source, PairList) or weak_learner in ("m2", "m2.2dint"):
        return device_for(PAIR_BOOSTING, wanted, source)
    options = {"naive": weak_learner == "m3", "by_rank": by_rank, "streamed": streamed}
    return device_for(LEVEL_BOOSTING, wanted, _sizes(source, n_features), **options)


def make_booster(
    device: str,
    weak_learner: str,
    source: LevelledQueries | PairList,
    dataset: RankingDataset,
    binner: Binner,
    earlier: WeakRankers,
    n_halvings: int,
    n_jobs: int | None,
    *,
    by_rank: bool,
) -> Booster:
    """A run on `device` in the state after the rounds of `earlier`, at the learning rate 2^−n_halvings."""
    rows = None if isinstance(source, PairList) else source.rows
    bins = binner.transform(dataset, BIN_LAYOUTS[device], rows=rows, n_jobs=n_jobs)
    made_of = (bins, dataset.n_features, binner.n_bins)
    if isinstance(source, PairList) or weak_learner in ("m2", "m2.2dint"):
        return _pair_booster(device, weak_learner, source, dataset, made_of, earlier, n_halvings, n_jobs)
    weights = _replayed_weights(source, dataset, earlier, n_jobs, by_rank=by_rank)
    options = {"n_halvings": n_halvings, "naive": weak_learner == "m3", "by_rank": by_rank, "n_jobs": n_jobs}
    options["streamed"] = dataset.is_on_disk
    sizes = _sizes(source, dataset.n_features)
    booster: Booster = load(LEVEL_BOOSTING, device, sizes, *made_of, source, weights, **options)
    return booster


def _pair_booster(
    device: str,
    weak_learner: str,
    source: LevelledQueries | PairList,
    dataset: RankingDataset,
    made_of: tuple[Any, int, int],
    earlier: WeakRankers,
    n_halvings: int,
    n_jobs: int | None,
) -> Booster:
    from rankwell.kernels.boosting.cpu.pairs import list_pairs

    pairs = source if isinstance(source, PairList) else list_pairs(source)
    options = {"n_halvings": n_halvings, "n_jobs": n_jobs}
    booster = load(PAIR_BOOSTING, device, pairs, *made_of, pairs, weak_learner, **options)
    with kernel_threads(n_jobs):
        for number in range(len(earlier)):
            above = earlier.above_threshold(dataset, number)
            above = above if isinstance(source, PairList) else above[source.rows]
            booster.replay(above, int(earlier.r[number]), int(earlier.n_halvings[number]))
    made: Booster = booster
    return made


def _sizes(queries: LevelledQueries, n_features: int) -> BoostingSizes:
    return BoostingSizes(queries.n_docs, queries.n_segments, queries.n_queries, n_features)


def _replayed_weights(
    queries: LevelledQueries, dataset: RankingDataset, earlier: WeakRankers, n_jobs: int | None, *, by_rank: bool
) -> ScoreWeights:
    """e^{±H} after the rounds of `earlier`, bit for bit as in the run that made them."""
    from rankwell.kernels.boosting.cpu.documents import initial_weights, replay_round

    with kernel_threads(n_jobs):
        weights = initial_weights(queries, by_rank=by_rank)
        for number in range(len(earlier)):
            above = earlier.above_threshold(dataset, number)
            halvings = int(earlier.n_halvings[number])
            replay_round(queries, weights, above[queries.rows], int(earlier.r[number]), halvings)
    return weights
