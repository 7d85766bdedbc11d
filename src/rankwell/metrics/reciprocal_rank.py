"""RR, reciprocal rank; its mean over queries is MRR.

    RR = 1 / (rank of the first relevant document),    0 if there is none within the cut-off

Voorhees, "The TREC-8 question answering track report", TREC 1999.
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import RECIPROCAL_RANK as RECIPROCAL_RANK_KIND
from rankwell.metrics.metric import MetricFamily

RECIPROCAL_RANK = MetricFamily("mrr", RECIPROCAL_RANK_KIND, cutoff="optional")
