"""Where a block of the CUDA trainer keeps its data: in shared memory if it fits, else in device memory.

The data read most often comes first: the scores and row sums of a list, then parameters with gradient and optimiser's
memory, then the features of a tile of documents. Lists and parameters that do not fit in shared memory are in a
workspace in device memory, one part per block; a tile's features are read where they are. So no list is too long and no
network too wide, and the results have the same bits in all cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.kernels.device_report import DeviceReport
from rankwell.kernels.lists.contract import CUDA_TEAM, NetworkProblem
from rankwell.kernels.lists.network_shape import NetworkShape

THREADS = 512
TILE = 64  # documents per step of the weights' gradient
# Static shared memory of the kernels, in addition to what is requested at launch.
STATIC_BYTES = 2048
# Per document of a list: e, r, E, rows.
_OF_DOCUMENT = 4
# Per parameter: itself and its gradient; in an epoch of one step per query also the optimiser's two numbers.
_OF_PARAMETER = 2
_OF_PARAMETER_OVER_STEPS = 4


@dataclass(frozen=True)
class Placement:
    """What is in shared memory, and the resulting sizes in float32 numbers.

    shared_floats : per block, without the part of the lists
    workspace_floats : per block
    """

    documents: bool
    parameters: bool
    tile: bool
    most_docs: int
    shared_floats: int
    workspace_floats: int

    @property
    def shared_bytes(self) -> int:
        """For a block that works on lists."""
        return 4 * (self.shared_floats + (_OF_DOCUMENT * self.most_docs if self.documents else 0))

    @property
    def scoring_bytes(self) -> int:
        """For a block that only scores documents."""
        return 4 * self.shared_floats

    def definitions(self) -> tuple[str, ...]:
        flags = {"DOCUMENTS": self.documents, "PARAMETERS": self.parameters, "TILE": self.tile}
        return tuple(f"SHARED_{name}={int(flag)}" for name, flag in flags.items())


def place(shape: NetworkShape, most_docs: int, shared_memory: int, *, one_step_per_query: bool) -> Placement:
    """most_docs : of a list; shared_memory : bytes that a block may use"""
    of_parameter = _OF_PARAMETER_OVER_STEPS if one_step_per_query else _OF_PARAMETER
    lists, parameters = _OF_DOCUMENT * most_docs, of_parameter * shape.n_parameters
    always = TILE * (2 * max(shape.n_hidden, 1) + 1)
    room = (shared_memory - STATIC_BYTES) // 4 - always
    has_documents = lists <= room
    room -= lists * has_documents
    has_parameters = parameters <= room
    room -= parameters * has_parameters
    has_tile = TILE * shape.n_features <= room
    return Placement(
        documents=has_documents,
        parameters=has_parameters,
        tile=has_tile,
        most_docs=most_docs,
        shared_floats=always + parameters * has_parameters + TILE * shape.n_features * has_tile,
        workspace_floats=lists * (not has_documents) + parameters * (not has_parameters),
    )


def most_docs(problem: NetworkProblem) -> int:
    """Documents of the longest list, at least 1."""
    return max(int(np.diff(problem.query_ptr).max(initial=0)), 1)


def device_bytes(problem: NetworkProblem, report: DeviceReport, **_: Any) -> int:
    """Device memory that `CudaNetworkTrainer` holds for training on float32 features."""
    shape, n_docs, n_queries = problem.shape, len(problem.labels), len(problem.query_ptr) - 1
    one_step_per_query = problem.batch_queries == 1
    workspace = place(
        shape, most_docs(problem), report.shared_memory, one_step_per_query=one_step_per_query
    ).workspace_floats
    # Per document: its features, five rows of truth, its score and hidden outputs.
    of_documents = 4 * n_docs * (shape.n_features + 6 + max(shape.n_hidden, 1))
    of_blocks = (
        max(CUDA_TEAM, problem.batch_queries) * workspace
        + max(2 * CUDA_TEAM, problem.batch_queries) * shape.n_parameters
    )
    return of_documents + 24 * n_queries + 4 * of_blocks + 16 * shape.n_parameters
