"""The contest: rankers learn from the candidates of some queries and are compared with BM25 on those of others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.scores import format_scores
from rankwell.demo.judged_ranking import evaluate_candidates
from rankwell.demo.lightgbm_model import train_lightgbm
from rankwell.metrics.evaluation import Evaluation
from rankwell.metrics.significance import Comparison, compare
from rankwell.rankers.base import Ranker
from rankwell.rankers.registry import ranker_class

# How many of the first pass's documents are reranked.
DEPTH = 50
# The metrics and their conventions. A query looks for one item: reciprocal rank counts grade 2 only, as `mslr` does.
METRICS = {"ndcg@10": "burges", f"mrr@{DEPTH}": "mslr"}

# The parameters of each ranker where the defaults would train for longer than a few seconds.
SETTINGS: dict[str, dict[str, Any]] = {
    "least-squares": {},
    "rankboost": {"n_rounds": 300},
    "lambdamart": {},
    "ranksvm": {},
    "listnet": {"n_epochs": 30, "early_stopping_rounds": 8},
}
LIGHTGBM = "lightgbm"
# Parameters that make a first training short, if a ranker has them.
_SHORT = {"n_rounds": 2, "n_epochs": 1, "C": 1e-4}


@dataclass(frozen=True)
class Part:
    """Queries with what the first pass found for them.

    Attributes
    ----------
    candidates : RankingDataset
        At most `DEPTH` per query, in the order of the index's documents.
    first_scores : float64 array (n_docs,)
        Their scores in the first pass.
    missed : by the id of each query, the grades of its judged documents that are not among them
    """

    candidates: RankingDataset
    first_scores: np.ndarray
    missed: Mapping[int, Sequence[float]]

    def evaluate(self, scores: np.ndarray) -> dict[str, Evaluation]:
        """Every metric of `METRICS`; judged documents that the first pass missed count as missed."""
        return {
            metric: evaluate_candidates(
                self.candidates, scores, self.missed, depth=DEPTH, metrics=[metric], convention=convention
            )
            for metric, convention in METRICS.items()
        }


@dataclass(frozen=True)
class Entry:
    """One way to rank, judged on the test queries; `seconds` is its training time, None if it was not trained."""

    name: str
    evaluations: Mapping[str, Evaluation]
    seconds: float | None = None

    def against(self, other: Entry) -> Comparison:
        """Whether the difference to another entry, by the first metric, could be chance."""
        metric = next(iter(METRICS))
        return compare(self.evaluations[metric], other.evaluations[metric])


def first_pass_entry(test: Part, folder: Path) -> Entry:
    """BM25's own order of its candidates; its scores are kept in `folder`."""
    (folder / "bm25.scores").write_bytes(format_scores(test.first_scores))
    return Entry("bm25", test.evaluate(test.first_scores))


def ranker_entry(name: str, parts: Mapping[str, Part], folder: Path) -> Entry:
    """Train one of our rankers, keep its file in `folder`, and evaluate it.

    A copy is trained briefly first: that compiles the kernels, so that the seconds do not include it.
    """
    ranker = ranker_class(name)(**SETTINGS[name])
    short = ranker.untrained()
    short.set_params(**{parameter: value for parameter, value in _SHORT.items() if parameter in short.get_params()})
    train, validation = parts["train"].candidates, parts["vali"].candidates
    short.fit(train, eval_set=validation)
    return _entry(name, lambda: ranker.fit(train, eval_set=validation), parts["test"], folder)


def lightgbm_entry(parts: Mapping[str, Part], folder: Path) -> Entry:
    """Train LightGBM's lambdarank, keep its model and the ranker file in `folder`, and evaluate the latter."""
    model = folder / f"{LIGHTGBM}.txt"
    train, validation = parts["train"].candidates, parts["vali"].candidates
    return _entry(LIGHTGBM, lambda: train_lightgbm(train, validation, model), parts["test"], folder)


def _entry(name: str, train: Callable[[], Ranker], test: Part, folder: Path) -> Entry:
    started = time.perf_counter()
    ranker = train()
    seconds = time.perf_counter() - started
    evaluations = test.evaluate(ranker.predict(test.candidates))
    ranker.metrics_ = {
        "convention": ", ".join(f"{metric}: {convention}" for metric, convention in METRICS.items()),
        "test": {metric: evaluation.mean[metric] for metric, evaluation in evaluations.items()},
    }
    ranker.save(folder / f"{name}.rank")
    return Entry(name, evaluations, seconds)
