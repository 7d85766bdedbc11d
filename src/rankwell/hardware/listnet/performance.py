"""How long an epoch takes on a board, and what limits it.

    back   = max(cycles / clock, bytes / memory bandwidth)       `cycles.py`; features are read from the board's memory
    link   = queries · (bytes of documents and sums / bandwidth + 2 · latency)
    host   = seconds per document · documents                    forward pass, loss and step, in float32

Weights change after every query, so these follow each other: nothing of a query can begin before the last one's end.
With all three tasks on the board, the documents stay there; only sums and weights go over the link, for the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import epoch_cycles
from rankwell.hardware.listnet.forward_format import BITS
from rankwell.hardware.listnet.loss_gradient import LossConfiguration
from rankwell.hardware.listnet.tasks import task_cycles
from rankwell.hardware.rankboost.performance import Board


@dataclass(frozen=True)
class EpochPrediction:
    """Seconds of an epoch, term by term.

    cycles : of back propagation if memory keeps up
    compute, memory : what back propagation takes by the clock and by the memory; the longer counts
    needed_bandwidth : bytes a second at which memory would not limit
    """

    cycles: int
    compute: float
    memory: float
    link: float
    host: float
    needed_bandwidth: float
    limit: str

    @property
    def back_propagation(self) -> float:
        return max(self.compute, self.memory)

    @property
    def total(self) -> float:
        return self.back_propagation + self.link + self.host


def feature_bytes(configuration: ListNetConfiguration) -> float:
    """Of a document in the board's memory."""
    return configuration.feature_beats * configuration.lanes * configuration.bits / 8


def predict_all_tasks(
    configuration: ListNetConfiguration, loss: LossConfiguration, board: Board, query_sizes: np.ndarray
) -> EpochPrediction:
    """An epoch with forward pass, loss and back propagation on a board, one after the other for each query."""
    clock = board.megahertz * 1e6
    sizes = query_sizes[query_sizes > 1]
    n_docs = int(sizes.sum())
    cycles = sum(task_cycles(configuration, loss, query_sizes).values())
    forward_bytes = configuration.feature_beats * configuration.lanes * BITS / 8
    memory = n_docs * (feature_bytes(configuration) + forward_bytes) / board.memory
    numbers = (configuration.slots + 1) * configuration.hidden
    exchanged = len(sizes) * numbers * (configuration.total_bits + BITS) / 8
    link = exchanged / board.link + 2 * len(sizes) * board.link_latency
    terms = {"clock": cycles / clock, "memory bandwidth": memory, "link": link}
    needed = max(forward_bytes / configuration.feature_beats, feature_bytes(configuration) / configuration.steps)
    limit = max(terms, key=lambda name: terms[name])
    return EpochPrediction(cycles, cycles / clock, memory, link, 0.0, needed * clock, limit)


def predict_epoch(
    configuration: ListNetConfiguration, board: Board, query_sizes: np.ndarray, *, host_per_document: float = 0.0
) -> EpochPrediction:
    """An epoch with back propagation on a board; `host_per_document` in seconds."""
    from rankwell.hardware.listnet.delta_unit import document_layout

    clock = board.megahertz * 1e6
    sizes = query_sizes[query_sizes > 1]
    n_docs = int(sizes.sum())
    cycles = epoch_cycles(configuration, query_sizes)
    compute = cycles / clock
    memory = n_docs * feature_bytes(configuration) / board.memory
    document_bytes = document_layout(configuration).size / 8
    sums_bytes = (configuration.slots + 1) * configuration.hidden * configuration.total_bits / 8
    link = (n_docs * document_bytes + len(sizes) * sums_bytes) / board.link + 2 * len(sizes) * board.link_latency
    host = host_per_document * n_docs
    terms = {"clock": compute, "memory bandwidth": memory, "link": link, "host": host}
    return EpochPrediction(
        cycles=cycles,
        compute=compute,
        memory=memory,
        link=link,
        host=host,
        needed_bandwidth=feature_bytes(configuration) / configuration.steps * clock,
        limit=max(terms, key=lambda name: terms[name]),
    )
