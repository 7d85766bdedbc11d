"""ONNX models of one TreeEnsembleRegressor, as scikit-learn's, LightGBM's and XGBoost's converters write them.

Before it there may be casts, after it casts, changes of shape, a constant to add and a sigmoid; anything else is
refused by name. Features are float32 here, so that each threshold becomes the float32 that decides the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.numbered_features import MOST_FEATURES, describe_numbered
from rankwell.scoring.layers import Dense, Layer, Mean, Sum
from rankwell.scoring.tree_builder import Tree, TreeBuilder, float32_below, float32_not_above

_TREES = "TreeEnsembleRegressor"
_BEFORE = frozenset({"Cast", "Identity"})
_SHAPES = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "ReduceSum"})
# Whether the test is x < value rather than x <= value, and whether its outcome is turned round.
_MODES = {
    "BRANCH_LEQ": (False, False),
    "BRANCH_LT": (True, False),
    "BRANCH_GT": (False, True),
    "BRANCH_GTE": (True, True),
}
_LEAF = "LEAF"
# Tags of a model's fields: ir_version, and those that may follow it.
_VERSION_FIELD, _NEXT_FIELDS = 0x08, (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)


def is_onnx(head: bytes) -> bool:
    """Whether a file that begins so may be one: a protocol buffer whose first field is the version of its format."""
    return len(head) > 2 and head[0] == _VERSION_FIELD and head[1] < 64 and head[2] in _NEXT_FIELDS


def read_onnx(content: bytes) -> RankerDescription:
    """The model in `content`."""
    try:
        import onnx
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    except ImportError as cause:
        raise FileFormatError("an ONNX model needs the package onnx: pip install 'rankwell[onnx]'.") from cause
    try:
        graph = onnx.load_model_from_string(content).graph
    except DecodeError as cause:
        raise FileFormatError(f"the ONNX model is damaged or cut short ({cause}).") from cause
    constants = {tensor.name: _array(tensor) for tensor in graph.initializer}
    trees = [node for node in graph.node if node.op_type == _TREES]
    if len(trees) != 1:
        raise FileFormatError(f"the ONNX model has {len(trees)} operators {_TREES}; a model of one can be imported.")
    n_features = _check_before(graph, trees[0], constants)
    attributes = {attribute.name: _value(attribute) for attribute in trees[0].attribute}
    builder = TreeBuilder()
    n_read = _add_trees(builder, attributes)
    layers = (*_sum_of_trees(attributes), *_layers_after(graph, trees[0], constants))
    return describe_numbered((builder.build(),), layers, n_features or n_read)


def _array(tensor: Any) -> np.ndarray:
    """The numbers of a tensor. Those in another file are refused: its path could be any."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL:
        raise FileFormatError("the ONNX model has numbers in another file. Save it as one file.")
    return numpy_helper.to_array(tensor)


def _value(attribute: Any) -> Any:
    from onnx import AttributeProto, helper

    return _array(attribute.t) if attribute.type == AttributeProto.TENSOR else helper.get_attribute_value(attribute)


def _check_before(graph: Any, trees: Any, constants: dict[str, np.ndarray]) -> int:
    """The width of the graph's input, 0 if unknown, after checking that trees read it as it is."""
    inputs = {value.name: value for value in graph.input if value.name not in constants}
    made_by = {name: node for node in graph.node for name in node.output}
    name = trees.input[0]
    while name in made_by:
        node = made_by[name]
        if node.op_type not in _BEFORE:
            raise FileFormatError(
                f"the ONNX model's trees read the result of {node.op_type}; only casts can be imported."
            )
        name = node.input[0]
    if len(inputs) != 1 or name not in inputs:
        raise FileFormatError("the ONNX model must have one input, the matrix of features that its trees read.")
    shape = inputs[name].type.tensor_type.shape.dim
    width = int(shape[1].dim_value) if len(shape) == 2 else 0
    if not 0 <= width <= MOST_FEATURES:
        raise FileFormatError(f"the ONNX model has {width} features; at most {MOST_FEATURES} can be read.")
    return width


def _layers_after(graph: Any, trees: Any, constants: dict[str, np.ndarray]) -> list[Layer]:
    """What happens to the sum of trees before it is an output."""
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}
    layers: list[Layer] = []
    name = trees.output[0]
    while name not in outputs:
        if len(readers.get(name, [])) != 1:
            raise FileFormatError("the ONNX model's trees do not lead to one output.")
        node = readers[name][0]
        if node.op_type == "Add":
            other = [constants[term] for term in node.input if term != name and term in constants]
            if len(other) != 1 or other[0].size != 1:
                raise FileFormatError("the ONNX model adds something to its trees that is not one constant.")
            layers.append(Sum(float(other[0].reshape(-1)[0])))
        elif node.op_type == "Sigmoid":
            layers.append(Dense(np.ones((1, 1)), np.zeros(1), "sigmoid"))
        elif node.op_type not in _SHAPES:
            raise FileFormatError(f"the ONNX model applies {node.op_type} to its trees, which cannot be imported.")
        name = node.output[0]
    return layers


def _sum_of_trees(attributes: dict[str, Any]) -> list[Layer]:
    if int(attributes.get("n_targets", 1)) != 1:
        raise FileFormatError(
            f"the model gives {attributes['n_targets']} numbers per document, a ranker gives one score."
        )
    aggregate, transform = (
        attributes.get(name, default).decode()
        for name, default in (("aggregate_function", b"SUM"), ("post_transform", b"NONE"))
    )
    if aggregate not in ("SUM", "AVERAGE") or transform not in ("NONE", "LOGISTIC"):
        raise FileFormatError(
            f"the ONNX model's trees go through {aggregate} and {transform}, which cannot be imported."
        )
    base = float(np.sum(_numbers(attributes, "base_values")))
    layers: list[Layer] = [Sum(base)] if aggregate == "SUM" else [Mean(), Sum(base)]
    return [*layers, Dense(np.ones((1, 1)), np.zeros(1), "sigmoid")] if transform == "LOGISTIC" else layers


def _numbers(attributes: dict[str, Any], name: str) -> np.ndarray:
    """An attribute of floats, or the same as a tensor of doubles."""
    found = attributes.get(f"{name}_as_tensor", attributes.get(name, ()))
    return np.asarray(found, dtype=np.float64)


def _add_trees(builder: TreeBuilder, attributes: dict[str, Any]) -> int:
    """Append all trees; returns how many features they read."""
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    tree, node, feature, true, false = (np.asarray(attributes[f"nodes_{name}"], np.int64) for name in names)
    modes = [mode.decode() for mode in attributes["nodes_modes"]]
    values = _numbers(attributes, "nodes_values")
    tracks_true = np.asarray(attributes.get("nodes_missing_value_tracks_true", ()), np.int64)
    tracks_true = tracks_true if len(tracks_true) else np.zeros(len(tree), np.int64)
    if any(len(array) != len(tree) for array in (node, feature, true, false, modes, values, tracks_true)):
        raise FileFormatError("the ONNX model's lists of nodes differ in length.")
    _check_modes(modes)
    is_leaf = np.array([mode == _LEAF for mode in modes], dtype=bool)
    if not ((feature >= 0) & (feature < MOST_FEATURES))[~is_leaf].all():
        raise FileFormatError(f"the ONNX model's trees read a feature outside 0 to {MOST_FEATURES - 1}.")
    place = {key: number for number, key in enumerate(zip(tree.tolist(), node.tolist(), strict=True))}
    weights = _leaf_weights(attributes, place, len(tree))
    nodes = _Nodes(modes, feature, values, tracks_true != 0, true, false, tree, place)
    for root in sorted(np.unique(tree, return_index=True)[1].tolist()):
        builder.add(nodes.tree(builder, root, weights))
    return max(1, int(feature[~is_leaf].max(initial=-1)) + 1)


def _check_modes(modes: Sequence[str]) -> None:
    unknown = sorted(set(modes) - {*_MODES, _LEAF})
    if unknown:
        raise FileFormatError(f"the ONNX model's nodes have the mode {unknown[0]!r}; {', '.join(_MODES)} are read.")


def _leaf_weights(attributes: dict[str, Any], place: dict[tuple[int, int], int], n_nodes: int) -> np.ndarray:
    """The value of each node as a leaf."""
    weights = np.zeros(n_nodes)
    values = _numbers(attributes, "target_weights")
    for tree, node, value in zip(
        attributes["target_treeids"], attributes["target_nodeids"], values.tolist(), strict=True
    ):
        weights[place[int(tree), int(node)]] += value
    return weights


class _Nodes:
    """The nodes of all trees, as the operator lists them."""

    def __init__(
        self,
        modes: Sequence[str],
        feature: np.ndarray,
        values: np.ndarray,
        tracks_true: np.ndarray,
        true: np.ndarray,
        false: np.ndarray,
        tree: np.ndarray,
        place: dict[tuple[int, int], int],
    ) -> None:
        self._modes, self._feature, self._tracks_true, self._tree = modes, feature, tracks_true, tree
        self._true, self._false, self._place = true, false, place
        at_most = float32_not_above(values)
        # The largest float32 below a value: the largest not above it, or the one before if that is the value itself.
        below = np.where(at_most == values, float32_below(at_most), at_most)
        is_strict = np.array([_MODES.get(mode, (False, False))[0] for mode in modes], dtype=bool)
        self._threshold = np.where(is_strict, below, at_most)

    def tree(self, builder: TreeBuilder, root: int, weights: np.ndarray) -> Tree:
        """The tree that begins at a node; nodes and leaves are numbered from the root down, level by level."""
        columns: list[int] = []
        thresholds, missing = [], []
        leaves: list[float] = []
        children: list[list[int]] = []
        waiting: list[tuple[int, list[int] | None]] = [(root, None)]
        for at, siblings in waiting:
            if len(waiting) > len(self._modes):
                raise FileFormatError("the ONNX model's trees contain a cycle.")
            if self._modes[at] == _LEAF:
                number = -1 - len(leaves)
                leaves.append(float(weights[at]))
            else:
                number = len(columns)
                is_turned = _MODES[self._modes[at]][1]
                columns.append(builder.column(int(self._feature[at])))
                thresholds.append(self._threshold[at])
                missing.append(bool(self._tracks_true[at]) != is_turned)
                children.append([])
                pair = (self._false, self._true) if is_turned else (self._true, self._false)
                waiting.extend((self._child(at, int(side[at])), children[number]) for side in pair)
            if siblings is not None:
                siblings.append(number)
        left, right = ([pair[side] for pair in children] for side in (0, 1))
        return Tree(columns, np.array(thresholds, np.float32), missing, left, right, leaves)

    def _child(self, at: int, node: int) -> int:
        return self._place[int(self._tree[at]), node]
