"""LambdaRank (Burges et al. 2006): RankNet's pairs, each as heavy as the NDCG that exchanging it would change."""

from __future__ import annotations

from rankwell.kernels.lists.losses import LAMBDARANK, ListLoss, list_loss
from rankwell.rankers.neural import NeuralRanker


class LambdaRank(NeuralRanker):
    """A network trained by the mean of log(1 + e^(s_j − s_i)) over a query's pairs y_i > y_j, weighted by `|ΔNDCG|`.

    Gain 2^y − 1, discount 1/log2(1 + rank), ranks by the current scores. The parameters are `NeuralRanker`'s.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> rankwell.LambdaRank(n_epochs=3).fit(data).predict(data).shape
    (300,)
    """

    name = "lambdarank"

    def _list_loss(self) -> ListLoss:
        return list_loss(LAMBDARANK)
