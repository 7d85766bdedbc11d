"""The contract of RankSVM's kernels: the squared hinge loss over pairs, on one device.

    L(w) = Σ_pairs weight·max(0, 1 − w·(x_a − x_b))²

over pairs (a, b) of one query where a has the higher label. A pair's weight is its query's weight times both documents'
weights, so that a document of weight 2 counts as the document twice. C and ½‖w‖² are parts of the objective
(`rankers.newton_iterations`), not of a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankwell.kernels.device import ON_DISK, Implementation, Refusal, Subject
from rankwell.kernels.disk_arrays import is_on_disk


@dataclass(frozen=True)
class PairData:
    """The data of a pair loss.

    features : float32 (n_docs, n_features) in C order, in memory or on disk, or CSR of float32; without NaN
    levels : int32 (n_docs,)
        The dense rank of each label in its query, 0 the lowest: pairs depend on labels only through it.
    n_levels : int32 (n_queries,)
    query_ptr : int64 (n_queries + 1,)
    query_weights : float64 (n_queries,), or None if all are 1
    document_weights : float64 (n_docs,), or None if all are 1
    column_scale : float64 (n_features,), or None
        Each feature is multiplied by its factor. So standardisation needs no copy of the features: pairs are
        differences, in which the mean cancels.
    """

    features: Any
    levels: np.ndarray
    n_levels: np.ndarray
    query_ptr: np.ndarray
    query_weights: np.ndarray | None = None
    document_weights: np.ndarray | None = None
    column_scale: np.ndarray | None = None


class PairLoss(Protocol):
    """The loss at a sequence of points. Vectors are float64 arrays of the device.

    `loss_and_gradient` evaluates a point; `accept` makes the last evaluated point the one at which `hessian_vector` and
    `curvature` are computed, so that a step can be tried and rejected.
    """

    method: str
    n_features: int

    def to_device(self, vector: np.ndarray) -> Any:
        """Copy a vector from the host to the device."""

    def to_host(self, vector: Any) -> np.ndarray:
        """Copy a vector from the device to the host, as float64."""

    def loss_and_gradient(self, w: Any) -> tuple[float, Any]:
        """L(w) and ∇L(w), in one pass over the features."""

    def accept(self) -> None:
        """Compute second derivatives at the last evaluated point."""

    def hessian_vector(self, v: Any) -> Any:
        """∇²L·v, in one pass over the features."""

    def curvature(self) -> Any:
        """An approximation of the diagonal of ∇²L, never negative: see `kernels.pair_loss.cpu.product.curvature`."""


def _on_disk(data: PairData, **_: Any) -> Refusal | None:
    return ON_DISK if is_on_disk(data.features) else None


PAIR_LOSS = Subject(
    "train RankSVM",
    {
        "cpu": Implementation("rankwell.kernels.pair_loss.cpu.loss:CpuPairLoss", options=("method", "n_jobs")),
        "cuda": Implementation(
            "rankwell.kernels.pair_loss.cuda.loss:CudaPairLoss",
            options=("method",),
            lacks=_on_disk,
            capability=75,
            memory="rankwell.kernels.pair_loss.cuda.layout:device_bytes",
        ),
    },
)
