"""How good is LambdaMART on features of text beside LightGBM with the same number of settings tried?

The demo's training, validation and test queries, and Cranfield, CISI and CACM in five folds over their queries (three
to learn from, one to choose, one to test), with the features of `untuned_rankers`: NDCG@10 under `burges`, settings and
rounds chosen on validation data as in `tree_studies`.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import synthetic_fold
from benchmarks.tree_studies import OURS, RIVAL, WEB, Study, measure_study
from benchmarks.untuned_rankers import TEXT, candidates_of, demo_parts, query_folds
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData


def run(bench: Benchmark) -> None:
    for study in studies(bench):
        measure_study(bench, study)


def studies(bench: Benchmark) -> Iterator[Study]:
    """Those whose data are present; in the quick form a synthetic one."""
    if bench.quick:
        yield Study("synthetic", [synthetic_fold(0.1)], WEB, (OURS, RIVAL))
        return
    parts = demo_parts()
    yield Study("demo", [FoldData("demo", parts["train"], parts["vali"], parts["test"])], WEB, (OURS, RIVAL))
    for name in TEXT:
        folder = bench.data(f"text/{name}")
        if folder is not None:
            yield Study(name, text_folds(candidates_of(folder)), WEB, (OURS, RIVAL))


def text_folds(data: RankingDataset) -> list[FoldData]:
    """Every fold of the queries is tested once; the one after it chooses, and the others are learnt from."""
    fold_of_query = query_folds(data)
    n_folds = int(fold_of_query.max()) + 1
    return [
        FoldData(
            f"Fold{test + 1}",
            data.subset((fold_of_query != test) & (fold_of_query != (test + 1) % n_folds)),
            data.subset(fold_of_query == (test + 1) % n_folds),
            data.subset(fold_of_query == test),
        )
        for test in range(n_folds)
    ]
