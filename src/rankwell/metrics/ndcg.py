"""NDCG, normalised discounted cumulative gain.

    DCG@k = Σ_{r=1..k} gain(label of the document at rank r) · discount(r)        NDCG@k = DCG@k / ideal DCG@k

The ideal DCG is that of the same documents in the order of their labels. Järvelin and Kekäläinen, "Cumulated gain-based
evaluation of IR techniques", TOIS 20 (2002), with gain = label and 1/log2(r) from rank 2 on; Burges et al., "Learning
to rank using gradient descent", ICML 2005, with gain = 2^label − 1 and 1/log2(r + 1). The convention says which of them
is used, and how a short list or a query without relevant documents counts.

MeanNDCG is LETOR's: the mean of NDCG@1, ..., NDCG@n over a query's own n documents (Qin and Liu, "Introducing LETOR 4.0
datasets", 2013).
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import MEAN_NDCG as MEAN_NDCG_KIND
from rankwell.kernels.ranking_metrics.rules import NDCG as NDCG_KIND
from rankwell.metrics.metric import MetricFamily

NDCG = MetricFamily("ndcg", NDCG_KIND, cutoff="optional", reads_gains=True)
MEAN_NDCG = MetricFamily("mean_ndcg", MEAN_NDCG_KIND, cutoff="none", reads_gains=True)
