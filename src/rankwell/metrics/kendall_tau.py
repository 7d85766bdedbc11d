"""Kendall's τ-b between labels and scores within a query.

    τ_b = (C − D) / sqrt((n₀ − n_labels) · (n₀ − n_scores))

with C and D the pairs that labels and scores order alike and differently, n₀ = n(n − 1)/2 all pairs, and n_labels and
n_scores those with equal labels and with equal scores. Kendall, "The treatment of ties in ranking problems", Biometrika
33 (1945); `scipy.stats.kendalltau` computes the same. Where all labels or all scores of a query are equal it is 0/0:
the query has no figure (NaN), in every convention.
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import KENDALL_TAU as KENDALL_TAU_KIND
from rankwell.metrics.metric import MetricFamily

KENDALL_TAU = MetricFamily("kendall_tau", KENDALL_TAU_KIND, cutoff="none")
