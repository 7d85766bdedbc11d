"""The contract of feature extraction: which devices turn hits into rows of features, and the most hits of each."""

from __future__ import annotations

from typing import Any, Protocol

from rankwell.kernels.device import Implementation, Refusal, Subject, at_most
from rankwell.kernels.device_report import DeviceReport

# A batch on a CUDA device: cells are counted in 32 bits.
MOST_CUDA_CANDIDATES, MOST_CUDA_HITS = 2**20, 2**32 - 1


class HitCounts(Protocol):
    """The sizes that determine whether a device can extract; `rankwell.features.hits.Hits` has them."""

    @property
    def n_candidates(self) -> int: ...

    @property
    def n_hits(self) -> int: ...


def _large_batches(hits: HitCounts, report: DeviceReport, **_: Any) -> Refusal | None:
    refusal = at_most(hits.n_candidates, MOST_CUDA_CANDIDATES, "candidates at a time")
    return refusal or at_most(hits.n_hits, MOST_CUDA_HITS, "hits at a time")


EXTRACTION = Subject(
    "extract features",
    {
        "cpu": Implementation("rankwell.features.extraction:extract_on_cpu", options=("n_jobs",)),
        "cuda": Implementation(
            "rankwell.features.cuda_extraction:extract_on_cuda", capability=75, limits=_large_batches
        ),
    },
)
