"""How good is LambdaMART beside LightGBM at equal settings, with nothing chosen?

LightGBM's default settings on five synthetic collections of the shape of MSLR-WEB10K, and the mean difference of the
test NDCG@10.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.rivals.tree_curves import STEP, CurveMaker, TreeSetting, curve_makers
from benchmarks.tree_studies import RIVAL, WEB
from rankwell import compare, make_ranking
from rankwell.data.folds import FoldData

# Documents of a collection, of which a third are tested, and what both libraries are told.
PAIRED_RUNS, PAIRED_DOCS = 5, 180_000
PAIRED_SETTING = TreeSetting(31, 0.1, 1.0, 100)
PAIRED_TOLERANCE = 0.002


def run(bench: Benchmark) -> None:
    """Ours less LightGBM's test figure at equal settings, on synthetic collections of several seeds."""
    makers = curve_makers()
    if "LightGBM lambdarank" not in makers:
        return
    setting = TreeSetting(4, 0.1, 1.0, STEP) if bench.quick else PAIRED_SETTING
    pairs: list[list[float]] = []
    for seed in range(2 if bench.quick else PAIRED_RUNS):
        fold = synthetic_split(4_000 if bench.quick else PAIRED_DOCS, seed)
        pairs.append(
            [
                last_figure(fold, makers[loss], setting, seed)
                for loss in ("LambdaMART lambdarank", "LightGBM lambdarank")
            ]
        )
    ours, theirs = np.array(pairs).T
    bench.check("a figure of every run", bool(np.isfinite(ours).all() and np.isfinite(theirs).all()))
    outcome = compare(ours, theirs)
    bench.record(
        f"mslr10k shape, ours less LightGBM's test ndcg@10 (burges), mean of {len(pairs)} paired runs",
        value=outcome.difference,
        unit="",
        better="higher",
        target=None if bench.quick else -PAIRED_TOLERANCE,
        note=f"{RIVAL} {theirs.mean():.4f}; differences {', '.join(f'{one:+.4f}' for one in ours - theirs)}",
    )


def synthetic_split(n_docs: int, seed: int) -> FoldData:
    """Two thirds of the queries of a synthetic collection to learn from, the rest to test; nothing is chosen."""
    whole = make_ranking("mslr10k", n_docs=n_docs, random_state=seed)
    border = 2 * whole.n_queries // 3
    test = whole.subset(range(border, whole.n_queries))
    return FoldData(f"seed {seed}", whole.subset(range(border)), test, test)


def last_figure(fold: FoldData, make: CurveMaker, setting: TreeSetting, seed: int) -> float:
    """The test NDCG@10 after all rounds."""
    return WEB.judge(fold.test, make(fold, setting, seed).test[-1]).mean[WEB.chosen_by]
