"""How good is LambdaMART on LETOR beside LightGBM, XGBoost and CatBoost with the same number of settings tried?

The five folds of MQ2007 and MQ2008 under `letor4`, settings and rounds chosen by MeanNDCG on validation data as in
`tree_studies`. The best published figures are MeanNDCG .5003 (RankBoost on MQ2007) and .4950 (AdaRank-NDCG on MQ2008).
MQ2008 is small: 0.005 there is noise.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_folds, synthetic_fold
from benchmarks.tree_studies import LETOR, Study, measure_study

# What one model, the mean over seeds, and the mean of the models must reach.
TARGETS = {
    "MQ2007": {"mean_ndcg": (0.505, 0.507), "map": (0.469, 0.470)},
    "MQ2008": {"mean_ndcg": (0.484, 0.487), "map": (0.4735, 0.476)},
}


def run(bench: Benchmark) -> None:
    if bench.quick:
        measure_study(bench, Study("synthetic", [synthetic_fold(0.1)], LETOR))
        return
    for name, targets in TARGETS.items():
        folds = letor_folds(bench, name)
        if folds:
            measure_study(bench, Study(name, folds, LETOR, targets=targets))
