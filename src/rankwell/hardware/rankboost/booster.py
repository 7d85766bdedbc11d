"""RankBoost with the search of each round on a simulated accelerator; the host does the rest, as in FAR."""

from __future__ import annotations

import numpy as np

from rankwell.hardware.rankboost.configuration import GROUP, RankBoostConfiguration
from rankwell.hardware.rankboost.search import SimulatedSearch
from rankwell.kernels.boosting.contract import BoostedRounds, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.precision import LARGEST_R, tolerance
from rankwell.kernels.device_report import BOARD_SECONDS, CYCLES
from rankwell.kernels.threads import kernel_threads

# What the predicted seconds assume: the array of 16 PEs routes above this on an ECP5-85k (docs/algorithms/hardware.md).
MEGAHERTZ = 200.0


class SimulatedBooster:
    """A training run whose weak rankers a simulated accelerator finds.

    Parameters
    ----------
    bins : uint8 (n_groups, n_docs, 16)
        The layout "interleaved16" of `Binner`.
    n_features, n_bins : int
    queries : LevelledQueries
    weights : ScoreWeights
        Changed in place as rounds are done.
    n_halvings : int
        The learning rate is 2^−n_halvings.
    n_jobs : int or None
        Threads of the host.
    configuration : RankBoostConfiguration, optional
    simulator : str, optional
        See `rankwell.hardware.simulation.simulation`.
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_features: int,
        n_bins: int,
        queries: LevelledQueries,
        weights: ScoreWeights,
        *,
        n_halvings: int = 0,
        n_jobs: int | None = None,
        configuration: RankBoostConfiguration | None = None,
        simulator: str | None = None,
    ) -> None:
        self._bins, self._n_halvings, self._n_jobs = bins, n_halvings, n_jobs
        configuration = RankBoostConfiguration() if configuration is None else configuration
        self.search = SimulatedSearch(bins, n_features, configuration, simulator=simulator)
        with kernel_threads(n_jobs):
            self._documents = DocumentWeights(queries, weights)

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        rounds: list[tuple[int, int, int]] = []
        losses, cycles = [], []
        finished = False
        documents, margin = self._documents, tolerance(self._documents.queries.n_docs)
        with kernel_threads(self._n_jobs):
            while len(rounds) < n_rounds and not finished:
                choice = self.search.find(documents.potentials(), margin)
                if choice.feature < 0:
                    finished = True
                    break
                r = int(np.clip(choice.r, -LARGEST_R, LARGEST_R))
                column = self._bins[choice.feature // GROUP, :, choice.feature % GROUP]
                losses.append(documents.apply(column > choice.bin, r, self._n_halvings))
                rounds.append((choice.feature, choice.bin, r))
                cycles.append(choice.cycles)
                finished = abs(r) >= LARGEST_R
        feature, threshold, chosen = np.array(rounds, dtype=np.int32).reshape(-1, 3).T
        spent = np.array(cycles, dtype=np.float64)
        figures = {CYCLES: spent, BOARD_SECONDS: spent / (MEGAHERTZ * 1e6)}
        return BoostedRounds(feature, threshold, chosen, np.array(losses), finished, figures)
