"""LightGBM's `lambdarank` with trees of any size, tree by tree: gradients as float32, and quantised."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset

IS_INSTALLED = find_spec("lightgbm") is not None
# Both layouts, since LightGBM's own choice is not always the faster one.
FORMS = {
    "LightGBM": ({"force_row_wise": True}, {"force_col_wise": True}),
    "LightGBM, quantised": (
        {"force_row_wise": True, "use_quantized_grad": True},
        {"force_col_wise": True, "use_quantized_grad": True},
    ),
}


def start_boosters(dataset: RankingDataset, n_leaves: int, n_threads: int) -> dict[str, list[Any]]:
    """By form, a booster for each layout, with features binned; `update` grows a tree."""
    import lightgbm

    labels = dataset.labels.astype(np.int32)
    common = {"verbose": -1, "max_bin": 255, "num_threads": n_threads}
    data = lightgbm.Dataset(dataset.dense_features(), labels, group=dataset.query_sizes, params=common).construct()
    settings = {**common, "objective": "lambdarank", "num_leaves": n_leaves, "min_data_in_leaf": 20}
    return {form: [lightgbm.Booster({**settings, **own}, data) for own in layouts] for form, layouts in FORMS.items()}
