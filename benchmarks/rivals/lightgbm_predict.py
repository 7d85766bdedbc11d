"""LightGBM's own prediction, on our trees written in its text format."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from benchmarks.rivals.tree_rival import THREADS, Predict, trees_one_by_one
from rankwell.scoring.trees import TreeInputs

NAME = "LightGBM"
IS_INSTALLED = find_spec("lightgbm") is not None
# Neither NaN nor zero is a missing value, and missing values go left.
_DECISION = 2


def prepare(trees: TreeInputs, n_features: int) -> list[Predict]:
    import lightgbm

    booster = lightgbm.Booster(model_str=model_text(trees, n_features))
    return [lambda rows, n=n: booster.predict(rows, num_threads=n) for n in THREADS]


def model_text(trees: TreeInputs, n_features: int) -> str:
    """The trees as `Booster.save_model` would write them."""
    names = " ".join(f"Column_{i}" for i in range(n_features))
    infos = " ".join(["[0:1000]"] * n_features)
    head = (
        f"tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx={n_features - 1}\n"
        f"objective=regression\nfeature_names={names}\nfeature_infos={infos}\n\n"
    )
    blocks = [_tree_text(number, tree) for number, tree in enumerate(trees_one_by_one(trees))]
    return head + "\n\n".join(blocks) + "\n\nend of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n"


def _tree_text(number: int, tree: dict[str, np.ndarray]) -> str:
    n_leaves, n_nodes = len(tree["leaf"]), len(tree["left"])

    def line(key: str, values: np.ndarray | list[float]) -> str:
        return f"{key}=" + " ".join(repr(float(v)) if isinstance(v, np.floating) else str(v) for v in values)

    return "\n".join(
        [
            f"Tree={number}\nnum_leaves={n_leaves}\nnum_cat=0",
            line("split_feature", tree["feature"]),
            line("split_gain", [1] * n_nodes),
            line("threshold", tree["threshold"]),
            line("decision_type", [_DECISION] * n_nodes),
            line("left_child", tree["left"]),
            line("right_child", tree["right"]),
            line("leaf_value", tree["leaf"]),
            line("leaf_weight", [1] * n_leaves),
            line("leaf_count", [1] * n_leaves),
            line("internal_value", [0] * n_nodes),
            line("internal_weight", [0] * n_nodes),
            line("internal_count", [2] * n_nodes),
            "is_linear=0\nshrinkage=1",
        ]
    )
