"""LightGBM's JSON dump (`Booster.dump_model`): the same trees as nested objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.complaint import complaint
from rankwell.scoring.imports.import_choices import ImportChoices
from rankwell.scoring.imports.lightgbm_model import (
    MISSING_NAN,
    MISSING_NONE,
    MISSING_ZERO,
    NO_INFO,
    Header,
    Split,
    add_tree,
    check_header,
    describe,
    lists_of_categories,
    values_of_categories,
)
from rankwell.scoring.tree_builder import TreeBuilder

_MISSING_TYPES = {"None": MISSING_NONE, "Zero": MISSING_ZERO, "NaN": MISSING_NAN}


def read_lightgbm_json(content: dict[str, Any], choices: ImportChoices) -> RankerDescription:
    """The model in `content`, the result of `dump_model`."""
    header = _header(content)
    check_header(header)
    values = values_of_categories(header)
    builder = TreeBuilder()
    for number, tree in enumerate(content["tree_info"]):
        try:
            _add_tree(builder, tree["tree_structure"], values)
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, IndexError) as cause:
            raise FileFormatError(f"the LightGBM model's tree {number} is damaged ({complaint(cause)}).") from cause
    return describe(header, builder, choices)


def _header(content: dict[str, Any]) -> Header:
    try:
        names = tuple(str(name) for name in content["feature_names"])
        if len(names) != int(content["max_feature_idx"]) + 1:
            raise FileFormatError("the LightGBM model has a different number of feature names than of features.")
        return Header(
            objective=str(content.get("objective", "")),
            feature_names=names,
            n_classes=int(content["num_class"]),
            trees_per_round=int(content["num_tree_per_iteration"]),
            average_output=bool(content.get("average_output", False)),
            feature_infos=_feature_infos(content, names),
            pandas_categories=lists_of_categories(content.get("pandas_categorical")),
        )
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError) as cause:
        raise FileFormatError(f"the LightGBM model's header is incomplete ({complaint(cause)}).") from cause


def _feature_infos(content: dict[str, Any], names: tuple[str, ...]) -> tuple[str, ...] | None:
    """As the text format has them. The dump has ranges and categories by name, and leaves out features without."""
    infos = content.get("feature_infos")
    if not isinstance(infos, dict):
        return None
    return tuple(_info(infos[name]) if name in infos else NO_INFO for name in names)


def _info(info: dict[str, Any]) -> str:
    categories = info["values"]
    return ":".join(map(str, categories)) if categories else f"[{info['min_value']}:{info['max_value']}]"


def _add_tree(builder: TreeBuilder, root: dict[str, Any], values: Mapping[int, Sequence[int]]) -> None:
    """Number nodes and leaves from the root down, level by level; no recursion, trees may be deep."""
    nodes: list[dict[str, Any]] = []
    leaf_values: list[float] = []
    leaf_counts: list[float] = []
    children: list[list[int]] = []
    waiting: list[tuple[dict[str, Any], list[int] | None]] = [(root, None)]
    for item, siblings in waiting:
        if "split_feature" in item:
            number = len(nodes)
            nodes.append(item)
            children.append([])
            waiting.extend((item[side], children[number]) for side in ("left_child", "right_child"))
        else:
            if "leaf_const" in item or "leaf_coeff" in item:
                raise FileFormatError("the LightGBM model has linear leaves. Train it with linear_tree=false.")
            number = -1 - len(leaf_values)
            leaf_values.append(float(item["leaf_value"]))
            if "leaf_count" in item:
                leaf_counts.append(float(item["leaf_count"]))
        if siblings is not None:
            siblings.append(number)
    splits = [_split(node, left, right) for node, (left, right) in zip(nodes, children, strict=True)]
    # A single leaf has no count, or 0.
    add_tree(builder, splits, leaf_values, [1.0] if len(leaf_values) == 1 else leaf_counts, values)


def _split(node: dict[str, Any], left: int, right: int) -> Split:
    is_category = node["decision_type"] == "=="
    if not is_category and node["decision_type"] != "<=":
        raise ValueError(f"unknown decision_type {node['decision_type']!r}")
    return Split(
        feature=int(node["split_feature"]),
        threshold=0.0 if is_category else float(node["threshold"]),
        default_left=bool(node["default_left"]),
        missing_type=_MISSING_TYPES[node["missing_type"]],
        left=left,
        right=right,
        categories=[int(word) for word in str(node["threshold"]).split("||")] if is_category else None,
    )
