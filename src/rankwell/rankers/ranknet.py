"""RankNet (Burges et al. 2005): pairs of a list in the wrong order, by the logistic loss."""

from __future__ import annotations

from rankwell.kernels.lists.losses import RANKNET, ListLoss, list_loss
from rankwell.rankers.neural import NeuralRanker


class RankNet(NeuralRanker):
    """A network trained by the mean of log(1 + e^(s_j − s_i)) over the pairs y_i > y_j of each query.

    The parameters are `NeuralRanker`'s.
    """

    name = "ranknet"

    def _list_loss(self) -> ListLoss:
        return list_loss(RANKNET)
