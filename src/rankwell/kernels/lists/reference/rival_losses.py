"""RankNet, LambdaRank, ListMLE and XE-NDCG by definition, in float64: the loss and its gradient by the scores."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.lists.reference.top_k_loss import log_sum_exp
from rankwell.kernels.trees.reference.lambdas import PAIR_WEIGHTS


def ranknet_loss(labels: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of log(1 + e^(s_j − s_i)) over pairs with y_i > y_j (Burges et al. 2005)."""
    loss, gradient, pairs = 0.0, np.zeros(len(scores)), 0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                loss += np.logaddexp(0.0, scores[j] - scores[i])
                wrong = 0.5 * (1.0 + np.tanh(0.5 * (scores[j] - scores[i])))
                gradient[i] -= wrong
                gradient[j] += wrong
                pairs += 1
    return loss / max(pairs, 1), gradient / max(pairs, 1)


def lambdarank_loss(labels: np.ndarray, scores: np.ndarray, weighting: str = "lambdarank") -> tuple[float, np.ndarray]:
    """The mean of RankNet's pairs, each as heavy as |ΔNDCG| of exchanging the two documents (Burges et al. 2006).

    The original is the sum; divided by Σ |ΔNDCG|, the gradient does not depend on the number of pairs, so that one
    learning rate suits all queries (LightGBM normalises for the same reason, by another factor).
    Gain 2^y − 1 (of labels less their minimum, at most 31), discount 1/log2(1 + rank); ranks by score, equal scores in
    the order of the documents. The gradient takes the ranks, and so the weights, as constants.

    weighting : other weights instead, see `kernels/trees/losses`; for "map" and "mrr" labels above 0 are relevant
    """
    n = len(scores)
    gains = 2.0 ** np.minimum(labels - labels.min(), 31.0) - 1.0
    if weighting in ("map", "mrr"):
        gains = (labels > min(0.0, labels.min())).astype(float)
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(n, dtype=int)
    rank[order] = np.arange(n)
    loss, gradient, weights = 0.0, np.zeros(n), 0.0
    if gains.min() == gains.max():
        return loss, gradient
    for i in range(n):
        for j in range(n):
            if gains[i] > gains[j]:
                first, second = sorted((int(rank[i]), int(rank[j])))
                change = PAIR_WEIGHTS[weighting](gains[order], first, second, n)
                loss += change * np.logaddexp(0.0, scores[j] - scores[i])
                wrong = change * 0.5 * (1.0 + np.tanh(0.5 * (scores[j] - scores[i])))
                gradient[i] -= wrong
                gradient[j] += wrong
                weights += change
    return (loss / weights, gradient / weights) if weights > 0.0 else (loss, gradient)


def xendcg_loss(labels: np.ndarray, scores: np.ndarray, units: np.ndarray) -> tuple[float, np.ndarray]:
    """The cross entropy of the softmax of scores with the shares of 2^y − u (Bruch 2021).

    labels : less their minimum, if that is below 0, and at most 31; equal ones say nothing; units : u, in (0, 1)
    """
    if labels.min() == labels.max():
        return 0.0, np.zeros(len(labels))
    targets = 2.0 ** np.minimum(labels - min(0.0, labels.min()), 31.0) - units
    targets /= targets.sum()
    log_shares = scores - log_sum_exp(scores)
    return float(-(targets * log_shares).sum()), np.exp(log_shares) - targets


def listmle_loss(labels: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """−log P(s, π_y)/n, π_y the documents by label, equal labels in their order (Xia et al. 2008)."""
    order = np.argsort(-labels, kind="stable")
    loss, gradient = 0.0, np.zeros(len(scores))
    for place, chosen in enumerate(order):
        remaining = order[place:]
        log_sum = log_sum_exp(scores[remaining])
        loss += log_sum - scores[chosen]
        gradient[remaining] += np.exp(scores[remaining] - log_sum)
        gradient[chosen] -= 1.0
    return loss / max(len(order), 1), gradient / max(len(order), 1)
