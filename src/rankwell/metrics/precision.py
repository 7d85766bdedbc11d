"""P@k, precision: the share of relevant documents among the first k.

    P@k = (relevant documents at ranks 1..k) / k

A query with fewer than k documents is padded with irrelevant ones, unless the convention divides by the documents it
has (XGBoost's ``pre``).
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import PRECISION as PRECISION_KIND
from rankwell.metrics.metric import MetricFamily

PRECISION = MetricFamily("p", PRECISION_KIND, cutoff="required")
