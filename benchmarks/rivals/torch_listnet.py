"""ListNet in PyTorch in its usual form: a Sequential network, log_softmax, autograd, one SGD step per query."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset


def is_installed() -> bool:
    return find_spec("torch") is not None


class TorchListNet:
    """Top-1 ListNet with one hidden layer of sigmoids and a sigmoid output, trained query by query.

    parameters : the layers' weights (n_out, n_in) and biases (n_out,), so that both libraries start from the same state
    """

    def __init__(self, dataset: RankingDataset, layers: Any, learning_rate: float, threads: int) -> None:
        import torch

        self._torch = torch
        self._threads = threads
        widths = [weights.shape[1] for weights, _ in layers]
        self.network = torch.nn.Sequential(
            torch.nn.Linear(widths[0], widths[1]), torch.nn.Sigmoid(), torch.nn.Linear(widths[1], 1), torch.nn.Sigmoid()
        )
        for place, (weights, bias) in zip((0, 2), layers, strict=True):
            self.network[place].weight.data = torch.tensor(np.asarray(weights), dtype=torch.float32)
            self.network[place].bias.data = torch.tensor(np.asarray(bias), dtype=torch.float32)
        self._optimizer = torch.optim.SGD(self.network.parameters(), lr=learning_rate)
        features, labels = torch.from_numpy(dataset.features), torch.from_numpy(dataset.labels).float()
        # Slices and label probabilities are made once, outside of what is timed.
        self._queries = [
            (features[rows], torch.softmax(labels[rows], 0)) for rows in dataset.queries() if rows.stop > rows.start
        ]

    def epoch(self) -> None:
        self._torch.set_num_threads(self._threads)
        for features, probabilities in self._queries:
            self._optimizer.zero_grad()
            scores = self.network(features).squeeze(-1)
            loss = -(probabilities * self._torch.log_softmax(scores, 0)).sum()
            loss.backward()
            self._optimizer.step()

    def scores(self, features: np.ndarray) -> np.ndarray:
        with self._torch.no_grad():
            return np.asarray(self.network(self._torch.from_numpy(features)).squeeze(-1).numpy())
