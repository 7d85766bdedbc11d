"""ERR, expected reciprocal rank: a user reads down the list and stops at a document with a probability that grows with
its label.

    R(d) = (2^label − 1) / 2^highest_grade        ERR@k = Σ_{r=1..k} (1/r) · R(d_r) · Π_{i<r} (1 − R(d_i))

Chapelle, Metzler, Zhang and Grinspan, "Expected reciprocal rank for graded relevance", CIKM 2009. The highest grade is
that of the grading scale (4 for Yahoo! and MSLR): a figure of one data set is comparable with another's only if both
use the same one, so pass it (`max_grade`); the default is the highest label of the data. The formula is the same in
every convention.
"""

from __future__ import annotations

from rankwell.kernels.ranking_metrics.rules import ERR as ERR_KIND
from rankwell.metrics.metric import MetricFamily

ERR = MetricFamily("err", ERR_KIND, cutoff="optional", reads_gains=True)
