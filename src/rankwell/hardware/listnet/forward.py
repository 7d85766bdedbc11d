"""The forward pass and the loss gradient by their simulated kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import forward_cycles, loss_cycles
from rankwell.hardware.listnet.forward_format import BITS, OUTPUT_POINT
from rankwell.hardware.listnet.forward_pass import ForwardPass
from rankwell.hardware.listnet.forward_reference import ListTruth
from rankwell.hardware.listnet.loss_gradient import LossConfiguration, LossGradient, score_layout
from rankwell.hardware.packing import packed, unpacked_fields
from rankwell.hardware.simulation.simulation import Beats, simulate

# A query that takes more than so many times what it should is stuck.
_PATIENCE = 64


@dataclass(frozen=True)
class NetworkIntegers:
    """A network in the forward pass's integers: weights (hidden, features), biases and output_weights (hidden,)."""

    weights: np.ndarray
    biases: np.ndarray
    output_weights: np.ndarray
    output_bias: int


class SimulatedForwardPass:
    """Queries through a simulated forward pass, one after the other; `simulator` as in `simulate`."""

    def __init__(self, configuration: ListNetConfiguration, *, simulator: str | None = None) -> None:
        self.configuration = configuration
        self.simulation = simulate(ForwardPass(configuration), simulator)

    def outputs(
        self, network: NetworkIntegers, features: np.ndarray, *, stalls: np.ndarray | None = None, check: bool = False
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Hidden outputs (n_docs, hidden), scores (n_docs,) and cycles; `stalls` and `check` as in `Simulation.run`."""
        configuration, n_docs = self.configuration, len(features)
        beats, lanes = configuration.feature_beats, configuration.lanes
        padded = np.zeros((n_docs, beats * lanes), dtype=np.int64)
        padded[:, : configuration.features] = features
        last = np.zeros(n_docs * beats, dtype=np.int64)
        last[-1] = 1
        bias_beat = np.zeros(configuration.hidden, dtype=np.int64)
        bias_beat[0] = network.output_bias
        weights = np.vstack([network.weights.T, network.biases, network.output_weights, bias_beat])
        cycles, taken = self.simulation.run(
            {
                "weights": Beats(packed([(weights, BITS)])),
                "features": Beats(packed([(padded.reshape(-1, lanes), BITS), (last, 1)])),
            },
            {"outputs": n_docs},
            stalls=stalls,
            most_cycles=_PATIENCE * forward_cycles(configuration, n_docs),
            check=check,
        )
        numbers = unpacked_fields(taken["outputs"], [OUTPUT_POINT] * (configuration.hidden + 1))
        return numbers[:, :-1], numbers[:, -1], cycles


class SimulatedLossGradient:
    """Lists through a simulated loss gradient, one after the other; `simulator` as in `simulate`."""

    def __init__(self, configuration: LossConfiguration, *, simulator: str | None = None) -> None:
        self.configuration = configuration
        self.simulation = simulate(LossGradient(configuration), simulator)

    def gradients(
        self, scores: np.ndarray, truth: ListTruth, *, stalls: np.ndarray | None = None, check: bool = False
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """u and batch of every document of a list of two or more, and cycles."""
        configuration, n_docs = self.configuration, len(scores)
        last = np.zeros(n_docs, dtype=np.int64)
        last[-1] = 1
        values = {
            "score": scores,
            "first": truth.first,
            "membership": truth.membership,
            "odds": truth.odds,
            "last": last,
        }
        layout = score_layout(configuration)
        cycles, taken = self.simulation.run(
            {"scores": Beats(packed([(values[name], field.width) for name, field in layout]))},
            {"gradients": n_docs},
            stalls=stalls,
            most_cycles=_PATIENCE * loss_cycles(configuration, n_docs),
            check=check,
        )
        numbers = unpacked_fields(taken["gradients"], [configuration.bits, configuration.batch_bits, 1])
        limit = 1 << configuration.bits - 1
        gradient = (numbers[:, 0] + limit) % (2 * limit) - limit
        return gradient, numbers[:, 1], cycles
