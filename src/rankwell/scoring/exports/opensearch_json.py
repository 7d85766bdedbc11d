"""Requests of the learning-to-rank plugin of OpenSearch and Elasticsearch.

The model is the body of ``POST _ltr/_featureset/NAME/_createmodel``. Trees are of type `model/xgboost+json`, whose
nodes name features and say where a missing value goes; a linear ranker is of type `model/linear`, or, with a constant,
`model/ranklib`, which counts features in the order of the feature set. The plugin adds in float32.

A feature set is the body of ``PUT _ltr/_featureset/NAME``: a query for each feature that OpenSearch can compute.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rankwell.errors import ParameterError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.engine_features import opensearch_template
from rankwell.scoring.exports.numbers_as_text import float32_text
from rankwell.scoring.exports.ranklib_text import ranklib_text
from rankwell.scoring.exports.refusal import cannot_say
from rankwell.scoring.exports.tree_sum import check_by_document, check_plain_columns, tree_sum
from rankwell.scoring.feature_use import over_features, read_features
from rankwell.scoring.linear_form import is_linear, linear_form
from rankwell.scoring.tree_builder import float32_above
from rankwell.scoring.trees import TreeInputs

TITLE = "OpenSearch's learning to rank"

_OBJECTIVES = {"identity": "rank:ndcg", "sigmoid": "binary:logistic"}
# Readers of JSON accept 1,000 levels, of which a split takes two.
_DEEPEST = 400


def write_opensearch(description: RankerDescription, name: str, *, as_ranklib: bool = False) -> bytes:
    """The body of the request that makes the model `name`, in RankLib's text if that is asked for."""
    check_by_document(description, TITLE)
    description = _with_read_features(description)
    if as_ranklib:
        kind, definition = "model/ranklib", ranklib_text(description)
    else:
        kind, definition = _linear(description) if is_linear(description) else _trees(description)
    body = {"model": {"name": name, "model": {"type": kind, "definition": definition}}}
    return json.dumps(body, indent=1, allow_nan=False).encode() + b"\n"


def _with_read_features(description: RankerDescription) -> RankerDescription:
    """The ranker over the features that it reads: no query need be run for the others."""
    return over_features(description, read_features(description))


def _linear(description: RankerDescription) -> tuple[str, str]:
    form = linear_form(description)
    if form.intercept:
        return "model/ranklib", ranklib_text(description)
    weights = dict(zip(description.feature_names, form.coef.tolist(), strict=True))
    return "model/linear", json.dumps(weights, allow_nan=False)


def _trees(description: RankerDescription) -> tuple[str, str]:
    whole = tree_sum(description, TITLE)
    if whole.activation not in _OBJECTIVES:
        raise cannot_say(TITLE, f"{whole.activation} of the sum of trees")
    check_plain_columns(whole, TITLE)
    splits = [_tree(group, t, description.feature_names) for group in whole.groups for t in range(len(group))]
    if whole.bias or not splits:
        splits.append({"nodeid": 0, "leaf": whole.bias})
    definition = {"objective": _OBJECTIVES[whole.activation], "splits": splits}
    return "model/xgboost+json", json.dumps(definition, allow_nan=False)


def _tree(trees: TreeInputs, t: int, names: tuple[str, ...]) -> dict[str, Any]:
    """One tree as XGBoost dumps it: x < split_condition goes to `yes`. Nodes are numbered before leaves."""
    start, end, first_leaf = int(trees.node_ptr[t]), int(trees.node_ptr[t + 1]), int(trees.leaf_ptr[t])
    n_nodes = end - start
    leaves = trees.leaf_value[first_leaf : first_leaf + n_nodes + 1].tolist()
    made: dict[int, dict[str, Any]] = {
        -1 - leaf: {"nodeid": n_nodes + leaf, "leaf": value} for leaf, value in enumerate(leaves)
    }
    depth = np.zeros(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        for child in (trees.left[start + node], trees.right[start + node]):
            if child >= 0:
                depth[child] = depth[node] + 1
    if depth.max(initial=0) >= _DEEPEST:
        raise cannot_say(TITLE, f"trees of more than {_DEEPEST} levels: its JSON may not be nested so deep")
    condition = float32_above(trees.threshold[start:end])
    # Children come after their parents.
    for node in reversed(range(n_nodes)):
        left, right = made[int(trees.left[start + node])], made[int(trees.right[start + node])]
        made[node] = {
            "nodeid": node,
            "depth": int(depth[node]),
            "split": names[trees.column_feature[trees.column[start + node]]],
            "split_condition": float(float32_text(condition[node])),
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if trees.missing_left[start + node] else right)["nodeid"],
            "children": [left, right],
        }
    return made[0 if n_nodes else -1]


def write_feature_set(description: RankerDescription, name: str) -> bytes:
    """The body of the request that makes the feature set `name`: a query for each feature that the ranker reads."""
    features, unknown = [], []
    for feature in _with_read_features(description).feature_names:
        template = opensearch_template(feature)
        if template is None:
            unknown.append(feature)
        else:
            features.append(
                {"name": feature, "params": ["keywords"], "template_language": "mustache", "template": template}
            )
    if unknown:
        listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise ParameterError(
            f"OpenSearch has no query that computes {listed}. It has for bm25 of a field and for static numbers: train "
            "a ranker on those (rankwell.FeatureSet), or write the feature set by hand, with the ranker's names."
        )
    return json.dumps({"featureset": {"name": name, "features": features}}, indent=1).encode() + b"\n"
