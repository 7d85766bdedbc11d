"""LightGBM's text format (`Booster.save_model`): key=value lines, one block per tree."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.complaint import complaint
from rankwell.scoring.imports.import_choices import ImportChoices
from rankwell.scoring.imports.lightgbm_model import (
    Header,
    Split,
    add_tree,
    check_header,
    describe,
    lists_of_categories,
    values_of_categories,
)
from rankwell.scoring.tree_builder import TreeBuilder

_PANDAS_CATEGORIES = "pandas_categorical:"
_CATEGORICAL, _DEFAULT_LEFT, _LARGEST_DECISION = 1, 2, 127


def read_lightgbm_text(text: str, choices: ImportChoices) -> RankerDescription:
    """The model in `text`, as LightGBM wrote it."""
    if "\nend of trees" not in text:
        raise FileFormatError("the LightGBM model was cut short: it has no line 'end of trees'.")
    end = text.index("\nend of trees")
    blocks = _blocks(text[:end])
    header = replace(_header(next(blocks)), pandas_categories=_pandas_categories(text[end:]))
    check_header(header)
    values = values_of_categories(header)
    builder = TreeBuilder()
    for number, block in enumerate(blocks):
        if block.get("Tree") != str(number):
            raise FileFormatError(f"the LightGBM model has tree {block.get('Tree')} where tree {number} should be.")
        try:
            _add_tree(builder, block, values)
        except FileFormatError:
            raise
        except (KeyError, ValueError, IndexError) as cause:
            raise FileFormatError(f"the LightGBM model's tree {number} is damaged ({complaint(cause)}).") from cause
    return describe(header, builder, choices)


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """The header's lines, then those of each tree, by key."""
    block: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("Tree="):
            yield block
            block = {}
        key, equals, value = line.partition("=")
        if equals or key.strip():
            block[key.strip()] = value
    yield block


def _header(block: dict[str, str]) -> Header:
    try:
        n_features = int(block["max_feature_idx"]) + 1
        names = tuple(block["feature_names"].split())
        if len(names) != n_features:
            raise FileFormatError(f"the LightGBM model has {n_features} features, but {len(names)} names.")
        infos = block.get("feature_infos", "").split()
        return Header(
            objective=block.get("objective", ""),
            feature_names=names,
            n_classes=int(block["num_class"]),
            trees_per_round=int(block["num_tree_per_iteration"]),
            average_output="average_output" in block,
            feature_infos=tuple(infos) if len(infos) == n_features else None,
        )
    except FileFormatError:
        raise
    except (KeyError, ValueError) as cause:
        raise FileFormatError(f"the LightGBM model's header is incomplete ({complaint(cause)}).") from cause


def _pandas_categories(end: str) -> list[list[Any]]:
    """The lists of the line that LightGBM's Python package writes after the model."""
    line = next((line for line in end.splitlines() if line.startswith(_PANDAS_CATEGORIES)), None)
    try:
        lists = json.loads(line.removeprefix(_PANDAS_CATEGORIES)) if line else None
    except (ValueError, RecursionError) as cause:
        raise FileFormatError(f"the LightGBM model's line pandas_categorical is damaged ({cause}).") from cause
    return lists_of_categories(lists)


def _add_tree(builder: TreeBuilder, block: dict[str, str], values: Mapping[int, Sequence[int]]) -> None:
    if block.get("is_linear", "0") != "0":
        raise FileFormatError("the LightGBM model has linear leaves. Train it with linear_tree=false.")
    leaf_values = [float(word) for word in block["leaf_value"].split()]
    if int(block["num_leaves"]) != len(leaf_values):
        raise ValueError("num_leaves does not match leaf_value")
    splits = [] if len(leaf_values) == 1 else list(_splits(block))
    leaf_counts = [float(word) for word in block.get("leaf_count", "").split()]
    # A single leaf has the count 0.
    add_tree(builder, splits, leaf_values, [1.0] if len(leaf_values) == 1 else leaf_counts, values)


def _splits(block: dict[str, str]) -> Iterator[Split]:
    sets = _category_sets(block) if int(block.get("num_cat", "0")) else []
    columns = (
        block[key].split() for key in ("split_feature", "threshold", "decision_type", "left_child", "right_child")
    )
    for feature, threshold, decision, left, right in zip(*columns, strict=True):
        bits = int(decision)
        if not 0 <= bits <= _LARGEST_DECISION:
            raise ValueError(f"unknown decision_type {decision}")
        is_category = bool(bits & _CATEGORICAL)
        yield Split(
            feature=int(feature),
            threshold=float(threshold),
            default_left=bool(bits & _DEFAULT_LEFT),
            missing_type=bits >> 2 & 3,
            left=int(left),
            right=int(right),
            categories=sets[int(float(threshold))] if is_category else None,
        )


def _category_sets(block: dict[str, str]) -> list[list[int]]:
    """The sets of a tree's categorical splits; LightGBM writes each as 32-bit words of a bit set."""
    bounds = [int(word) for word in block["cat_boundaries"].split()]
    words = [int(word) for word in block["cat_threshold"].split()]
    return [
        [32 * i + bit for i, word in enumerate(words[start:end]) for bit in range(32) if word >> bit & 1]
        for start, end in itertools.pairwise(bounds)
    ]
