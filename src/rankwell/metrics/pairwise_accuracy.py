"""PA, pairwise accuracy: the share of pairs of one query with different labels that the scores order right.

    PA = |{(i, j) in P: score_i > score_j}| / |P|,    P = {(i, j): same query, label_i > label_j}

Equation 16 of Jin and Lin, "Efficient parallel algorithms for linear RankSVM on GPU", NPC 2014. A pair with equal
scores is not ordered right. P holds the pairs of all queries, so the overall figure counts every pair once: it is the
mean of the queries' figures weighted by their pairs. A query without such a pair has no figure (NaN), in every
convention.
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import PAIRWISE_ACCURACY as PAIRWISE_ACCURACY_KIND
from rankwell.metrics.metric import MetricFamily

PAIRWISE_ACCURACY = MetricFamily("pairwise_accuracy", PAIRWISE_ACCURACY_KIND, cutoff="none", pooled=True)
