"""Test figures of a collection's folds under `letor4`, each with the published one, and their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.harness import Benchmark
from benchmarks.published_tables import published_figures
from rankwell import evaluate
from rankwell.data.folds import FoldData
from rankwell.rankers.base import Ranker


class FoldFigures:
    """Evaluate each test fold once, with the ranker that validation chose.

    Parameters
    ----------
    algorithm : str
        Its name in the published tables.
    means : Mapping
        The published means of all folds, by collection and metric.
    """

    def __init__(
        self,
        bench: Benchmark,
        collection: str,
        metrics: Sequence[str],
        algorithm: str,
        means: Mapping[tuple[str, str], float],
    ) -> None:
        self._bench, self._collection, self._means = bench, collection, means
        self._published = published_figures(bench, algorithm, collection)
        self._figures: dict[str, list[float]] = {metric: [] for metric in metrics}

    def add(self, fold: FoldData, ranker: Ranker, note: str) -> None:
        test = evaluate(fold.test, ranker.predict(fold.test), metrics=list(self._figures), convention="letor4").mean
        for metric, figures in self._figures.items():
            figures.append(test[metric])
            self._bench.record(
                f"{self._collection} {fold.name}, test {metric}",
                value=test[metric],
                unit="",
                better="higher",
                paper=self._published.get((fold.name, metric)),
                note=note,
            )

    def record_means(self, note: str = "") -> None:
        for metric, figures in self._figures.items():
            published = self._means.get((self._collection, metric))
            self._bench.record(
                f"{self._collection}, mean of {len(figures)} folds, test {metric}",
                value=float(np.mean(figures)),
                unit="",
                better="higher",
                target=published,
                paper=published,
                note=note,
            )
