"""The input and output of a RankBoost backend.

Vocabulary. A *segment* is one label level of one query. Backends get only the documents of queries that have pairs,
query by query and sorted by label within each, so that the documents of a segment are neighbours. Bins,
weights and π are all in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rankwell.kernels.device import ON_DISK, Implementation, Refusal, Subject, at_most
from rankwell.kernels.device_report import DeviceReport


@dataclass(frozen=True)
class LevelledQueries:
    """Queries whose pairs follow from label levels, in the factorised form: no pair is ever stored.

    A pair of a document of segment l and one of a higher segment m of the same query weighs, at the start,
    query_weight · (Σ_{l < s ≤ m} step[s] if carry, else 1) · the product of the two documents' weights.

    rows : int64 (n_docs,)
        The row of the dataset that each document is.
    segment_ptr : int64 (n_segments + 1,)
        The documents of each segment.
    query_segments : int64 (n_queries + 1,)
        The segments of each query, from the lowest label up; two or more each.
    step : float64 (n_segments,)
        How much better a segment's label is than the one below; 1 if pairs count alike.
    carry : bool
        Whether steps add up over levels (weights by label difference).
    query_weight : float64 (n_queries,)
    document_weight : float64 (n_docs,)
        Positive.
    """

    rows: np.ndarray
    segment_ptr: np.ndarray
    query_segments: np.ndarray
    step: np.ndarray
    carry: bool
    query_weight: np.ndarray
    document_weight: np.ndarray

    @property
    def n_queries(self) -> int:
        return len(self.query_segments) - 1

    @property
    def n_segments(self) -> int:
        return len(self.segment_ptr) - 1

    @property
    def n_docs(self) -> int:
        return len(self.rows)


@dataclass
class ScoreWeights:
    """e^{±H} after some rounds: e^H = up · 2^up_exponent[segment] and e^−H = down · 2^−down_exponent[segment].

    up, down : float64 (n_docs,)
    up_exponent, down_exponent : int32 (n_segments,)
    n_rounds : int
        Rounds applied so far; it determines when exponents are chosen anew, so that a resumed run does so at the same
        rounds.
    rank_weight : float64 (n_docs,), optional
        The weights by rank that `up` and `down` contain (`cpu/rank_weights.py`); None if ranks do not count.
    """

    up: np.ndarray
    down: np.ndarray
    up_exponent: np.ndarray
    down_exponent: np.ndarray
    n_rounds: int
    rank_weight: np.ndarray | None = None


@dataclass(frozen=True)
class PairList:
    """An explicit list of pairs, grouped by query.

    n_docs : int
    lower, higher : int32 (n_pairs,)
        The documents of each pair; the higher one is preferred.
    weight : float64 (n_pairs,)
        Positive; they sum to 1.
    pair_ptr : int64 (n_queries + 1,)
        The pairs of each query that has any.
    """

    n_docs: int
    lower: np.ndarray
    higher: np.ndarray
    weight: np.ndarray
    pair_ptr: np.ndarray

    @property
    def n_pairs(self) -> int:
        return len(self.weight)


@dataclass(frozen=True)
class BoostedRounds:
    """The weak rankers of some rounds, h(d) = 1 where bin(d, feature) > bin.

    feature, bin : int32 (n_rounds,)
    r : int32 (n_rounds,)
        In units of 2^−30, limited to ±LARGEST_R.
    loss : float64 (n_rounds,)
        Σ D_1(x0, x1)·e^{H(x0) − H(x1)} after each round; it starts at 1.
    finished : bool
        Whether training has ended: no weak ranker helps, or the last one orders every pair correctly.
    figures : float64 (n_rounds,) by name
        What else the device tells of each round: those of `DEVICE_FIGURES`.
    """

    feature: np.ndarray
    bin: np.ndarray
    r: np.ndarray
    loss: np.ndarray
    finished: bool
    figures: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.feature)


class Booster(Protocol):
    """A training run on one device."""

    def boost(self, n_rounds: int) -> BoostedRounds:
        """Run the next `n_rounds` rounds; fewer are returned only if training has ended."""
        ...


class Companions(Protocol):
    """The processes that train on the same data together: each calls the same methods in the same order.

    Attributes
    ----------
    number, n_processes : int
        This process, from 0, and how many there are.
    n_docs, n_queries : int
        Of all processes.
    first_query, first_doc : int
        The numbers of this process's first query and document among all; processes have theirs in a row.
    """

    number: int
    n_processes: int
    n_docs: int
    n_queries: int
    first_query: int
    first_doc: int

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum of every process's integers, an array of the same shape."""
        ...

    def largest(self, value: int) -> int:
        """The largest of every process's integer."""
        ...

    def gather(self, values: np.ndarray) -> list[np.ndarray]:
        """Every process's array, in the order of the processes; lengths may differ."""
        ...

    def hand_on(self, values: np.ndarray) -> np.ndarray | None:
        """What the previous process passed to `pass_on`, None for the first; shaped like `values`."""
        ...

    def pass_on(self, values: np.ndarray) -> None:
        """Send an array to the next process, if there is one."""
        ...

    def announce(self, values: np.ndarray, sender: int) -> np.ndarray:
        """The array of one process, for all."""
        ...


@dataclass(frozen=True)
class BoostingSizes:
    """The sizes that determine whether a device can train over label levels."""

    n_docs: int
    n_segments: int
    n_queries: int
    n_features: int

    @property
    def column_bytes(self) -> int:
        """One feature's bins."""
        return -(-self.n_docs // 16) * 16

    @property
    def document_bytes(self) -> int:
        """Weights and π, sums by segment and query, and two histograms by feature."""
        return 24 * self.n_docs + 80 * self.n_segments + 24 * self.n_queries + 2052 * self.n_features


# The layout of `Binner` that each device reads.
BIN_LAYOUTS = {"cpu": "interleaved16", "cuda": "features", "opencl": "features", "fpga-sim": "interleaved16"}

# The accelerator numbers features with 16 bits.
_MOST_SIMULATED_FEATURES = 2**16


def _lacks_cpu_options(
    sizes: BoostingSizes, *, naive: bool = False, by_rank: bool = False, **options: Any
) -> Refusal | None:
    if options.get("streamed"):
        return ON_DISK
    if by_rank:
        return Refusal("pair_weight='ndcg'", "weights that depend on labels only, such as 'queries' or 'gain'")
    return Refusal("weak_learner='m3'", "weak_learner='m3.int'") if naive else None


def _many_documents(sizes: BoostingSizes, report: DeviceReport, **_: Any) -> Refusal | None:
    return at_most(sizes.n_docs, 2**31 - 1, "documents")


def _opencl_limits(sizes: BoostingSizes, report: DeviceReport, **_: Any) -> Refusal | None:
    """Bins are divided among arrays; weights by document and histograms by feature are not."""
    refusal = _many_documents(sizes, report)
    refusal = refusal or at_most(8 * sizes.n_docs, report.largest_buffer, "bytes of weights in one array")
    return refusal or at_most(1024 * sizes.n_features, report.largest_buffer, "bytes of histograms in one array")


def _lacks_naive_search(sizes: BoostingSizes, *, naive: bool = False, **options: Any) -> Refusal | None:
    if options.get("streamed"):
        return ON_DISK
    return Refusal("weak_learner='m3'", "weak_learner='m3.int'") if naive else None


def _simulated_limits(sizes: BoostingSizes, report: DeviceReport, **_: Any) -> Refusal | None:
    refusal = _many_documents(sizes, report)
    return refusal or at_most(sizes.n_features, _MOST_SIMULATED_FEATURES, "features")


LEVEL_BOOSTING = Subject(
    "train RankBoost over label levels",
    {
        "cpu": Implementation(
            "rankwell.kernels.boosting.cpu.booster:LevelBooster", options=("n_halvings", "naive", "n_jobs")
        ),
        "cuda": Implementation(
            "rankwell.kernels.boosting.cuda.booster:CudaBooster",
            options=("n_halvings",),
            lacks=_lacks_cpu_options,
            capability=75,
            limits=_many_documents,
            memory="rankwell.kernels.boosting.cuda.booster:device_bytes",
        ),
        "opencl": Implementation(
            "rankwell.kernels.boosting.opencl.booster:OpenClBooster",
            options=("n_halvings", "n_jobs"),
            lacks=_lacks_cpu_options,
            limits=_opencl_limits,
            memory="rankwell.kernels.boosting.opencl.booster:device_bytes",
        ),
        "fpga-sim": Implementation(
            "rankwell.hardware.rankboost.booster:SimulatedBooster",
            options=("n_halvings", "n_jobs"),
            lacks=_lacks_naive_search,
            limits=_simulated_limits,
        ),
    },
)

PAIR_BOOSTING = Subject(
    "train RankBoost pair by pair (a list of pairs, or weak_learner='m2' or 'm2.2dint')",
    {"cpu": Implementation("rankwell.kernels.boosting.cpu.pairs:PairBooster", options=("n_halvings", "n_jobs"))},
)
