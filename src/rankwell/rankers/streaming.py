"""Training on features on disk: which rankers can, and whether it fits into the memory that is allowed.

The features, their normalised copy, bins and what is derived from them are in temporary files (`kernels/disk_arrays`).
What is in memory is proportional to the documents: labels, weights, orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.kernels.disk_arrays import BLOCK_BYTES, GRAIN, resident_bytes
from rankwell.kernels.threads import kernel_threads

if TYPE_CHECKING:
    from rankwell.rankers.base import Ranker

# What a thread holds of a file at a time: a block, what the system maps around it, and the same of a second file.
_THREAD_BYTES = 4 * (BLOCK_BYTES + 2 * GRAIN)
# Kernels that are loaded, and what Python allocates in passing.
_FIXED_BYTES = 48 * 2**20
# Of each value of validation data, which is in memory: normalised, and its bin.
_VALIDATION_BYTES = 5


@dataclass(frozen=True)
class StreamedSizes:
    """The sizes that training on disk needs memory for."""

    n_docs: int
    n_queries: int
    n_features: int
    n_threads: int


def check_streaming(ranker: Ranker, train: RankingDataset, eval_sets: Sequence[RankingDataset]) -> None:
    """Refuse a ranker that cannot train on features on disk, or a limit of memory that is too low for it."""
    if any(part.is_on_disk for part in eval_sets):
        raise DataError(
            "must be in memory: it is looked at after every step. Read it without ",
            Parameter("memory"),
            ".",
            parameter="eval_set",
        )
    if not train.is_on_disk:
        return
    if not ranker.can_stream:
        raise ParameterError(
            f"{ranker.name} cannot train on data that is larger than memory: rankboost, ranksvm and lambdamart can. "
            "Read the data without ",
            Parameter("memory"),
            ".",
        )
    if train.memory_limit is None:
        return
    present = resident_bytes()
    needed = present + _streaming_bytes(ranker, train)
    needed += sum(_VALIDATION_BYTES * part.n_docs * part.n_features for part in eval_sets)
    if needed > train.memory_limit:
        raise DataError(
            f"is {train.memory_limit / 2**20:.0f} MiB, and {ranker.name} needs about {needed / 2**20:.0f} MiB to train "
            f"on {train.n_docs:,} documents of {train.n_features} features, although these are on disk: the process "
            f"has {present / 2**20:.0f} MiB already. Allow more, or use fewer documents.",
            parameter="memory",
        )


def _streaming_bytes(ranker: Ranker, train: RankingDataset) -> int:
    with kernel_threads(getattr(ranker, "n_jobs", None)) as n_threads:
        sizes = StreamedSizes(train.n_docs, train.n_queries, train.n_features, n_threads)
    return _FIXED_BYTES + n_threads * _THREAD_BYTES + ranker._streaming_bytes(sizes)
