"""The contract of vector products: which devices compute them, and how many documents at a time."""

from __future__ import annotations

from typing import Any, Protocol

from rankwell.kernels.device import Implementation, Refusal, Subject, at_most
from rankwell.kernels.device_report import DeviceReport

MOST_CUDA_CANDIDATES = 2**24


class ProductCounts(Protocol):
    """The sizes that determine whether a device can compute."""

    @property
    def n_candidates(self) -> int: ...


def _large_batches(problem: ProductCounts, report: DeviceReport, **_: Any) -> Refusal | None:
    return at_most(problem.n_candidates, MOST_CUDA_CANDIDATES, "candidates at a time")


VECTOR_PRODUCTS = Subject(
    "multiply vectors",
    {
        "cpu": Implementation("rankwell.kernels.vectors.cpu.products:vector_products", options=("n_jobs",)),
        "cuda": Implementation(
            "rankwell.kernels.vectors.cuda.launches:vector_products", capability=75, limits=_large_batches
        ),
    },
)
