"""Recall@k: the share of a query's relevant documents that are among the first k.

recall@k = (relevant documents at ranks 1..k) / (relevant documents)
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import RECALL as RECALL_KIND
from rankwell.metrics.metric import MetricFamily

RECALL = MetricFamily("recall", RECALL_KIND, cutoff="required")
