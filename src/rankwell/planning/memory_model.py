"""How much memory training takes, in bytes for each worker."""

from __future__ import annotations

from collections.abc import Mapping

from rankwell.kernels.boosting.contract import BoostingSizes
from rankwell.planning.round_model import TrainingSizes
from rankwell.rankers.rankboost import RankBoost
from rankwell.rankers.streaming import StreamedSizes

# Python, its packages and compiled kernels.
PROCESS_BYTES = 300 * 2**20
# Codes of the search by bounds, relative to the bins; arrays by document.
_CODES, _BYTES_PER_DOCUMENT = 0.4, 110


def worker_bytes(sizes: TrainingSizes, n_workers: int = 1) -> Mapping[str, float]:
    """The memory of each of `n_workers`, by where the data is.

    "memory": features, their normalised copy and bins in memory; "disk": with a limit of memory, all of that on disk;
    "cuda": of the device.
    """
    docs = -(-sizes.n_docs // n_workers)
    values = docs * sizes.n_features
    streamed = StreamedSizes(docs, max(1, sizes.n_queries // n_workers), sizes.n_features, 2)
    on_device = BoostingSizes(docs, 5 * max(1, sizes.n_queries // n_workers), sizes.n_queries, sizes.n_features)
    return {
        "memory": PROCESS_BYTES + (8 + 1 + _CODES) * values + _BYTES_PER_DOCUMENT * docs,
        "disk": PROCESS_BYTES + RankBoost()._streaming_bytes(streamed),
        "cuda": on_device.n_features * on_device.column_bytes + on_device.document_bytes,
    }
