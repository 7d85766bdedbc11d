"""The workers of a run as the kernels see them (`rankwell.kernels.boosting.contract.Companions`)."""

from __future__ import annotations

import numpy as np

from rankwell.cluster.exchange import Exchange
from rankwell.data.agreement import Agreement


class WorkerCompanions:
    """See `Companions`; the sizes are those of this worker's part of the data."""

    def __init__(self, exchange: Exchange, n_docs: int, n_queries: int, agreement: Agreement) -> None:
        self._exchange = exchange
        self.number, self.n_processes = exchange.number, exchange.n_workers
        sizes = agreement.joined(np.array([n_docs, n_queries], dtype=np.int64)).reshape(-1, 2)
        self.n_docs, self.n_queries = sizes.sum(axis=0).tolist()
        self.first_doc, self.first_query = sizes[: self.number].sum(axis=0).tolist()

    def sum(self, values: np.ndarray) -> np.ndarray:
        return self._exchange.sum(values)

    def largest(self, value: int) -> int:
        return self._exchange.largest(value)

    def gather(self, values: np.ndarray) -> list[np.ndarray]:
        return self._exchange.gather(values)

    def hand_on(self, values: np.ndarray) -> np.ndarray | None:
        return self._exchange.hand_on(values)

    def pass_on(self, values: np.ndarray) -> None:
        self._exchange.pass_on(values)

    def announce(self, values: np.ndarray, sender: int) -> np.ndarray:
        return self._exchange.announce(values, sender)
