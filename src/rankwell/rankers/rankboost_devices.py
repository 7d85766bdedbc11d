"""Which kernels run a RankBoost training: by device and by weak learner.

| weak learner | of Table I | runs on | search a round |
| ------------ | ---------- | ------- | -------------- |
| `m3.int`     | document-wise, integral histograms | CPU, CUDA, OpenCL | O(documents · features) |
| `m3`         | document-wise, naive | CPU | O(documents · features · thresholds) |
| `m2.2dint`   | pair-wise, 2-D integral histograms | CPU | O(pairs · features) |
| `m2`         | pair-wise, naive | CPU | O(pairs · features · thresholds) |
"""

from __future__ import annotations

from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.boosting.contract import Booster, LevelledQueries, PairList, ScoreWeights
from rankwell.kernels.device import choose_device
from rankwell.kernels.threads import kernel_threads
from rankwell.rankers.weak_rankers import WeakRankers

WEAK_LEARNERS = ("m2", "m2.2dint", "m3", "m3.int")


def boosting_device(wanted: str, weak_learner: str, has_pair_list: bool) -> str:
    """The device to train on: only M3.int over label levels has kernels for GPUs."""
    if weak_learner == "m3.int" and not has_pair_list:
        return choose_device(wanted, ("cpu", "cuda", "opencl"))
    if wanted not in ("auto", "cpu"):
        what = "a list of pairs" if has_pair_list else f"weak_learner={weak_learner!r}"
        raise ParameterError(f"{what} is trained on the CPU alone: use device='cpu' or 'auto', not {wanted!r}.")
    return "cpu"


def make_booster(
    device: str,
    weak_learner: str,
    source: LevelledQueries | PairList,
    dataset: RankingDataset,
    binner: Binner,
    earlier: WeakRankers,
    n_jobs: int | None,
) -> Booster:
    """A run on `device` in the state after the rounds of `earlier`."""
    from rankwell.kernels.boosting.cpu.booster import LevelBooster
    from rankwell.kernels.boosting.cpu.pairs import PairBooster, list_pairs

    layout = "interleaved16" if device == "cpu" else "features"
    rows = None if isinstance(source, PairList) else source.rows
    bins = binner.transform(dataset, layout, rows=rows, n_jobs=n_jobs)
    sizes = (dataset.n_features, binner.n_bins)
    if isinstance(source, PairList) or weak_learner in ("m2", "m2.2dint"):
        pairs = source if isinstance(source, PairList) else list_pairs(source)
        booster = PairBooster(bins, *sizes, pairs, weak_learner, n_jobs=n_jobs)
        with kernel_threads(n_jobs):
            for number in range(len(earlier)):
                above = earlier.above_threshold(dataset, number)
                booster.replay(above if rows is None else above[rows], int(earlier.r[number]))
        return booster
    weights = _replayed_weights(source, dataset, earlier, n_jobs)
    if device == "cuda":
        from rankwell.kernels.boosting.cuda.booster import CudaBooster

        return CudaBooster(bins, *sizes, source, weights)
    if device == "opencl":
        from rankwell.kernels.boosting.opencl.booster import OpenClBooster

        return OpenClBooster(bins, *sizes, source, weights, n_jobs=n_jobs)
    return LevelBooster(bins, *sizes, source, weights, naive=weak_learner == "m3", n_jobs=n_jobs)


def _replayed_weights(
    queries: LevelledQueries, dataset: RankingDataset, earlier: WeakRankers, n_jobs: int | None
) -> ScoreWeights:
    """e^{±H} after the rounds of `earlier`, every bit as the run that made them had it."""
    from rankwell.kernels.boosting.cpu.documents import initial_weights, replay_round

    with kernel_threads(n_jobs):
        weights = initial_weights(queries)
        for number in range(len(earlier)):
            above = earlier.above_threshold(dataset, number)
            replay_round(queries, weights, above[queries.rows], int(earlier.r[number]))
    return weights
