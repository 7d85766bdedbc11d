"""How long does a whole training of LambdaMART take, from a file of features to a file with the ranker?

MQ2007 Fold1: training and validation data are read, features binned, trees grown until validation NDCG@10 has not risen
for 30 rounds, and the ranker of the best round is written. LightGBM reads the same numbers by its own parser, without
comments and query ids, which it would not understand, and with sizes of queries beside them, as its documentation
advises. Both have LightGBM's default settings and at most 300 rounds, all cores, and are warm: each has done it once.
Times are medians: between runs of the benchmark the fastest of ours differs by half on a machine of two virtual cores.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.letor_folds import letor_fold, synthetic_fold
from benchmarks.rivals.lightgbm_lambdarank import IS_INSTALLED
from rankwell import LambdaMART, evaluate, load, read, write
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData

LEAST_RATIO = 3.0
PATIENCE, MOST_ROUNDS = 30, 300
# So much worse a validation NDCG@10 than LightGBM's would be another task.
LIKE_QUALITY = 0.01


def run(bench: Benchmark) -> None:
    fold = None if bench.quick else letor_fold(bench, "MQ2007", 1)
    fold = fold or synthetic_fold(0.2)
    repeat = 1 if bench.quick else 15
    with tempfile.TemporaryDirectory(prefix="rankwell-whole-") as name:
        folder = Path(name)
        write_files(fold, folder)
        ours = bench.time("file to ranker file", lambda: train(folder), repeat=repeat)
        found = ndcg(fold.validation, load(folder / "own.rank").predict(fold.validation))
        bench.check(
            "validation NDCG@10 is the best round's", bool(np.isclose(found, ours.result.best_score_, atol=1e-6))
        )
        rival = note = None
        if IS_INSTALLED:
            theirs = bench.time("LightGBM, file to model file", lambda: train_lightgbm(folder), repeat=repeat)
            rival = theirs.median
            of_rival = ndcg(fold.validation, theirs.result.predict(fold.validation.dense_features()))
            bench.check("as good as LightGBM on validation data", bench.quick or found > of_rival - LIKE_QUALITY)
            note = (
                f"{ours.result.best_iteration_} rounds kept, NDCG@10 {found:.4f}; LightGBM "
                f"{theirs.result.best_iteration}, {of_rival:.4f}"
            )
        bench.record(
            f"{'synthetic' if bench.quick else 'MQ2007 Fold1'}, from file to ranker file",
            value=ours.median,
            unit="s",
            target=None if bench.quick or rival is None else rival / LEAST_RATIO,
            rival="LightGBM",
            rival_value=rival,
            note=note or "",
        )


def ndcg(validation: RankingDataset, scores: np.ndarray) -> float:
    return evaluate(validation, scores, metrics="ndcg@10", convention="burges").mean["ndcg@10"]


def write_files(fold: FoldData, folder: Path) -> None:
    """Both parts as LETOR text, and as the text and the sizes of queries that LightGBM reads."""
    for name, part in (("train", fold.train), ("vali", fold.validation)):
        write(part, folder / f"{name}.txt")
        lines = (folder / f"{name}.txt").read_text().splitlines()
        plain = [" ".join(_counted_from_0(line.split("#")[0].split())) for line in lines]
        (folder / f"{name}.svm").write_text("\n".join(plain) + "\n")
        (folder / f"{name}.svm.query").write_text("\n".join(map(str, part.query_sizes)) + "\n")


def _counted_from_0(words: list[str]) -> list[str]:
    """The words of a line without its query, features counted from 0."""
    pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
    return [words[0], *(f"{int(number) - 1}:{value}" for number, value in pairs)]


def train(folder: Path) -> LambdaMART:
    training, validation = read(folder / "train.txt"), read(folder / "vali.txt")
    ranker = LambdaMART(
        n_rounds=MOST_ROUNDS, n_leaves=31, min_docs_leaf=20, learning_rate=0.1, early_stopping_rounds=PATIENCE,
        eval_metric="ndcg@10", eval_convention="burges", device="cpu",
    )  # fmt: skip
    ranker.fit(training, eval_set=validation)
    ranker.save(folder / "own.rank")
    return ranker


def train_lightgbm(folder: Path) -> Any:
    import lightgbm

    settings = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbose": -1}
    training = lightgbm.Dataset(str(folder / "train.svm"), params=settings)
    validation = lightgbm.Dataset(str(folder / "vali.svm"), reference=training, params=settings)
    stopping = lightgbm.early_stopping(PATIENCE, verbose=False)
    booster = lightgbm.train(settings, training, MOST_ROUNDS, valid_sets=[validation], callbacks=[stopping])
    booster.save_model(folder / "lightgbm.txt")
    return booster
