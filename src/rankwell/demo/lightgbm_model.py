"""LightGBM's lambdarank, if it is installed: trained by LightGBM, evaluated by Rankwell."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.rankers.imported import ImportedRanker

IS_INSTALLED = find_spec("lightgbm") is not None

_ROUNDS = 300
_PATIENCE = 30
_SETTINGS: dict[str, Any] = {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [10],
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 50,
    "seed": 0,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


def train_lightgbm(train: RankingDataset, validation: RankingDataset, path: Path) -> ImportedRanker:
    """Train with early stopping, write LightGBM's own model file to `path`, and import it."""
    import lightgbm

    data = _as_lightgbm(train)
    booster = lightgbm.train(
        _SETTINGS,
        data,
        num_boost_round=_ROUNDS,
        valid_sets=[_as_lightgbm(validation, data)],
        callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
    )
    booster.save_model(str(path), num_iteration=booster.best_iteration)
    return ImportedRanker.from_model(path, feature_names=train.feature_names)


def _as_lightgbm(dataset: RankingDataset, reference: Any = None) -> Any:
    import lightgbm

    labels = dataset.labels.astype(np.int32)
    return lightgbm.Dataset(
        dataset.dense_features(), labels, group=dataset.query_sizes, reference=reference, params=_SETTINGS
    )
