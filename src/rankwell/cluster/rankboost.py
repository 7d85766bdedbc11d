"""RankBoost on a cluster: by documents or by features, the model of one machine with the same bins, byte for byte.

See `rankwell.kernels.boosting.cpu.shared_booster` for what workers exchange in a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.cluster_run import ClusterRun
from rankwell.cluster.companions import WorkerCompanions
from rankwell.cluster.division import BY_DOCUMENTS, choose_division
from rankwell.cluster.learner import Learner
from rankwell.cluster.worker_group import WorkerGroup
from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.boosting.contract import BIN_LAYOUTS, BoostedRounds, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.booster import LevelBooster
from rankwell.kernels.boosting.cpu.documents import initial_weights, replay_round
from rankwell.kernels.boosting.cpu.histograms import GROUP
from rankwell.kernels.boosting.cpu.shared_booster import DocumentsBooster, FeaturesBooster, SharedBooster
from rankwell.kernels.disk_arrays import give_back
from rankwell.rankers.base import TrainedModel, TrainingTask
from rankwell.rankers.pair_weights import BY_RANK, levelled_queries
from rankwell.rankers.rankboost import RankBoost, earlier_rounds, n_halvings_of
from rankwell.rankers.weak_rankers import WeakRankers


class RankBoostLearner(Learner):
    """A worker's bins and weights; of the features themselves nothing is kept."""

    def keep(self, dataset: RankingDataset, agreement: WorkersAgreement) -> None:
        ranker = self.ranker
        assert isinstance(ranker, RankBoost)
        self._queries = levelled_queries(dataset, ranker.pair_weight, agreement)
        self._binner = Binner(ranker.n_bins, ranker.binning, random_state=ranker.random_state)
        self._binner.fit(dataset, n_jobs=self.n_threads, agreement=agreement)
        layout = BIN_LAYOUTS["cpu"]
        self._bins = self._binner.transform(dataset, layout, rows=self._queries.rows, n_jobs=self.n_threads)
        self._companions = WorkerCompanions(self.exchange, self._queries.n_docs, self._queries.n_queries, agreement)
        self._first_weights = initial_weights(self._queries, by_rank=ranker.pair_weight == BY_RANK)
        earlier = WeakRankers.from_arrays(self.plan.arrays, self.n_features) if self.plan.arrays else WeakRankers.none()
        for number in range(len(earlier)):
            above = earlier.above_threshold(dataset, number)[self._queries.rows]
            replay_round(
                self._queries, self._first_weights, above, int(earlier.r[number]), int(earlier.n_halvings[number])
            )
        self._booster: LevelBooster | None = None

    def summary(self) -> Mapping[str, Any]:
        return {
            **super().summary(),
            "n_docs_in_pairs": self._queries.n_docs,
            # All workers have the same.
            "thresholds": self._binner.threshold_table if self.exchange.number == 0 else None,
        }

    def begin(self, division: str, feature: np.ndarray, bin: np.ndarray, r: np.ndarray, n_halvings: np.ndarray) -> None:
        """Be in the state after these rounds, which are not those of the model that training continues from."""
        weights = _copied(self._first_weights)
        for f, b, r_of_round, halvings in zip(
            feature.tolist(), bin.tolist(), r.tolist(), n_halvings.tolist(), strict=True
        ):
            above = self._bins[f // GROUP, :, f % GROUP] > b
            give_back(self._bins)
            replay_round(self._queries, weights, above, r_of_round, halvings)
        ranker = self.ranker
        assert isinstance(ranker, RankBoost)
        options: dict[str, Any] = {"n_halvings": n_halvings_of(ranker.learning_rate), "n_jobs": self.n_threads}
        if self.exchange.n_workers == 1:
            self._booster = LevelBooster(self._bins, self.n_features, ranker.n_bins, self._queries, weights, **options)
            return
        if division == BY_DOCUMENTS:
            self._booster = DocumentsBooster(
                self._companions, self._bins, self.n_features, ranker.n_bins, self._queries, weights, **options
            )
            return
        first, last = self._own_features()
        self._booster = FeaturesBooster(
            self._companions,
            first,
            self._columns_of_all(),
            last - first,
            ranker.n_bins,
            _queries_of_all(self._companions, self._queries),
            _weights_of_all(self._companions, weights),
            **options,
        )

    def boost(self, n_rounds: int) -> dict[str, Any]:
        """Run rounds, in step with all workers."""
        assert self._booster is not None
        rounds = self._booster.boost(n_rounds)
        return {
            "feature": rounds.feature,
            "bin": rounds.bin,
            "r": rounds.r,
            "loss": rounds.loss,
            "finished": rounds.finished,
        }

    def exchanged(self) -> dict[str, int]:
        """How much of what was exchanged since `begin`."""
        return dict(self._booster.exchanged) if isinstance(self._booster, SharedBooster) else {}

    def _own_features(self) -> tuple[int, int]:
        first, last = self._groups_of(self.exchange.number)
        return first * GROUP, min(last * GROUP, self.n_features)

    def _groups_of(self, worker: int) -> tuple[int, int]:
        n_groups, n_workers = len(self._bins), self.exchange.n_workers
        return n_groups * worker // n_workers, n_groups * (worker + 1) // n_workers

    def _columns_of_all(self) -> np.ndarray:
        """The bins of this worker's features, of the documents of all workers."""
        own = slice(*self._groups_of(self.exchange.number))
        others = [other for other in range(self.exchange.n_workers) if other != self.exchange.number]
        received = self.exchange.trade({other: self._bins[slice(*self._groups_of(other))] for other in others})
        pieces = {other: found.reshape(own.stop - own.start, -1, GROUP) for other, found in received.items()} | {
            self.exchange.number: self._bins[own]
        }
        return np.concatenate([pieces[worker] for worker in range(self.exchange.n_workers)], axis=1)


def _copied(weights: ScoreWeights) -> ScoreWeights:
    return ScoreWeights(
        weights.up.copy(),
        weights.down.copy(),
        weights.up_exponent.copy(),
        weights.down_exponent.copy(),
        weights.n_rounds,
        None if weights.rank_weight is None else weights.rank_weight.copy(),
    )


def _joined(companions: WorkerCompanions, values: np.ndarray) -> np.ndarray:
    return np.concatenate(companions.gather(values))


def _joined_places(companions: WorkerCompanions, places: np.ndarray) -> np.ndarray:
    """Borders 0, ..., n of each worker as borders of all, one after another."""
    gathered = companions.gather(places.astype(np.int64))
    ends = np.cumsum([0, *(found[-1] for found in gathered)])
    return np.concatenate([[0], *(found[1:] + end for found, end in zip(gathered, ends, strict=False))])


def _queries_of_all(companions: WorkerCompanions, own: LevelledQueries) -> LevelledQueries:
    return LevelledQueries(
        rows=np.arange(companions.n_docs),
        segment_ptr=_joined_places(companions, own.segment_ptr),
        query_segments=_joined_places(companions, own.query_segments),
        step=_joined(companions, own.step),
        carry=own.carry,
        query_weight=_joined(companions, own.query_weight),
        document_weight=_joined(companions, own.document_weight),
    )


def _weights_of_all(companions: WorkerCompanions, own: ScoreWeights) -> ScoreWeights:
    return ScoreWeights(
        up=_joined(companions, own.up),
        down=_joined(companions, own.down),
        up_exponent=_joined(companions, own.up_exponent),
        down_exponent=_joined(companions, own.down_exponent),
        n_rounds=own.n_rounds,
        rank_weight=None if own.rank_weight is None else _joined(companions, own.rank_weight),
    )


class ClusterBooster:
    """The workers as one `Booster`, in the state after the rounds of `done`.

    Parameters
    ----------
    group : WorkerGroup
    division : "documents" or "features"
    done : WeakRankers
        Of the run so far, without those of the model that training continues from.
    thresholds : float32 (n_features, 256)
    n_halvings : int
        Of the rounds to come.
    """

    def __init__(
        self, group: WorkerGroup, division: str, done: WeakRankers, thresholds: np.ndarray, n_halvings: int
    ) -> None:
        self._group, self._division, self._n_halvings = group, division, n_halvings
        bins = [_bin_of(thresholds[f], threshold) for f, threshold in zip(done.feature, done.threshold, strict=True)]
        self._rounds = [done.feature, np.array(bins, dtype=np.int32), done.r, done.n_halvings]
        group.report.division = division
        group.run(*self._restoration())
        group.restoration = self._restoration

    def _restoration(self) -> tuple[Any, ...]:
        return "begin", self._division, *self._rounds

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        results = self._group.run("boost", n_rounds)
        found = results[0]
        rounds = BoostedRounds(found["feature"], found["bin"], found["r"], found["loss"], found["finished"])
        _check_agreement(results)
        self._group.report.n_steps += len(rounds)
        halvings = np.full(len(rounds), self._n_halvings, dtype=np.int32)
        new = (rounds.feature, rounds.bin, rounds.r, halvings)
        self._rounds = [np.concatenate(both) for both in zip(self._rounds, new, strict=True)]
        return rounds

    def exchanged(self) -> list[dict[str, int]]:
        """Of each worker how much of what was exchanged, since the start or the last loss."""
        found: list[dict[str, int]] = self._group.run("exchanged")
        return found


def _check_agreement(results: Sequence[Mapping[str, Any]]) -> None:
    """All workers choose for themselves; different choices would be a fault in Rankwell."""
    for found in results[1:]:
        if not all(np.array_equal(found[name], results[0][name]) for name in ("feature", "bin", "r", "loss")):
            raise AssertionError("workers chose different weak rankers.")


def _bin_of(thresholds: np.ndarray, threshold: float) -> int:
    """The bin with this threshold: h = 1 where the bin is above it."""
    return int(np.flatnonzero(thresholds == threshold)[0])


def check_rankboost(ranker: RankBoost) -> None:
    """Refuse what workers cannot do."""
    if ranker.weak_learner != "m3.int":
        raise ParameterError(
            f"must be 'm3.int' on a cluster, got {ranker.weak_learner!r}: the others are for comparison.",
            parameter="weak_learner",
        )
    if ranker.device not in ("auto", "cpu"):
        raise ParameterError(f"must be 'cpu' or 'auto' on a cluster, got {ranker.device!r}.", parameter="device")


def train_rankboost(ranker: RankBoost, task: TrainingTask, run: ClusterRun) -> TrainedModel:
    """The driver's part: rounds by the workers, everything else as on one machine."""
    thresholds = run.summaries[0]["thresholds"]
    n_docs = sum(summary["n_docs_in_pairs"] for summary in run.summaries)
    division = choose_division(run.division, n_docs, len(thresholds), ranker.n_bins, run.group.n_workers)
    n_earlier = len(earlier_rounds(task))
    n_halvings = n_halvings_of(ranker.learning_rate)
    return ranker.train_rounds(
        task,
        lambda done: ClusterBooster(run.group, division, done.after(n_earlier), thresholds, n_halvings),
        thresholds,
        ranker._validation(task),
        run.checkpoints(ranker, task),
    )
