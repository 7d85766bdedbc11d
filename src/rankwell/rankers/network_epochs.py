"""A network's epochs on some device, as steps of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import FileFormatError, ParameterError
from rankwell.kernels.device_report import BOARD_SECONDS
from rankwell.kernels.lists.contract import NetworkState, NetworkTrainer
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.rankers.kernel_swap import KernelSwap
from rankwell.rankers.training_run import Steps, StepSource
from rankwell.solvers.first_order import FirstOrder


class NetworkEpochs(StepSource):
    """Epochs, one at a time, of one network or of several whose mean score counts.

    Parameters
    ----------
    trainer : NetworkTrainer
        If it tells the seconds of an epoch on a board, swaps by gain go by them.
    states : list of NetworkState
        One for each network; changed in place as epochs are done.
    n_queries : int
    optimizer : FirstOrder
    swap : KernelSwap
        Chooses the number format of each epoch.
    fixed_point : callable
        Creates the number format of "fixed8" and similar names, None for "float32".
    seed : int
        Of the first network; each further one has the next. An epoch's order and random numbers depend only on a
        network's seed and the epoch.
    shuffle : bool
    validation : RankingDataset, optional
        With normalised features.

    Attributes
    ----------
    states : list of NetworkState
        After the last epoch.
    best : float32 array (n_networks, n_parameters)
        The parameters after the epoch that was best on the validation data; the initial ones before the first epoch.
    """

    def __init__(
        self,
        trainer: NetworkTrainer,
        states: list[NetworkState],
        *,
        n_queries: int,
        optimizer: FirstOrder,
        swap: KernelSwap,
        fixed_point: Callable[[str], FixedPointFormat | None],
        seed: int,
        shuffle: bool,
        validation: RankingDataset | None,
    ) -> None:
        self._device_figures = dict.fromkeys(trainer.figures(), 0.0)
        self.figures = ("loss", "learning rate", "bits", *self._device_figures)
        self.states = states
        self.best = self.parameters
        self._trainer = trainer
        self._n_queries = n_queries
        self._optimizer = optimizer
        self._swap = swap
        self._fixed_point = fixed_point
        self._seed = seed
        self._shuffle = shuffle
        self._features = None if validation is None else network_features(validation)
        self._n_epochs = 0

    @property
    def parameters(self) -> np.ndarray:
        """The parameters of all networks, a float32 copy (n_networks, n_parameters)."""
        return np.stack([state.parameters for state in self.states])

    def run(self, n_steps: int) -> Steps:
        """Train one epoch of every network."""
        epoch = self._n_epochs + 1
        fixed_point = self._fixed_point(self._swap.before(epoch))
        rate = self._optimizer.rate(epoch - 1)
        total = 0.0
        self._device_figures = dict.fromkeys(self._device_figures, 0.0)
        for number, state in enumerate(self.states):
            random = np.random.default_rng((self._seed + number, epoch))
            order = random.permutation(self._n_queries) if self._shuffle else np.arange(self._n_queries)
            seed = int(random.integers(0, 2**62))
            total += self._trainer.run_epoch(state, order, rate, seed, fixed_point)
            for name, value in self._trainer.figures().items():
                self._device_figures[name] += value
        loss = total / (len(self.states) * max(self._n_queries, 1))
        if not np.isfinite(loss) or not all(np.isfinite(state.parameters).all() for state in self.states):
            raise ParameterError(
                f"training diverged: the loss is {loss} after epoch {epoch}. Lower learning_rate "
                f"({self._optimizer.learning_rate}), or normalise the features."
            )
        self._n_epochs = epoch
        bits = float(32 if fixed_point is None else fixed_point.bits)
        return Steps([{"loss": loss, "learning rate": rate, "bits": bits, **self._device_figures}])

    def validation_scores(self) -> np.ndarray:
        assert self._features is not None
        scores = np.zeros(len(self._features))
        for state in self.states:
            scores += self._trainer.scores(state, self._features)
        return scores / len(self.states)

    def step_done(self, seconds: float, validation: float | None, is_best: bool) -> None:
        self._swap.after(validation, self._device_figures.get(BOARD_SECONDS, seconds))
        if is_best:
            self.best = self.parameters

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "parameters": self.parameters,
            "first": np.stack([state.first for state in self.states]),
            "second": np.stack([state.second for state in self.states]),
            "best": self.best,
            "steps": np.array([state.steps for state in self.states], dtype=np.int64),
            "swaps": np.array([self._swap.swaps], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, np.ndarray], n_steps: int) -> None:
        for name, own in self.arrays().items():
            found = arrays.get(name)
            if found is None or found.dtype != own.dtype or found.shape != own.shape:
                raise FileFormatError(f"the checkpoint is not one of this network: its {name} has another shape.")
        self.states = [
            NetworkState(parameters.copy(), first.copy(), second.copy(), int(steps))
            for parameters, first, second, steps in zip(
                arrays["parameters"], arrays["first"], arrays["second"], arrays["steps"], strict=True
            )
        ]
        self.best = arrays["best"].copy()
        self._swap.resume(n_steps, int(arrays["swaps"][0]))
        self._n_epochs = n_steps


def network_features(dataset: RankingDataset) -> np.ndarray:
    """The input of a network: float32 (n_docs, n_features) in C order, missing values as 0."""
    features = np.ascontiguousarray(dataset.dense_features(), dtype=np.float32)
    return np.nan_to_num(features, nan=0.0) if np.isnan(features).any() else features
