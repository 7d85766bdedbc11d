"""Boosted trees whose settings and number of rounds are chosen on validation data.

Every setting is tried with one seed; the best of them by the validation data is trained with the other seeds too. With
each seed, and for the mean of all, validation data choose the number of rounds. Test documents are scored once, with
what was chosen.
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

    validation : the mean over seeds of the highest validation figure
    seeds : float64 (n_seeds, n_docs); mean : float64 (n_docs,)
    """

    validation: float
    setting: str
    seeds: np.ndarray
    mean: np.ndarray


def fold_result(
    fold: FoldData, make: CurveMaker, settings: Sequence[TreeSetting], n_seeds: int, criterion: Criterion
) -> FoldResult:
    """Choose the setting with the first seed, the rounds with every seed, and those of the mean with all."""
    tried = [make(fold, setting, 0) for setting in settings]
    figures = [criterion.best_step(fold.validation, curve.validation)[1] for curve in tried]
    best = int(np.argmax(figures))
    setting = settings[best]
    curves = [tried[best], *(make(fold, setting, seed) for seed in range(1, n_seeds))]
    mean = Curve(*(np.mean([getattr(curve, part) for curve in curves], axis=0) for part in ("validation", "test")))

    chosen = [(curve, *criterion.best_step(fold.validation, curve.validation)) for curve in (*curves, mean)]
    scores = [curve.test[step] for curve, step, _ in chosen]
    return FoldResult(
        float(np.mean([figure for _, _, figure in chosen[:-1]])),
        f"{setting.leaves} leaves, rate {setting.learning_rate:g}",
        np.array(scores[:-1]),
        scores[-1],
    )
