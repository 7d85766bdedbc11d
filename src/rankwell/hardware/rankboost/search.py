"""The accelerator at work: bins and π in, the weak ranker of a round out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator, potential_layout, result_layout
from rankwell.hardware.rankboost.configuration import GROUP, RankBoostConfiguration
from rankwell.hardware.simulation.simulation import Beats, ProtocolError, Simulation, simulate

# A round that takes more than so many times what it should is stuck.
_PATIENCE = 64


@dataclass(frozen=True)
class Choice:
    """The weak ranker of a round.

    feature, bin : int, −1 if none helps
    r : int, of the weak ranker, in units of 2^−30
    best : int, the largest |r|
    cycles : int, simulated, with those of a repetition
    repeated : bool, whether there were too many records, and the round was done twice
    """

    feature: int
    bin: int
    r: int
    best: int
    cycles: int
    repeated: bool


class SimulatedSearch:
    """The search for weak rankers by a simulated accelerator.

    Parameters
    ----------
    bins : uint8 (n_groups, n_docs, 16)
        The layout "interleaved16" of `Binner`.
    n_features : int
    configuration : RankBoostConfiguration
    simulator : str, optional
        See `simulate`.
    simulation : Simulation, optional
        An accelerator of this configuration that is already there.

    Attributes
    ----------
    n_repeated : int
        Rounds that were done twice.
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_features: int,
        configuration: RankBoostConfiguration,
        *,
        simulator: str | None = None,
        simulation: Simulation | None = None,
    ) -> None:
        self.configuration = configuration
        self.n_docs, self.passes = bins.shape[1], configuration.passes(n_features)
        self.simulation = simulate(RankBoostAccelerator(configuration), simulator) if simulation is None else simulation
        self.n_repeated = 0
        self._words = memory_words(bins, self.passes, configuration)
        self._most_cycles = _PATIENCE * (self.passes * (self.n_docs + 256 * GROUP) + 10_000)
        self.simulation.set("passes", self.passes)

    def find(self, pi: np.ndarray, margin: int, *, stalls: np.ndarray | None = None, check: bool = False) -> Choice:
        """The weak ranker for π, int32 (n_docs,), in units of 2^−30; `stalls` and `check` as in `Simulation.run`."""
        inputs = {**self._words, "potentials": Beats(potential_rows(pi, self.configuration), self.passes * self.n_docs)}
        self.simulation.set("margin", margin)
        cycles, repeated = 0, False
        floor = 0
        while True:
            self.simulation.set("floor", floor)
            spent, outputs = self.simulation.run(
                inputs, {"result": 1}, stalls=stalls, most_cycles=self._most_cycles, check=check
            )
            cycles += spent
            result = unpacked(outputs["result"][0], self.configuration)
            if result["unbalanced"]:
                raise ProtocolError("the π of a round must sum to 0")
            found = result["best"] > margin  # the rule: otherwise no weak ranker helps
            if repeated or not (found and result["overflow"]):
                break
            floor, repeated = result["best"] - margin - 1, True
        self.n_repeated += repeated
        feature, threshold = (result["feature"], result["bin"]) if found else (-1, -1)
        r = -result["size"] if result["negative"] else result["size"]
        return Choice(feature, threshold, r if found else 0, result["best"], cycles, repeated)


def memory_words(bins: np.ndarray, passes: int, configuration: RankBoostConfiguration) -> dict[str, Beats]:
    """What each memory channel holds, in the order in which it is read."""
    lanes, arrays, channels = configuration.lanes, configuration.arrays, configuration.channels
    n_groups, n_docs, _ = bins.shape
    if lanes < GROUP:
        split = bins.reshape(n_groups, n_docs, GROUP // lanes, lanes).transpose(0, 2, 1, 3)
        bins = split.reshape(-1, n_docs, lanes)
    lacking = passes * arrays - len(bins)
    if lacking > 0:
        bins = np.concatenate([bins, np.zeros((lacking, n_docs, lanes), dtype=np.uint8)])
    words = {}
    part = lanes // channels
    for array in range(arrays):
        rows = np.ascontiguousarray(bins[array : passes * arrays : arrays]).reshape(-1, lanes)
        for channel in range(channels):
            words[f"words_{array * channels + channel}"] = Beats(rows[:, channel * part : (channel + 1) * part])
    return words


def potential_rows(pi: np.ndarray, configuration: RankBoostConfiguration) -> np.ndarray:
    """π as payloads: `last` is the bit after π's."""
    bits = configuration.pi_bits
    words = pi.astype(np.int64).view(np.uint64) & np.uint64(2**bits - 1)
    last = np.zeros(len(pi), dtype=np.uint64)
    last[-1:] = 1
    n_bytes = -(-potential_layout(configuration).size // 8)
    rows = np.zeros((len(pi), 16), dtype=np.uint8)
    rows[:, :8] = (words | last << np.uint64(bits) if bits < 64 else words).view(np.uint8).reshape(-1, 8)
    if bits == 64:
        rows[:, 8] = last
    return rows[:, :n_bytes]


def unpacked(row: np.ndarray, configuration: RankBoostConfiguration) -> dict[str, int]:
    """The fields of a result."""
    from amaranth.hdl import Shape

    word, values = int.from_bytes(row.tobytes(), "little"), {}
    for name, field in result_layout(configuration):
        shape = Shape.cast(field.shape)
        value = word >> field.offset & (1 << shape.width) - 1
        values[str(name)] = value - (1 << shape.width) if shape.signed and value >> shape.width - 1 else value
    return values
