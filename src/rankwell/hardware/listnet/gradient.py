"""Back propagation by the simulated accelerator: a query's integers in, its sums out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.hardware.listnet.back_propagation import BackPropagation
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import query_cycles, reset_cycles
from rankwell.hardware.packing import packed, unpacked_numbers
from rankwell.hardware.simulation.simulation import Beats, Simulation, simulate

# A query that takes more than so many times what it should is stuck.
_PATIENCE = 64


@dataclass(frozen=True)
class QueryIntegers:
    """What back propagation takes for a query, in the format's integers.

    weights : (hidden,), the output unit's; gradient, score : (n_docs,), u and the scores; hidden : (n_docs, hidden);
    features : (n_docs, features); batch : (n_docs,)
    """

    weights: np.ndarray
    gradient: np.ndarray
    score: np.ndarray
    hidden: np.ndarray
    features: np.ndarray
    batch: np.ndarray


@dataclass(frozen=True)
class QuerySums:
    """Σ_B sum·2^(batches − 1 − B) of every parameter, int64.

    weights : (features, hidden); biases, output_weights : (hidden,); output_bias : int; cycles : int, simulated
    """

    weights: np.ndarray
    biases: np.ndarray
    output_weights: np.ndarray
    output_bias: int
    cycles: int

    @property
    def parameters(self) -> np.ndarray:
        """All of them in the order of the kernels' sums: a hidden unit's weights beside each other."""
        return np.concatenate([self.weights.T.ravel(), self.biases, self.output_weights, [self.output_bias]])


class SimulatedBackPropagation:
    """Queries through a simulated accelerator, one after the other.

    Parameters
    ----------
    configuration : ListNetConfiguration
    simulator : str, optional
        See `simulate`.
    """

    def __init__(self, configuration: ListNetConfiguration, *, simulator: str | None = None) -> None:
        self.configuration = configuration
        self.simulation: Simulation = simulate(BackPropagation(configuration), simulator)

    def sums(self, query: QueryIntegers, *, stalls: np.ndarray | None = None, check: bool = False) -> QuerySums:
        """The sums of a query of one document or more; `stalls` and `check` as in `Simulation.run`."""
        configuration = self.configuration
        n_features, hidden = configuration.features, configuration.hidden
        expected = query_cycles(configuration, len(query.gradient)) + reset_cycles(configuration)
        cycles, outputs = self.simulation.run(
            stream_beats(query, configuration),
            {"sums": n_features + 3},
            stalls=stalls,
            most_cycles=_PATIENCE * expected,
            check=check,
        )
        totals = unpacked_numbers(outputs["sums"], configuration.total_bits, hidden)
        return QuerySums(
            totals[:n_features], totals[n_features], totals[n_features + 1], int(totals[n_features + 2, 0]), cycles
        )


def stream_beats(query: QueryIntegers, configuration: ListNetConfiguration) -> dict[str, Beats]:
    """The beats of a query, by stream."""
    bits, n_docs = configuration.bits, len(query.gradient)
    last = np.zeros(n_docs, dtype=np.int64)
    last[-1] = 1
    padded = np.zeros((n_docs, configuration.feature_beats * configuration.lanes), dtype=np.int64)
    padded[:, : configuration.features] = query.features
    documents = [(query.gradient, bits), (query.score, bits), (query.hidden, bits)]
    return {
        "weights": Beats(packed([(query.weights[None, :], bits)])),
        "documents": Beats(packed([*documents, (query.batch, configuration.batch_bits), (last, 1)])),
        "features": Beats(packed([(padded.reshape(-1, configuration.lanes), bits)])),
    }
