"""The columns of data for a ranker: as many as it was trained on, and in that order."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.kernels.disk_arrays import give_back, is_on_disk, row_blocks, zeros_beside
from rankwell.scoring.description import RankerDescription, default_feature_names

_NAMED_IN_ERRORS = 5


def in_order_of(description: RankerDescription, dataset: RankingDataset, reader: str) -> RankingDataset:
    """The dataset with its columns in the order that the ranker reads them; `reader` names it in messages.

    Columns with names are taken by name, wherever they are. Columns without names, or names for a ranker that was
    trained without them, are taken by place.
    """
    return columns_in_order(description.feature_names, dataset, reader)


def columns_in_order(wanted: tuple[str, ...], dataset: RankingDataset, reader: str) -> RankingDataset:
    """The dataset with the columns `wanted`, f1, f2, ... where they have no names."""
    if dataset.n_features != len(wanted):
        raise DataError(
            f"X has {dataset.n_features} features, but {reader} is expecting {len(wanted)} features as input. "
            f"{_difference(wanted, dataset)}"
        )
    names = dataset.feature_names
    if names is None or names == wanted:
        return dataset
    place_of = {name: place for place, name in enumerate(names)}
    if place_of.keys() == set(wanted):
        return _with_columns(dataset, [place_of[name] for name in wanted], wanted)
    if wanted == default_feature_names(len(wanted)):
        return dataset
    raise DataError(
        f"the columns must be those that {reader} was trained on, in any order. {_difference(wanted, dataset)}"
    )


def _with_columns(dataset: RankingDataset, places: list[int], names: tuple[str, ...]) -> RankingDataset:
    chosen = dataset.replace(features=_columns_taken(dataset.features, places))
    chosen.feature_names = names
    return chosen


def _columns_taken(features: Any, places: list[int]) -> Any:
    if not is_on_disk(features):
        return features[:, places]
    taken = zeros_beside(features, (features.shape[0], len(places)), np.float32)
    for rows in row_blocks(features):
        taken[rows] = features[rows][:, places]
        give_back(taken, rows)
    return taken


def _difference(wanted: tuple[str, ...], dataset: RankingDataset) -> str:
    """Which names are absent and which are not known; the remedy where there are no names."""
    names, n_features = dataset.feature_names, dataset.n_features
    if names is None or wanted == default_feature_names(len(wanted)):
        if n_features > len(wanted):
            return (
                "Pass the columns that it was trained on; a model of RankLib or svm_rank that does not read the last "
                f"ones is imported with n_features={n_features}, and one of LightGBM or XGBoost that was trained on "
                "arrays with first_index=0."
            )
        return (
            "Absent last columns of a text file can be filled with read(path, n_features=...). A model of LightGBM or "
            "XGBoost that was trained from text which numbers features from 1 is imported with first_index=1."
        )
    absent, unknown = [name for name in wanted if name not in names], [name for name in names if name not in wanted]
    parts = [f"{what}: {_listed(some)}." for what, some in (("Absent", absent), ("Not known", unknown)) if some]
    return " ".join(parts)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_IN_ERRORS} more" if len(names) > _NAMED_IN_ERRORS else ""
    return ", ".join(map(repr, names[:_NAMED_IN_ERRORS])) + more
