"""A network's epochs on some device, as steps of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.lists.contract import NetworkState, NetworkTrainer
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.rankers.kernel_swap import KernelSwap
from rankwell.rankers.training_run import Steps, StepSource
from rankwell.solvers.first_order import FirstOrder


class NetworkEpochs(StepSource):
    """Epochs, one at a time.

    Parameters
    ----------
    trainer : NetworkTrainer
    state : NetworkState
        Changed in place as epochs are done.
    n_queries : int
    optimizer : FirstOrder
    swap : KernelSwap
        Chooses the number format of each epoch.
    fixed_point : callable
        Creates the number format of "fixed8" and similar names, None for "float32".
    seed : int
        An epoch's order and random numbers depend only on it and the epoch.
    shuffle : bool
    validation : RankingDataset, optional
        With normalised features.

    Attributes
    ----------
    state : NetworkState
        After the last epoch.
    best : float32 array
        The parameters after the epoch that was best on the validation data; the initial ones before the first epoch.
    """

    figures = ("loss", "learning rate", "bits")

    def __init__(
        self,
        trainer: NetworkTrainer,
        state: NetworkState,
        *,
        n_queries: int,
        optimizer: FirstOrder,
        swap: KernelSwap,
        fixed_point: Callable[[str], FixedPointFormat | None],
        seed: int,
        shuffle: bool,
        validation: RankingDataset | None,
    ) -> None:
        self.state = state
        self.best = state.parameters.copy()
        self._trainer = trainer
        self._n_queries = n_queries
        self._optimizer = optimizer
        self._swap = swap
        self._fixed_point = fixed_point
        self._seed = seed
        self._shuffle = shuffle
        self._features = None if validation is None else network_features(validation)
        self._n_epochs = 0

    def run(self, n_steps: int) -> Steps:
        """Train one epoch."""
        epoch = self._n_epochs + 1
        fixed_point = self._fixed_point(self._swap.before(epoch))
        rate = self._optimizer.rate(epoch - 1)
        random = np.random.default_rng((self._seed, epoch))
        order = random.permutation(self._n_queries) if self._shuffle else np.arange(self._n_queries)
        seed = int(random.integers(0, 2**62))
        total = self._trainer.run_epoch(self.state, order, rate, seed, fixed_point)
        loss = total / max(self._n_queries, 1)
        if not np.isfinite(loss) or not np.isfinite(self.state.parameters).all():
            raise ParameterError(
                f"training diverged: the loss is {loss} after epoch {epoch}. Lower learning_rate "
                f"({self._optimizer.learning_rate}), or normalise the features."
            )
        self._n_epochs = epoch
        bits = float(32 if fixed_point is None else fixed_point.bits)
        return Steps([{"loss": loss, "learning rate": rate, "bits": bits}])

    def validation_scores(self) -> np.ndarray:
        assert self._features is not None
        return self._trainer.scores(self.state, self._features).astype(np.float64)

    def step_done(self, seconds: float, validation: float | None, is_best: bool) -> None:
        self._swap.after(validation, seconds)
        if is_best:
            self.best = self.state.parameters.copy()

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "parameters": self.state.parameters,
            "first": self.state.first,
            "second": self.state.second,
            "best": self.best,
            "steps": np.array([self.state.steps], dtype=np.int64),
            "swaps": np.array([self._swap.swaps], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, np.ndarray], n_steps: int) -> None:
        self.state = NetworkState(
            arrays["parameters"].copy(), arrays["first"].copy(), arrays["second"].copy(), int(arrays["steps"][0])
        )
        self.best = arrays["best"].copy()
        self._swap.resume(n_steps, int(arrays["swaps"][0]))
        self._n_epochs = n_steps


def network_features(dataset: RankingDataset) -> np.ndarray:
    """The input of a network: float32 (n_docs, n_features) in C order, missing values as 0."""
    features = np.ascontiguousarray(dataset.dense_features(), dtype=np.float32)
    return np.nan_to_num(features, nan=0.0) if np.isnan(features).any() else features
