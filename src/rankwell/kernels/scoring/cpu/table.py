"""The CPU kernels by kind, and estimates of their run time.

A kernel of inputs is called with (rows, arrays, first_input, out), a kernel of layers with (values, arrays), and it
returns the layer's outputs; rows, values and outputs as in `inputs`. Each runs on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.kernels.scoring import kinds
from rankwell.kernels.scoring.cpu.expressions import expression_inputs
from rankwell.kernels.scoring.cpu.inputs import bucket_inputs, linear_inputs, log_linear_inputs
from rankwell.kernels.scoring.cpu.layers import run_dense, run_sum
from rankwell.kernels.scoring.cpu.tree_walks import sum_trees_one_by_one
from rankwell.kernels.scoring.cpu.trees import sum_trees, tree_inputs, tree_scratch
from rankwell.kernels.scoring.kinds import TreeLayout, TreeSum

# Up to this many documents, scoring each alone is faster than a block of 64 (measured: 12 µs against 150).
_FEW_DOCUMENTS = 12


def _fill_trees(rows: np.ndarray, layout: TreeLayout, first_input: int, out: np.ndarray) -> None:
    scratch = tree_scratch(len(layout.columns.first_rank))
    tree_inputs(rows, layout.columns, layout.trees, first_input, scratch, out)


def _fill_tree_sum(rows: np.ndarray, forest: TreeSum, first_input: int, out: np.ndarray) -> None:
    # The only input: documents are stored one after another.
    scores = out.ravel()[: len(rows)]
    columns, trees, n_trees = forest.columns, forest.trees, forest.n_trees
    if len(rows) <= _FEW_DOCUMENTS:
        sum_trees_one_by_one(rows, tuple(columns), tuple(trees), n_trees, scores)
    else:
        sum_trees(rows, columns, trees, n_trees, tree_scratch(len(columns.first_rank)), scores)
    if forest.is_mean:
        scores /= n_trees
    if forest.bias != 0.0:
        scores += forest.bias


INPUTS: dict[str, Callable[[np.ndarray, Any, int, np.ndarray], None]] = {
    kinds.LINEAR: linear_inputs,
    kinds.LOG_LINEAR: log_linear_inputs,
    kinds.BUCKET: bucket_inputs,
    kinds.EXPRESSION: expression_inputs,
    kinds.TREE: _fill_trees,
    kinds.TREE_SUM: _fill_tree_sum,
}
LAYERS: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {kinds.DENSE: run_dense, kinds.SUM: run_sum}


def _tree_cost(layout: TreeLayout | TreeSum) -> float:
    sizes = np.diff(layout.trees.node_ptr)
    of_trees = np.where(sizes < kinds.NODE_SLOT, 0.045 * sizes, 3.0 * layout.trees.depth)
    of_trees = np.where(np.diff(layout.trees.test_ptr) > 0, 1.0, of_trees)
    return float(of_trees.sum()) + 4.0 * len(layout.columns.feature)


# Nanoseconds per document on one core, measured on an AMD EPYC: they determine how much work is worth a thread.
COSTS: dict[str, Callable[[Any], float]] = {
    kinds.LINEAR: lambda arrays: 0.9 * len(arrays.feature),
    kinds.LOG_LINEAR: lambda arrays: 3.0 * len(arrays.feature),
    kinds.BUCKET: lambda arrays: 3.3 * len(arrays.feature),
    kinds.EXPRESSION: lambda arrays: 0.8 * len(arrays.operation),
    kinds.TREE: _tree_cost,
    kinds.TREE_SUM: _tree_cost,
    kinds.DENSE: lambda arrays: 0.06 * arrays.weights.size + (2.0 * len(arrays.bias) if arrays.activation else 0.0),
    kinds.SUM: lambda arrays: 1.0,
}
