"""A plan: predicted time and memory for one process and for several workers, where more stop to help, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rankwell.planning.memory_model import worker_bytes
from rankwell.planning.round_model import Network, RoundModel, RoundTime, TrainingSizes, break_even


@dataclass(frozen=True)
class PlannedRun:
    """One line of a plan.

    device : the kind of machine; round : the parts of a round; seconds : of the whole run, reading not included
    memory : bytes of each worker, in memory and with a limit of memory
    """

    device: str
    round: RoundTime
    seconds: float
    memory: float
    memory_on_disk: float | None


@dataclass(frozen=True)
class TrainingPlan:
    """What a training would take.

    runs : by device and number of workers
    break_even : the least number of workers that is quicker than one, or None; best : the quickest number
    """

    sizes: TrainingSizes
    n_rounds: int
    runs: tuple[PlannedRun, ...]
    break_even: int | None
    best: int
    model: RoundModel
    network: Network

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "documents": self.sizes.n_docs,
            "features": self.sizes.n_features,
            "queries": self.sizes.n_queries,
            "pairs": self.sizes.n_pairs,
            "rounds": self.n_rounds,
            "share_searched": self.model.share,
            "bandwidth": self.network.bandwidth,
            "latency": self.network.latency,
            "coefficients": {str(threads): vars(one) for threads, one in self.model.coefficients.items()},
            "break_even_workers": self.break_even,
            "best_workers": self.best,
            "runs": [
                {
                    "device": run.device,
                    "workers": run.round.n_workers,
                    "division": run.round.division,
                    "seconds_a_round": run.round.total,
                    "parts": dict(run.round.parts),
                    "limit": run.round.limit,
                    "seconds": run.seconds,
                    "bytes_a_worker": run.memory,
                    "bytes_a_worker_on_disk": run.memory_on_disk,
                }
                for run in self.runs
            ],
        }


def make_plan(
    models: Sequence[RoundModel],
    sizes: TrainingSizes,
    workers: Sequence[int],
    network: Network,
    n_rounds: int,
    *,
    threads: int | None = None,
) -> TrainingPlan:
    """Predict every number of workers on every kind of machine; the first kind is the one that break-even is for."""
    runs = []
    for model in models:
        for n_workers in workers:
            predicted = model.best_division(sizes, n_workers, network, threads=threads)
            once = model.per_value_once * sizes.n_values / n_workers
            memory = worker_bytes(sizes, n_workers)
            is_cpu = model.name == "cpu"
            runs.append(
                PlannedRun(
                    model.name,
                    predicted,
                    once + n_rounds * predicted.total,
                    memory["memory" if is_cpu else "cuda"],
                    memory["disk"] if is_cpu else None,
                )
            )
    even, best = break_even(models[0], sizes, network, threads=threads)
    return TrainingPlan(sizes, n_rounds, tuple(runs), even, best, models[0], network)
