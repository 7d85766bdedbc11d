"""RankNet (Burges et al. 2005): pairs of a list in the wrong order, by the logistic loss."""

from __future__ import annotations

from rankwell.kernels.lists.losses import RANKNET, ListLoss, list_loss
from rankwell.rankers.neural import NeuralRanker


class RankNet(NeuralRanker):
    """A network trained by the mean of log(1 + e^(s_j − s_i)) over the pairs y_i > y_j of each query.

    The parameters are `NeuralRanker`'s.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> ranker = rankwell.RankNet(n_epochs=3, hidden=(8, 4)).fit(data)
    >>> len(ranker.rank(data))  # for each query its rows, best first
    15
    """

    name = "ranknet"

    def _list_loss(self) -> ListLoss:
        return list_loss(RANKNET)
