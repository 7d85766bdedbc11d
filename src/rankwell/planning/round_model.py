"""How long a round of RankBoost takes, as a function of documents, features and workers, and what limits it.

The FAR paper's equations 7 to 13 for this implementation. With N_doc documents and N_f features

    t_total = t_ini + N_round · t_round                                                     (7, 11)
    t_round = a·N_doc + b·N_doc·N_f·s + c·N_f + d                                           (9; one process)
    t_round = (a·N_doc + b·N_doc·N_f·s) / W + c·N_f + d + B / bandwidth + M·latency + e     (12, 13; W workers)

a is π and the weights: proportional to documents, where the papers have αN_pair, because pairs are never listed. b is
the search over every feature, and s the share of it that bounds leave to be done. c is integrating histograms and
comparing features, d what every round costs, and e what leading it from Python adds. B is the bytes a worker sends
(docs/guide/cluster.md) and M the exchanges that one waits for. Workers that have *documents* each sum histograms,
B = 2·(W − 1)·1024·N_f / W, in two exchanges, and hand Z from one to the next, W − 1 exchanges, and back. Workers that
have *features* each (the paper's way) send rows of r and the winner's bits, B = (W − 1)·(1024 + N_doc / 8), in two
exchanges, and all of them do a·N_doc.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

HISTOGRAM_BYTES = 1024  # 256 sums of 32 bits
FEATURES_IN_GROUP = 16
DIVISIONS = ("documents", "features")
# Fewer values are searched by one thread, as in `kernels/boosting/cpu/booster.py`.
VALUES_FOR_A_TEAM = 2**18


@dataclass(frozen=True)
class TrainingSizes:
    """What a training is about. n_pairs is not in the model's time: it is for comparison with the papers."""

    n_docs: int
    n_features: int
    n_queries: int = 1
    n_pairs: int = 0

    @property
    def n_values(self) -> int:
        """Bins: features are stored by sixteen."""
        return self.n_docs * -(-self.n_features // FEATURES_IN_GROUP) * FEATURES_IN_GROUP


@dataclass(frozen=True)
class Coefficients:
    """Seconds: per document (a), per document and feature (b), per feature (c), and of every round (d)."""

    per_document: float
    per_value: float
    per_feature: float
    fixed: float


@dataclass(frozen=True)
class Network:
    """Bytes a second that a worker sends, seconds of one exchange without content, and seconds that a worker needs in
    every round to lead its stages from Python, between which it exchanges."""

    bandwidth: float
    latency: float
    per_round: float = 0.22e-3  # measured on one core of an AMD EPYC


@dataclass(frozen=True)
class RoundTime:
    """The parts of a round's time in seconds, by their names."""

    parts: Mapping[str, float]
    n_workers: int = 1
    division: str = "one process"

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max(self.parts, key=lambda name: self.parts[name])


@dataclass(frozen=True)
class RoundModel:
    """The model of one kind of machine.

    name : of the machine
    coefficients : by the number of threads of a process
    share : s, the share of the search that bounds leave to be done
    per_value_once : seconds per value before the first round: binning
    """

    name: str
    coefficients: Mapping[int, Coefficients]
    share: float = 1.0
    per_value_once: float = 0.0
    facts: Mapping[str, float] = field(default_factory=dict)

    def round_time(self, sizes: TrainingSizes, *, threads: int | None = None) -> RoundTime:
        """A round in one process."""
        return RoundTime(self._parts(sizes, self._of_threads(sizes, threads), sizes.n_docs, sizes.n_features))

    def distributed(
        self, sizes: TrainingSizes, n_workers: int, network: Network, *, division: str, threads: int | None = None
    ) -> RoundTime:
        """A round with the documents, or the features, divided among workers; each is a machine of this kind."""
        if n_workers == 1:
            return self.round_time(sizes, threads=threads)
        coefficients = self._of_threads(sizes, threads)
        if division == "documents":
            docs, features = math.ceil(sizes.n_docs / n_workers), sizes.n_features
            n_bytes = 2 * (n_workers - 1) * HISTOGRAM_BYTES * sizes.n_features / n_workers
            n_exchanges = 2 + n_workers
        else:
            docs, features = sizes.n_docs, math.ceil(sizes.n_features / n_workers)
            n_bytes = (n_workers - 1) * (HISTOGRAM_BYTES + sizes.n_docs / 8)
            n_exchanges = 2
        own = self._parts(sizes, coefficients, docs, features)
        own["bandwidth"] = n_bytes / network.bandwidth
        own["latency"] = n_exchanges * network.latency
        own["stages"] = network.per_round
        return RoundTime(own, n_workers, division)

    def best_division(
        self, sizes: TrainingSizes, n_workers: int, network: Network, *, threads: int | None = None
    ) -> RoundTime:
        """The quicker of both divisions."""
        both = [
            self.distributed(sizes, n_workers, network, division=division, threads=threads) for division in DIVISIONS
        ]
        return min(both, key=lambda one: one.total)

    def _parts(self, sizes: TrainingSizes, of: Coefficients, n_docs: int, n_features: int) -> dict[str, float]:
        own = TrainingSizes(n_docs, n_features)
        return {
            "π and weights": of.per_document * n_docs,
            "search": of.per_value * own.n_values * self.share,
            "features": of.per_feature * n_features,
            "fixed": of.fixed,
        }

    def _of_threads(self, sizes: TrainingSizes, threads: int | None) -> Coefficients:
        wanted = max(self.coefficients) if threads is None else threads
        if sizes.n_docs * sizes.n_features < VALUES_FOR_A_TEAM:
            wanted = min(self.coefficients)
        return self.coefficients[min(self.coefficients, key=lambda known: abs(known - wanted))]


def break_even(
    model: RoundModel, sizes: TrainingSizes, network: Network, *, threads: int | None = None, most: int = 4096
) -> tuple[int | None, int]:
    """The least number of workers that is quicker than one, None if no number is, and the number that is quickest."""
    alone = model.round_time(sizes, threads=threads).total
    counts = sorted({*range(2, 65), *(round(2 ** (power / 4)) for power in range(24, 49))} - {1})
    times = {n: model.best_division(sizes, n, network, threads=threads).total for n in counts if n <= most}
    quicker = [n for n, seconds in times.items() if seconds < alone]
    best = min(times, key=lambda n: times[n])
    return (quicker[0] if quicker else None), (best if times[best] < alone else 1)
