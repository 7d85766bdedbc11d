"""AP, average precision; its mean over queries is MAP.

    AP = (1 / relevant documents) · Σ_{r: the document at rank r is relevant} P@r

With a cut-off k only ranks up to k are summed, and the convention says whether all relevant documents divide the sum
(trec_eval's map_cut) or only as many as k places could hold (LightGBM, XGBoost). Relevant is a label from the
convention's relevance level on. Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000.
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import AVERAGE_PRECISION as AVERAGE_PRECISION_KIND
from rankwell.metrics.metric import MetricFamily

AVERAGE_PRECISION = MetricFamily("map", AVERAGE_PRECISION_KIND, cutoff="optional")
