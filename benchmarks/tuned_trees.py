"""Boosted trees whose settings and number of rounds are chosen on queries that are not tested.

A setting is judged by the best round of one seed on documents that it was not trained on. With what was chosen, each
seed's number of rounds, and that of the mean of all, are chosen on the fold's validation data, and test documents are
scored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.rivals.tree_curves import Curve, CurveMaker, TreeSetting
from rankwell import evaluate
from rankwell.data.dataset import RankingDataset
from rankwell.data.folds import FoldData
from rankwell.metrics.evaluation import Evaluation


@dataclass(frozen=True)
class Criterion:
    """How rankings are judged: the convention, the metric that validation data choose by, and those of test data."""

    convention: str
    chosen_by: str
    metrics: tuple[str, ...]

    def judge(self, test: RankingDataset, scores: np.ndarray) -> Evaluation:
        return evaluate(test, scores, metrics=self.metrics, convention=self.convention)

    def best_step(self, validation: RankingDataset, curve: np.ndarray) -> tuple[int, float]:
        """The step of a curve with the highest validation figure, the first of equals, and that figure."""
        figures = [
            evaluate(validation, scores, metrics=self.chosen_by, convention=self.convention).mean[self.chosen_by]
            for scores in curve
        ]
        return int(np.argmax(figures)), max(figures)


@dataclass(frozen=True)
class FoldResult:
    """Of one fold: the setting, the test scores of each seed's model and of their mean.

    seeds : float64 (n_seeds, n_docs); mean : float64 (n_docs,)
    """

    setting: str
    seeds: np.ndarray
    mean: np.ndarray


def best_figures(
    split: FoldData, make: CurveMaker, settings: Sequence[TreeSetting], criterion: Criterion
) -> np.ndarray:
    """Of each setting, the figures of its best round on validation and on test data: float64 (n_settings, 2)."""
    curves = [make(split, setting, 0) for setting in settings]
    return np.array(
        [
            [criterion.best_step(split.validation, curve.validation)[1], criterion.best_step(split.test, curve.test)[1]]
            for curve in curves
        ]
    )


def fold_result(
    fold: FoldData, make: CurveMaker, setting: TreeSetting, n_seeds: int, criterion: Criterion
) -> FoldResult:
    """Train with every seed, and choose the rounds of each and those of their mean."""
    curves = [make(fold, setting, seed) for seed in range(n_seeds)]
    mean = Curve(*(np.mean([getattr(curve, part) for curve in curves], axis=0) for part in ("validation", "test")))
    scores = [curve.test[criterion.best_step(fold.validation, curve.validation)[0]] for curve in (*curves, mean)]
    label = f"{setting.leaves} leaves, rate {setting.learning_rate:g}"
    return FoldResult(label, np.array(scores[:-1]), scores[-1])
