"""RankLib's ensembles of trees: XML with a few tags, read without a parser of XML, whose entities could do harm.

A <split> holds <feature>, <threshold> and two splits, the left one first; or it holds <output> and is a leaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.imports.numbered_features import feature_number, finite_number
from rankwell.scoring.tree_builder import Tree, TreeBuilder
from rankwell.scoring.trees import TreeInputs

_PIECE = re.compile(r"<(?P<end>/?)(?P<tag>\w+)(?P<attributes>[^<>]*)>|(?P<text>[^<>]+)|(?P<wrong>[<>])")
_WEIGHT = re.compile(r"weight\s*=\s*\"([^\"]*)\"")
_VALUES = ("feature", "threshold", "output")


@dataclass
class _Split:
    values: dict[str, str] = field(default_factory=dict)
    children: list[_Split] = field(default_factory=list)


@dataclass
class _Ensemble:
    trees: list[tuple[float, _Split]] = field(default_factory=list)


def read_ensembles(content: str) -> TreeInputs:
    """All trees. Several ensembles, the bags of a forest, give the mean of their sums."""
    ensembles = list(_ensembles(content))
    if not ensembles or not any(ensemble.trees for ensemble in ensembles):
        raise FileFormatError("the RankLib model has no trees.")
    builder = TreeBuilder()
    for ensemble in ensembles:
        for weight, root in ensemble.trees:
            builder.add(_tree(builder, root, weight / len(ensembles)))
    return builder.build()


def _ensembles(content: str) -> Iterator[_Ensemble]:
    """The ensembles as nested splits; every tag is checked to be where it may be."""
    ensemble: _Ensemble | None = None
    weight: float | None = None
    open_splits: list[_Split] = []
    inside: str | None = None
    for piece in _PIECE.finditer(content):
        tag, is_end = piece["tag"], piece["end"] == "/"
        if piece["text"] is not None:
            _take_text(piece["text"], inside, open_splits)
        elif tag in _VALUES and open_splits and (inside == tag if is_end else inside is None):
            inside = None if is_end else tag
        elif tag == "split" and weight is not None and inside is None and not is_end:
            split = _Split()
            if open_splits:
                open_splits[-1].children.append(split)
            elif ensemble is not None:
                ensemble.trees.append((weight, split))
            open_splits.append(split)
        elif tag == "split" and is_end and open_splits and inside is None:
            open_splits.pop()
        elif tag == "tree" and ensemble is not None and not open_splits and is_end == (weight is not None):
            weight = None if is_end else _weight(piece["attributes"])
        elif tag == "ensemble" and weight is None and is_end == (ensemble is not None):
            if ensemble is not None:
                yield ensemble
            ensemble = None if is_end else _Ensemble()
        else:
            raise FileFormatError(f"the RankLib model has {piece[0][:40]!r} where it may not be.")
    if ensemble is not None:
        raise FileFormatError("the RankLib model was cut short: its last ensemble does not end.")


def _take_text(text: str, inside: str | None, open_splits: list[_Split]) -> None:
    if inside is None:
        if text.strip():
            raise FileFormatError(f"the RankLib model has the text {text.strip()[:40]!r} between its tags.")
    elif inside in open_splits[-1].values:
        raise FileFormatError(f"the RankLib model has a split with two values of {inside}.")
    else:
        open_splits[-1].values[inside] = text.strip()


def _weight(attributes: str) -> float:
    found = _WEIGHT.search(attributes)
    if found is None:
        raise FileFormatError("the RankLib model has a tree without a weight.")
    return float(np.float32(finite_number(found[1], "a tree's weight")))


def _tree(builder: TreeBuilder, root: _Split, weight: float) -> Tree:
    """Number nodes and leaves from the root down, level by level; no recursion, trees may be deep."""
    columns: list[int] = []
    thresholds: list[np.float32] = []
    leaves: list[float] = []
    children: list[list[int]] = []
    waiting: list[tuple[_Split, list[int] | None]] = [(root, None)]
    for split, siblings in waiting:
        if set(split.values) == {"output"} and not split.children:
            number = -1 - len(leaves)
            leaves.append(float(np.float32(finite_number(split.values["output"], "an output"))) * weight)
        elif set(split.values) == {"feature", "threshold"} and len(split.children) == 2:
            number = len(columns)
            columns.append(builder.column(feature_number(split.values["feature"], "a split's feature")))
            thresholds.append(np.float32(finite_number(split.values["threshold"], "a threshold")))
            children.append([])
            waiting.extend((child, children[number]) for child in split.children)
        else:
            raise FileFormatError("the RankLib model has a split that is neither a leaf nor a node with two children.")
        if siblings is not None:
            siblings.append(number)
    threshold = np.array(thresholds, dtype=np.float32)
    left, right = ([pair[side] for pair in children] for side in (0, 1))
    return Tree(columns, threshold, threshold >= 0, left, right, leaves)
