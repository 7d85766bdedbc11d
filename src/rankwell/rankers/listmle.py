"""ListMLE (Xia et al. 2008): the likelihood of the one permutation that the labels give."""

from __future__ import annotations

from rankwell.kernels.lists.losses import LISTMLE, ListLoss, list_loss
from rankwell.rankers.neural import NeuralRanker


class ListMLE(NeuralRanker):
    """A network trained by −log P(s, π_y)/n, π_y the query's documents by label.

    Equal labels come in an order drawn anew in every epoch: a fixed order would be learnt as if it had a meaning.

    The parameters are `NeuralRanker`'s.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> ranker = rankwell.ListMLE(n_epochs=3).fit(data)
    >>> len(ranker.history_["loss"])
    3
    """

    name = "listmle"

    def _list_loss(self) -> ListLoss:
        return list_loss(LISTMLE)
