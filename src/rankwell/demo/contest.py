"""The contest: rankers learn from the candidates of some queries and are judged on those of others, beside BM25."""

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

# How many of the first pass's documents are ranked anew.
DEPTH = 50
# What is measured, and how it is counted. A query looks for one item: reciprocal rank counts grade 2 alone, as `mslr`.
METRICS = {"ndcg@10": "burges", f"mrr@{DEPTH}": "mslr"}

# What each ranker is given: enough for good models, little enough for seconds. Features of different queries are
# not comparable, so linear rankers see them normalised within a query.
SETTINGS: dict[str, dict[str, Any]] = {
    "least-squares": {"normalize": "query-minmax"},
    "rankboost": {"n_rounds": 200, "pair_weight": "difference", "early_stopping_rounds": 50},
    "ranksvm": {"C": "auto", "normalize": "query-minmax"},
    "listnet": {"n_epochs": 30, "early_stopping_rounds": 8},
}
LIGHTGBM = "lightgbm"
# What makes a first training short, where a ranker has the parameter.
_SHORT = {"n_rounds": 2, "n_epochs": 1, "C": 1e-4}


@dataclass(frozen=True)
class Part:
    """Queries with what the first pass found for them.

    Attributes
    ----------
    candidates : RankingDataset
        At most `DEPTH` a query, in the order of the index's documents.
    first_scores : float64 array (n_docs,)
        What the first pass gave them.
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
    """One way to rank, judged on the test queries; `seconds` is its training, None where there was none."""

    name: str
    evaluations: Mapping[str, Evaluation]
    seconds: float | None = None

    def against(self, other: Entry) -> Comparison:
        """Whether the difference to another entry, by the first metric, could be luck."""
        metric = next(iter(METRICS))
        return compare(self.evaluations[metric], other.evaluations[metric])


def first_pass_entry(test: Part, folder: Path) -> Entry:
    """BM25's own order of its candidates; its scores are kept in `folder`."""
    (folder / "bm25.scores").write_bytes(format_scores(test.first_scores))
    return Entry("bm25", test.evaluate(test.first_scores))


def ranker_entry(name: str, parts: Mapping[str, Part], folder: Path) -> Entry:
    """Train a ranker of ours, keep its file in `folder`, and judge it.

    A copy is trained for a moment first: that compiles the kernels, so that the seconds are those of training.
    """
    ranker = ranker_class(name)(**SETTINGS[name])
    short = ranker.untrained()
    short.set_params(**{parameter: value for parameter, value in _SHORT.items() if parameter in short.get_params()})
    train, validation = parts["train"].candidates, parts["vali"].candidates
    short.fit(train, eval_set=validation)
    return _entry(name, lambda: ranker.fit(train, eval_set=validation), parts["test"], folder)


def lightgbm_entry(parts: Mapping[str, Part], folder: Path) -> Entry:
    """Train LightGBM's lambdarank, keep its model and the ranker file made of it in `folder`, and judge the latter."""
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
