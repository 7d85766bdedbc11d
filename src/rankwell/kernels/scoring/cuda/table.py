"""The CUDA kernels by kind: the arrays uploaded for a plan's entry, and the launches for it on the current stream.

A kernel of inputs is called with (columns, n_docs, arrays, out, buffers), a kernel of layers with (values, n_docs,
arrays, name, buffers), and it returns the layer's outputs, in a buffer of that name. Arrays as in `launches`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankwell.kernels.cuda.buffers import Buffers
from rankwell.kernels.scoring import kinds
from rankwell.kernels.scoring.cuda import launches
from rankwell.kernels.scoring.kinds import DenseArrays, SumArrays, TreeArrays, TreeLayout, TreeSum
from rankwell.kernels.scoring.rules import SUM_RUN


class WalkArrays(NamedTuple):
    """Trees to walk, on the device. word_ptr : int64 (n_trees + 1,); the others as in `TreeArrays`.

    n_trees : how many there are; largest_run : words of the largest run of `SUM_RUN` trees
    """

    word_ptr: Any
    words: Any
    word_value: Any
    child_shift: Any
    child_mask: Any
    n_trees: int
    largest_run: int


def _upload(arrays: Any) -> Any:
    import cupy

    return type(arrays)(*(cupy.asarray(array) for array in arrays))


def _upload_trees(layout: TreeLayout | TreeSum) -> TreeLayout | TreeSum:
    return layout._replace(columns=_upload(layout.columns), trees=_upload_words(layout.trees))


def _upload_words(trees: TreeArrays) -> WalkArrays:
    import cupy

    n_trees = len(trees.node_ptr) - 1
    word_ptr = 2 * trees.node_ptr + np.arange(n_trees + 1)
    starts = np.arange(0, max(n_trees, 1), SUM_RUN)
    ends = np.minimum(starts + SUM_RUN, n_trees)
    return WalkArrays(
        word_ptr=cupy.asarray(word_ptr),
        words=cupy.asarray(trees.words),
        word_value=cupy.asarray(trees.word_value),
        child_shift=trees.child_shift,
        child_mask=trees.child_mask,
        n_trees=n_trees,
        largest_run=int((word_ptr[ends] - word_ptr[starts]).max()),
    )


def _upload_dense(layer: DenseArrays) -> DenseArrays:
    """The weights as (inputs, units), units padded with zeros to a multiple of `DENSE_UNITS`."""
    import cupy

    padding = -len(layer.weights) % launches.DENSE_UNITS
    padded = np.ascontiguousarray(np.pad(layer.weights.T, ((0, 0), (0, padding))))
    return layer._replace(weights=cupy.asarray(padded), bias=cupy.asarray(layer.bias))


def _fill_lines(columns: Any, n_docs: int, arrays: Any, out: Any, buffers: Buffers, *, logarithmic: bool) -> None:
    launches.line_inputs(columns, n_docs, arrays, out, logarithmic=logarithmic)


def _fill_buckets(columns: Any, n_docs: int, arrays: Any, out: Any, buffers: Buffers) -> None:
    launches.bucket_inputs(columns, n_docs, arrays, out)


def _fill_expressions(columns: Any, n_docs: int, arrays: Any, out: Any, buffers: Buffers) -> None:
    launches.expression_inputs(columns, n_docs, arrays, out)


def _fill_trees(columns: Any, n_docs: int, layout: Any, out: Any, buffers: Buffers) -> None:
    _walk(columns, n_docs, layout, layout.trees.n_trees, out, buffers, write_values=True)


def _fill_tree_sum(columns: Any, n_docs: int, forest: TreeSum, out: Any, buffers: Buffers) -> None:
    n_runs = -(-forest.n_trees // SUM_RUN)
    runs = buffers.device("runs", (n_runs, columns.shape[1]), np.float64)
    _walk(columns, n_docs, forest, forest.n_trees, runs, buffers, write_values=False)
    launches.add_runs(runs, n_docs, n_runs, forest.n_trees if forest.is_mean else 1.0, forest.bias, out)


def _walk(
    columns: Any,
    n_docs: int,
    layout: TreeLayout | TreeSum,
    n_trees: int,
    out: Any,
    buffers: Buffers,
    *,
    write_values: bool,
) -> None:
    n_bin_words = max(1, (len(layout.columns.first_rank) + 3) // 4)
    bins = buffers.device("bins", (n_bin_words, columns.shape[1]), np.uint32)
    launches.bin_columns(columns, n_docs, layout.columns, bins)
    *words, _, largest_run = layout.trees
    launches.walk_trees(bins, n_docs, tuple(words), n_trees, largest_run, write_values=write_values, out=out)


def _run_dense(values: Any, n_docs: int, layer: DenseArrays, name: str, buffers: Buffers) -> Any:
    out = buffers.device(name, (len(layer.bias), values.shape[1]), np.float64)
    launches.dense(values, n_docs, layer.weights, layer.bias, layer.activation, out)
    return out


def _run_sum(values: Any, n_docs: int, layer: SumArrays, name: str, buffers: Buffers) -> Any:
    n_runs = -(-len(values) // SUM_RUN)
    runs = buffers.device(f"{name} runs", (n_runs, values.shape[1]), np.float64)
    launches.sum_runs(values, n_docs, runs)
    out = buffers.device(name, (1, values.shape[1]), np.float64)
    launches.add_runs(runs, n_docs, n_runs, len(values) if layer.is_mean else 1.0, layer.bias, out)
    return out


UPLOADS: dict[str, Callable[[Any], Any]] = {
    kinds.LINEAR: _upload,
    kinds.LOG_LINEAR: _upload,
    kinds.BUCKET: _upload,
    kinds.EXPRESSION: _upload,
    kinds.TREE: _upload_trees,
    kinds.TREE_SUM: _upload_trees,
    kinds.DENSE: _upload_dense,
    kinds.SUM: lambda layer: layer,
}
INPUTS: dict[str, Callable[[Any, int, Any, Any, Buffers], None]] = {
    kinds.LINEAR: partial(_fill_lines, logarithmic=False),
    kinds.LOG_LINEAR: partial(_fill_lines, logarithmic=True),
    kinds.BUCKET: _fill_buckets,
    kinds.EXPRESSION: _fill_expressions,
    kinds.TREE: _fill_trees,
    kinds.TREE_SUM: _fill_tree_sum,
}
LAYERS: dict[str, Callable[[Any, int, Any, str, Buffers], Any]] = {kinds.DENSE: _run_dense, kinds.SUM: _run_sum}
