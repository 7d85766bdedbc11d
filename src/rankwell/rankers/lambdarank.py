"""LambdaRank (Burges et al. 2006): RankNet's pairs, each as heavy as the NDCG that exchanging it would change."""

from __future__ import annotations

from typing import Any, Literal

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.lists.contract import NetworkProblem
from rankwell.kernels.lists.losses import LAMBDARANK, WEIGHTINGS, XENDCG, ListLoss, list_loss
from rankwell.kernels.lists.network_shape import NetworkShape
from rankwell.metrics.conventions import DEFAULT
from rankwell.metrics.names import AnyMetric
from rankwell.rankers.foreign_values import check_named
from rankwell.rankers.neural import NeuralRanker

_XENDCG = "xendcg"
_BY_RELEVANCE = ("map", "mrr")


class LambdaRank(NeuralRanker):
    """A network trained by the mean of log(1 + e^(s_j − s_i)) over a query's pairs y_i > y_j, weighted by `|ΔNDCG|`.

    Gain 2^y − 1, discount 1/log2(1 + rank), ranks by the current scores. The other parameters are `NeuralRanker`'s.

    Parameters
    ----------
    loss : "lambdarank", "lambdaloss", "map", "mrr" or "xendcg"
        What a pair weighs, as in `LambdaMART`: the change of NDCG if the two were exchanged; with "lambdaloss" that and
        the change by their distance (NDCG-Loss2++); with "map" or "mrr" the change of average precision or of the
        reciprocal rank, for labels above 0. "xendcg" has no pairs: it is the cross entropy of the scores' softmax with
        gains 2^y − u, u drawn anew in every epoch.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> rankwell.LambdaRank(n_epochs=3).fit(data).predict(data).shape
    (300,)
    """

    name = "lambdarank"

    def __init__(
        self,
        *,
        loss: Literal["lambdarank", "lambdaloss", "map", "mrr", "xendcg"] = "lambdarank",
        hidden: tuple[int, ...] = (15,),
        activation: Literal["sigmoid", "relu", "tanh", "linear"] = "sigmoid",
        output_activation: Literal["auto", "sigmoid", "identity"] = "auto",
        optimizer: Literal["sgd", "adam"] = "sgd",
        learning_rate: float | Literal["auto"] = "auto",
        lr_decay: float = 0.05,
        momentum: float = 0.0,
        weight_decay: float = 1e-3,
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
        device: Literal["auto", "cpu", "cuda"] = "auto",
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
        self.loss = loss

    def _check_parameters(self) -> None:
        check_named("loss", self.loss, (*WEIGHTINGS, _XENDCG))
        super()._check_parameters()

    def _problem(self, train: RankingDataset, shape: NetworkShape) -> NetworkProblem:
        if self.loss in _BY_RELEVANCE and train.n_docs and train.labels.min() > 0:
            raise DataError(
                f"no pairs to learn from: with loss={self.loss!r} a document is relevant if its label is above 0, and "
                f"all {train.n_docs:,} are: the lowest label is {train.labels.min():g}. Subtract it from the labels, "
                "or use another loss."
            )
        return super()._problem(train, shape)

    def _list_loss(self) -> ListLoss:
        return list_loss(XENDCG) if self.loss == _XENDCG else list_loss(LAMBDARANK, weighting=self.loss)
