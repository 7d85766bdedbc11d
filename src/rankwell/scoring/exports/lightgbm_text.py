"""LightGBM's text format (`Booster(model_file=...)`), for rankers that are sums of trees.

LightGBM counts a value within 1e-35 of zero as zero; otherwise decisions are the same, and so are sums up to the last
places of float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rankwell.kernels.scoring.rules import IN_CATEGORIES, ZERO_IS_MISSING
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.exports.numbers_as_text import float32_text, float64_text
from rankwell.scoring.exports.refusal import cannot_say
from rankwell.scoring.exports.tree_sum import tree_sum
from rankwell.scoring.trees import TreeInputs

TITLE = "LightGBM's text"

_CATEGORICAL, _DEFAULT_LEFT, _ZERO_IS_MISSING, _NAN_IS_MISSING = 1, 2, 4, 8
_OBJECTIVES = {"identity": "regression", "sigmoid": "binary sigmoid:1", "exp": "poisson"}
# A set of categories is written as one bit for each number up to its largest.
_LARGEST_CATEGORY = 2**20
# The range of a feature, in the header: it has no effect on scores.
_ANY_NUMBER = f"[{float32_text(float(np.finfo(np.float32).min))}:{float32_text(float(np.finfo(np.float32).max))}]"


def write_lightgbm(description: RankerDescription, first_index: int = 0) -> bytes:
    """The model as LightGBM's `save_model` writes it.

    first_index : the model's column that is the first feature: 0 for rows of the features, 1 for text that numbers
        features from 1, for which LightGBM has an empty column 0
    """
    whole = tree_sum(description, TITLE)
    if whole.activation not in _OBJECTIVES:
        raise cannot_say(TITLE, f"{whole.activation} of the sum of trees")
    trees = [text for group in whole.groups for text in _tree_texts(_from_column(group, first_index))]
    if whole.bias or not trees:
        trees.append(_constant_text(whole.bias))
    blocks = [f"Tree={number}\n{text}\n\n" for number, text in enumerate(trees)]
    n_columns = first_index + description.n_features
    header = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": n_columns - 1,
        "objective": _OBJECTIVES[whole.activation],
        "feature_names": " ".join(_names(description.feature_names, first_index)),
        "feature_infos": " ".join(_infos(n_columns, first_index)),
        "tree_sizes": " ".join(str(len(block.encode())) for block in blocks),
    }
    head = "tree\n" + "".join(f"{key}={value}\n" for key, value in header.items()) + "\n"
    end = "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"
    return (head + "".join(blocks) + end).encode()


def _from_column(trees: TreeInputs, first_index: int) -> TreeInputs:
    """The same trees where the first feature is column `first_index`."""
    return replace(trees, column_feature=trees.column_feature + np.int32(first_index))


def _names(names: tuple[str, ...], first_index: int) -> list[str]:
    """LightGBM's own names for features without one; blanks, which would end a name, become _ as there."""
    if names == default_feature_names(len(names)):
        return [f"Column_{i}" for i in range(first_index + len(names))]
    return ["Column_0"] * first_index + ["_".join(name.split()) for name in names]


def _infos(n_columns: int, first_index: int) -> list[str]:
    """What training saw of each column, which a ranker does not know, but for an empty column 0."""
    return ["none"] * n_columns if first_index == 0 else ["none", *[_ANY_NUMBER] * (n_columns - 1)]


def _tree_texts(trees: TreeInputs) -> Iterator[str]:
    for t in range(len(trees)):
        nodes, leaves = slice(*trees.node_ptr[t : t + 2].tolist()), slice(*trees.leaf_ptr[t : t + 2].tolist())
        if nodes.start == nodes.stop:
            yield _constant_text(float(trees.leaf_value[leaves.start]))
        else:
            yield _tree_text(trees, nodes, leaves)


def _constant_text(value: float) -> str:
    return f"num_leaves=1\nnum_cat=0\nleaf_value={float64_text(value)}\nis_linear=0\nshrinkage=1\n"


def _tree_text(trees: TreeInputs, nodes: slice, leaves: slice) -> str:
    column = trees.column[nodes]
    is_category = trees.column_kind[column] == IN_CATEGORIES
    sets = [_bit_words(trees, int(c)) for c in column[is_category]]
    threshold = [float32_text(value) for value in trees.threshold[nodes]]
    for number, node in enumerate(np.flatnonzero(is_category).tolist()):
        _check_category_node(trees, nodes.start + node)
        threshold[node] = str(number)
    # "In the set" is left there, and right here.
    left, right = trees.left[nodes], trees.right[nodes]
    n_nodes, n_leaves = len(column), leaves.stop - leaves.start
    weight = trees.leaf_weight[leaves] if len(trees.leaf_weight) else np.ones(n_leaves)
    of_nodes = _weights_of_nodes(left, right, weight)
    entries: dict[str, object] = {
        "num_leaves": n_leaves,
        "num_cat": len(sets),
        "split_feature": _joined(trees.column_feature[column]),
        "split_gain": _joined([0] * n_nodes),
        "threshold": " ".join(threshold),
        "decision_type": _joined(_decisions(trees, nodes)),
        "left_child": _joined(np.where(is_category, right, left)),
        "right_child": _joined(np.where(is_category, left, right)),
        "leaf_value": " ".join(map(float64_text, trees.leaf_value[leaves])),
        "leaf_weight": " ".join(map(float64_text, weight)),
        "leaf_count": _joined(np.round(weight).astype(np.int64)),
        "internal_value": _joined([0] * n_nodes),
        "internal_weight": " ".join(map(float64_text, of_nodes)),
        "internal_count": _joined(np.round(of_nodes).astype(np.int64)),
    }
    if sets:
        entries["cat_boundaries"] = _joined(np.cumsum([0, *map(len, sets)]))
        entries["cat_threshold"] = _joined([word for words in sets for word in words])
    entries |= {"is_linear": 0, "shrinkage": 1}
    return "".join(f"{key}={value}\n" for key, value in entries.items())


def _weights_of_nodes(left: np.ndarray, right: np.ndarray, leaf_weight: np.ndarray) -> np.ndarray:
    """The weight of all leaves below each node, which Shapley values are computed from."""
    weight = np.zeros(len(left))
    # Children come after their parents.
    for node in reversed(range(len(left))):
        for child in (left[node], right[node]):
            weight[node] += weight[child] if child >= 0 else leaf_weight[-1 - child]
    return weight


def _decisions(trees: TreeInputs, nodes: slice) -> np.ndarray:
    """How each node decides, as LightGBM's bits."""
    kind = trees.column_kind[trees.column[nodes]]
    numeric = np.where(kind == ZERO_IS_MISSING, _ZERO_IS_MISSING, _NAN_IS_MISSING)
    numeric = numeric + _DEFAULT_LEFT * trees.missing_left[nodes].astype(np.int64)
    return np.where(kind == IN_CATEGORIES, _CATEGORICAL, numeric)


def _check_category_node(trees: TreeInputs, node: int) -> None:
    if not trees.missing_left[node]:
        raise cannot_say(TITLE, "a test of categories whose missing values go with the set")
    if not 0 <= trees.threshold[node] < 1:
        raise cannot_say(TITLE, "a test of categories with a threshold outside 0 and 1")


def _bit_words(trees: TreeInputs, column: int) -> list[int]:
    """A column's categories as 32-bit words of a bit set."""
    categories = trees.categories_of(column)
    if len(categories) and categories[-1] > _LARGEST_CATEGORY:
        raise cannot_say(TITLE, f"the category {categories[-1]}, above {_LARGEST_CATEGORY}")
    words = [0] * (int(categories.max(initial=0)) // 32 + 1)
    for category in categories.tolist():
        words[category // 32] |= 1 << category % 32
    return words


def _joined(values: object) -> str:
    return " ".join(map(str, np.asarray(values).tolist()))
