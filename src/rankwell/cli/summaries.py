"""What `rankwell info` reports about data, a ranker file, a ranker that can be trained, or this machine."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.cli.setting_texts import setting_texts, summary_text
from rankwell.cli.settings import parameters_of

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.rankers.base import Ranker

# More label levels than this (a listwise collection has hundreds) are summarised by their range.
_LEVELS_SHOWN = 10
_BLOCK = 65536


def summarise_machine() -> dict[str, Any]:
    """Versions, rankers by name, and devices by kind: whether each is usable, and its name or the remedy."""
    from rankwell.kernels.device_report import DEVICES, report_device
    from rankwell.rankers.registry import RANKERS
    from rankwell.version import __version__

    reports = [report_device(kind) for kind in DEVICES]
    return {
        "kind": "machine",
        "rankwell": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "rankers": list(RANKERS),
        "devices": {report.kind: {"usable": report.usable, "description": report.description} for report in reports},
    }


def summarise_data(dataset: RankingDataset) -> dict[str, Any]:
    """Sizes, labels, missing values."""
    return {
        "kind": "data",
        "n_docs": dataset.n_docs,
        "n_queries": dataset.n_queries,
        "n_features": dataset.n_features,
        "query_sizes": _spread(dataset.query_sizes),
        "labels": _summarise_labels(dataset.labels) if dataset.has_labels else None,
        "missing_values": _count_missing(dataset),
        "sparse": dataset.is_sparse,
        "comments": dataset.comments is not None,
        "feature_names": None if dataset.feature_names is None else list(dataset.feature_names),
    }


def summarise_ranker(ranker: Ranker) -> dict[str, Any]:
    """What was trained, how, and what was measured."""
    description = ranker.description_
    return {
        "kind": "ranker",
        "ranker": ranker.name,
        "parameters": _parameters(ranker),
        "chosen": ranker.chosen_,
        "path": path_rows(ranker),
        "n_features": description.n_features,
        "normaliser": description.normaliser.name,
        "n_inputs": sum(len(group) for group in description.inputs),
        "layers": [layer.kind for layer in description.layers],
        "training_steps": max((len(values) for values in ranker.history_.values()), default=0),
        "best_step": _best_step(ranker),
        "metrics": ranker.metrics_,
        "feature_names": list(description.feature_names),
    }


def path_rows(ranker: Ranker) -> list[dict[str, float]] | None:
    """The values of C that RankSVM tried, with the figures of each; None if it did not choose."""
    path = getattr(ranker, "path_", None)
    if path is None:
        return None
    return [
        {
            "C": point.C,
            "validation": point.validation,
            "objective": point.objective,
            "iterations": point.n_iterations,
            "products": point.n_products,
        }
        for point in path.points
    ]


def _best_step(ranker: Ranker) -> dict[str, Any] | None:
    """The training step that was best on the validation set, where one was watched."""
    for name, values in ranker.history_.items():
        if name.startswith("validation") and values:
            step = int(np.argmax(values))
            return {"step": step + 1, "figure": name, "value": float(values[step])}
    return None


def summarise_class(ranker: type[Ranker]) -> dict[str, Any]:
    """A ranker that can be trained: its parameters' defaults and their description."""
    return {
        "kind": "ranker class",
        "ranker": ranker.name,
        "parameters": _parameters(ranker()),
        "settings": {
            name: {"values": text.kind, "meaning": text.meaning} for name, text in setting_texts(ranker).items()
        },
        "description": summary_text(ranker),
    }


def _parameters(ranker: Ranker) -> dict[str, Any]:
    """In the constructor's order (get_params sorts by name)."""
    return {name: getattr(ranker, name) for name in parameters_of(type(ranker))}


def _summarise_labels(labels: np.ndarray) -> dict[str, Any]:
    levels, counts = np.unique(labels, return_counts=True)
    summary: dict[str, Any] = {"n_levels": len(levels), **_spread(labels)}
    if len(levels) <= _LEVELS_SHOWN:
        summary["counts"] = {f"{level:g}": int(count) for level, count in zip(levels, counts, strict=True)}
    return summary


def _spread(values: np.ndarray) -> dict[str, float]:
    if len(values) == 0:
        return {}
    return {"least": float(values.min()), "median": float(np.median(values)), "most": float(values.max())}


def _count_missing(dataset: RankingDataset) -> int:
    """The number of NaN; in blocks, because a mask of a memory-mapped file would be a quarter of its size."""
    values = dataset.features.data if dataset.is_sparse else dataset.features
    return sum(int(np.isnan(values[start : start + _BLOCK]).sum()) for start in range(0, len(values), _BLOCK))
