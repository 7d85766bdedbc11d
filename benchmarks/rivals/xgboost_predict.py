"""XGBoost's own prediction (`inplace_predict`, its fastest call), on our trees put into a model of its JSON format."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.rivals.tree_rival import THREADS, Predict, trees_one_by_one
from rankwell.scoring.trees import TreeInputs

NAME = "XGBoost"
IS_INSTALLED = find_spec("xgboost") is not None


def prepare(trees: TreeInputs, n_features: int) -> list[Predict]:
    import xgboost

    matrix = xgboost.DMatrix(np.zeros((2, n_features), np.float32), np.array([0.0, 1.0]))
    pattern = xgboost.train({"objective": "reg:squarederror", "base_score": 0.0}, matrix, 1)
    model = json.loads(bytes(pattern.save_raw("json")))
    inner = model["learner"]["gradient_booster"]["model"]
    parts = trees_one_by_one(trees)
    inner["trees"] = [_tree(number, part, n_features) for number, part in enumerate(parts)]
    inner["tree_info"] = [0] * len(parts)
    inner["iteration_indptr"] = list(range(len(parts) + 1))
    inner["gbtree_model_param"]["num_trees"] = str(len(parts))
    content = json.dumps(model).encode()
    boosters = [xgboost.Booster({"nthread": n}, model_file=bytearray(content)) for n in THREADS]
    return [lambda rows, one=one: one.inplace_predict(rows) for one in boosters]


def _tree(number: int, part: dict[str, np.ndarray], n_features: int) -> dict[str, Any]:
    """One tree in XGBoost's form: siblings next to each other, and x <= t as x < the float32 above t."""
    codes, children, parents = _siblings_together(part)
    n_all, is_node = len(codes), codes >= 0
    node, leaf = np.maximum(codes, 0), np.maximum(-1 - codes, 0)
    above = np.nextafter(part["threshold"], np.float32(np.inf))
    return {
        "base_weights": [0.0] * n_all,
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": is_node.astype(int).tolist(),
        "id": number,
        "left_children": children.tolist(),
        "loss_changes": [0.0] * n_all,
        "parents": parents.tolist(),
        "right_children": np.where(is_node, children + 1, -1).tolist(),
        "split_conditions": np.where(is_node, above[node], part["leaf"][leaf]).tolist(),
        "split_indices": np.where(is_node, part["feature"][node], 0).tolist(),
        "split_type": [0] * n_all,
        "sum_hessian": [1.0] * n_all,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n_all),
            "size_leaf_vector": "1",
        },
    }


def _siblings_together(part: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Our node or leaf for each of XGBoost's, the place of its left child (-1), and of its parent."""
    codes, children, parents = [0], [], [2147483647]
    for place, code in enumerate(codes):
        if code < 0:
            children.append(-1)
            continue
        children.append(len(codes))
        codes += [int(part["left"][code]), int(part["right"][code])]
        parents += [place, place]
    return np.array(codes), np.array(children), np.array(parents)
