"""The first pass beside a ranker: what BM25 alone would have reached on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rankwell.cli.console import say
from rankwell.cli.figures import metric_text

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.metrics.conventions import Convention
    from rankwell.metrics.evaluation import Evaluation
    from rankwell.metrics.names import AnyMetric

# What `rankwell features` ranks by before a ranker does.
_USUAL = "bm25.whole"


def first_pass_feature(dataset: RankingDataset) -> str | None:
    """The feature that the first pass ranked by; None where the data does not have it or does not say."""
    names = dataset.feature_names or ()
    noted = None if dataset.candidates is None else dataset.candidates.first_pass
    return next((name for name in (noted, _USUAL) if name in names), None)


def measure_first_pass(
    parts: Mapping[str, RankingDataset], metrics: Sequence[AnyMetric], convention: Convention
) -> dict[str, Evaluation]:
    """The figures of the first pass on each part that has its feature."""
    from rankwell.data.scores import feature_scores
    from rankwell.metrics.evaluation import evaluate

    found = {}
    for part, dataset in parts.items():
        feature = first_pass_feature(dataset)
        if feature is not None:
            scores = feature_scores(dataset, feature)
            found[part] = evaluate(dataset, scores, metrics=metrics, convention=convention)
    return found


def note_if_worse(
    part: str, feature: str | None, ours: Evaluation, first_pass: Evaluation | None, *, quiet: bool
) -> None:
    """Say that a ranker is worse than the ranking it was given, by the first metric."""
    if feature is None or first_pass is None:
        return
    metric = next(iter(ours.mean))
    if ours.mean[metric] < first_pass.mean[metric]:
        say(
            f"note: {metric} {metric_text(ours.mean[metric])} on {part} is worse than that of {feature} alone, "
            f"{metric_text(first_pass.mean[metric])}: served without the ranker, documents would be ranked better",
            quiet=quiet,
        )
