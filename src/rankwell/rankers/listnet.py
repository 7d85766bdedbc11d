"""ListNet (Cao et al. 2007) with Top-k probabilities: exact for k ≤ 3, sampled for any k.

    L(y, s) = −Σ_{π in the top-k permutations} P(y, π)·log P(s, π)                                  (equation 2.7)

The exact losses need no permutations (docs/algorithms/listnet.md): Top-1 and Top-2 cost O(n) a list, Top-3 O(n²).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from rankwell.errors import ParameterError
from rankwell.kernels.lists.losses import (
    DISTRIBUTIONS,
    EXACT,
    MOST_EXACT_PLACES,
    POSITION_AWARE,
    STOCHASTIC,
    ListLoss,
    list_loss,
)
from rankwell.metrics.conventions import DEFAULT
from rankwell.metrics.names import AnyMetric
from rankwell.parameters import check_choice, check_whole_number
from rankwell.rankers.neural import NeuralRanker

SAMPLINGS = {"exact": EXACT, "stochastic": STOCHASTIC, "position-aware": POSITION_AWARE}


class ListNet(NeuralRanker):
    """A network trained by the Top-k ListNet loss.

    Parameters
    ----------
    k : int
        Places that count.
    sampling : "exact", "stochastic" or "position-aware"
        All permutations (k ≤ 3), or a sample (any k): drawn whole (Algorithm 2), or by place (Algorithm 6).
    sample_factors : tuple of float
        For "position-aware": the share of a query's documents that is drawn for each place, f_1 ≥ … ≥ f_k in (0, 1].
    sample_size : int
        For "stochastic": permutations per query.
    sample_distribution : "uniform", "fixed" or "adaptive"
        For "stochastic": what they are drawn from (all documents alike, the labels' P_y, or the current scores' P_s).
    **settings
        Parameters of the network and its training: see `NeuralRanker`.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> ranker = rankwell.ListNet(k=3, n_epochs=5, hidden=(4,)).fit(data)
    >>> ranker.history_["loss"][-1] < ranker.history_["loss"][0]
    True
    """

    name = "listnet"
    sigmoid_scores = True

    def __init__(
        self,
        k: int = 1,
        *,
        sampling: Literal["exact", "stochastic", "position-aware"] = "exact",
        sample_factors: tuple[float, ...] = (1.0, 0.1, 0.02),
        sample_size: int = 100,
        sample_distribution: Literal["uniform", "fixed", "adaptive"] = "fixed",
        hidden: tuple[int, ...] = (15,),
        activation: Literal["sigmoid", "relu", "tanh", "linear"] = "sigmoid",
        output_activation: Literal["auto", "sigmoid", "identity"] = "auto",
        optimizer: Literal["sgd", "adam"] = "sgd",
        learning_rate: float | Literal["auto"] = "auto",
        lr_decay: float = 0.05,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dropout: float = 0.0,
        batch_queries: int = 1,
        n_epochs: int = 50,
        n_seeds: int = 3,
        shuffle: bool = True,
        precision: str = "float32",
        fixed_point: Literal["direct", "adaptive", "batch"] = "batch",
        accumulator_bits: int | None = None,
        fixed_point_batches: int = 10,
        swap: Any = None,
        early_stopping_rounds: int | None = None,
        eval_metric: AnyMetric = "ndcg@10",
        eval_convention: str = DEFAULT.name,
        checkpoint: str | None = None,
        checkpoint_every: int = 50,
        normalize: str = "auto",
        device: Literal["auto", "cpu", "cuda", "fpga-sim"] = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            hidden=hidden,
            activation=activation,
            output_activation=output_activation,
            optimizer=optimizer,
            learning_rate=learning_rate,
            lr_decay=lr_decay,
            momentum=momentum,
            weight_decay=weight_decay,
            dropout=dropout,
            batch_queries=batch_queries,
            n_epochs=n_epochs,
            n_seeds=n_seeds,
            shuffle=shuffle,
            precision=precision,
            fixed_point=fixed_point,
            accumulator_bits=accumulator_bits,
            fixed_point_batches=fixed_point_batches,
            swap=swap,
            early_stopping_rounds=early_stopping_rounds,
            eval_metric=eval_metric,
            eval_convention=eval_convention,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            normalize=normalize,
            device=device,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.k = k
        self.sampling = sampling
        self.sample_factors = sample_factors
        self.sample_size = sample_size
        self.sample_distribution = sample_distribution

    def _check_parameters(self) -> None:
        check_whole_number("k", self.k, least=1)
        check_choice("sampling", self.sampling, SAMPLINGS)
        if self.sampling == "exact" and self.k > MOST_EXACT_PLACES:
            raise ParameterError(
                f"the exact loss goes up to k = {MOST_EXACT_PLACES}, got {self.k}. "
                "Use sampling='stochastic' or 'position-aware'."
            )
        check_whole_number("sample_size", self.sample_size, least=1)
        check_choice("sample_distribution", self.sample_distribution, DISTRIBUTIONS)
        if self.sampling == "position-aware":
            self._check_factors()
        super()._check_parameters()

    def _check_factors(self) -> None:
        factors = tuple(self.sample_factors)
        falling = all(earlier >= later for earlier, later in pairwise(factors))
        if len(factors) != self.k or not falling or not all(0 < factor <= 1 for factor in factors):
            raise ParameterError(
                f"must be k = {self.k} numbers in (0, 1] that do not grow, got {factors}.", parameter="sample_factors"
            )

    def _list_loss(self) -> ListLoss:
        factors = tuple(float(factor) for factor in self.sample_factors) if self.sampling == "position-aware" else ()
        return list_loss(
            SAMPLINGS[self.sampling],
            int(self.k),
            n_samples=int(self.sample_size),
            distribution=self.sample_distribution,
            factors=factors,
        )
