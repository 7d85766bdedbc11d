"""The contract of model evaluation: which devices score rows by a ranker, and the largest ranker of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwell.kernels.device import Implementation, Refusal, Subject, at_most
from rankwell.kernels.device_report import DeviceReport

# CUDA's limit for the second dimension of a grid, which counts inputs.
MOST_CUDA_INPUTS = 65535


@dataclass(frozen=True)
class ScoringSizes:
    """The sizes that determine whether a device can score.

    most_inputs : the most inputs of one kind (except trees), or columns that trees test
    """

    most_inputs: int


def _wide_rankers(sizes: ScoringSizes, report: DeviceReport, **_: Any) -> Refusal | None:
    return at_most(sizes.most_inputs, MOST_CUDA_INPUTS, "inputs or tested columns of one kind")


SCORING = Subject(
    "evaluate the ranker",
    {
        "cpu": Implementation("rankwell.scoring.scorer:RankerScorer"),
        "cuda": Implementation("rankwell.scoring.cuda_scorer:CudaRankerScorer", capability=75, limits=_wide_rankers),
    },
)
