"""Evaluate a ranker description over rows.

The score of a document depends on that document alone (and on its query, where the normaliser does): the same bits come
out whether it is scored alone, in a batch, or on another number of threads. A sum of trees, the most frequent large
model, has a way of its own that keeps nothing but the sums; every other description fills blocks of inputs, kind by
kind, and runs the layers over them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.kernels.device import choose_device
from rankwell.kernels.scoring.rules import ACTIVATIONS
from rankwell.kernels.threads import kernel_threads
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.expression import parse_expression
from rankwell.scoring.inputs import (
    BucketInputs,
    ExpressionInputs,
    InputGroup,
    LinearInputs,
    LogLinearInputs,
)
from rankwell.scoring.layers import Dense, Layer, Mean, Sum
from rankwell.scoring.tree_layout import TreeLayout, lay_out
from rankwell.scoring.trees import TreeInputs

if TYPE_CHECKING:
    from rankwell.scoring.cuda_scorer import CudaRankerScorer

# Inputs held at a time, in bytes: enough blocks for every thread, little enough to stay near the caches.
_INPUT_BYTES = 2**23
# Rows of a sparse matrix made dense at a time, and numbers in them at most: text has very many features.
_SPARSE_ROWS = 4096
_SPARSE_NUMBERS = 2**24
# Up to so many documents, one after another is faster than a block of 64 (measured: 12 µs a document, 150 a block).
_FEW_DOCUMENTS = 12

FillInputs = Callable[[np.ndarray, np.ndarray], None]


def score_description(
    description: RankerDescription,
    dataset: RankingDataset,
    *,
    n_jobs: int | None = None,
    n_rounds: int | None = None,
    device: str = "cpu",
) -> np.ndarray:
    """Score every row of `dataset`, in the dataset's order; with `n_rounds`, by the first rounds of boosting alone.

    Returns
    -------
    float64 array (n_docs,)
    """
    features = description.normaliser.apply(dataset)
    score: Callable[[np.ndarray], np.ndarray]
    if choose_device(device, ("cpu", "cuda")) == "cpu":
        score = partial(prepared(description).score, n_jobs=n_jobs, n_rounds=n_rounds)
    else:
        score = partial(make_scorer(description, "cuda").score, n_rounds=n_rounds)
    if not sparse.issparse(features):
        return score(features)
    scores = np.empty(dataset.n_docs)
    at_a_time = max(1, min(_SPARSE_ROWS, _SPARSE_NUMBERS // max(1, dataset.n_features)))
    for start in range(0, dataset.n_docs, at_a_time):
        scores[start : start + at_a_time] = score(features[start : start + at_a_time].toarray())
    return scores


def make_scorer(description: RankerDescription, device: str = "cpu") -> RankerScorer | CudaRankerScorer:
    """`description` made ready to score on a device: "cpu", "cuda", or "auto" for CUDA where there is a device."""
    if choose_device(device, ("cpu", "cuda")) == "cpu":
        return RankerScorer(description)
    from rankwell.scoring.cuda_scorer import CudaRankerScorer

    return CudaRankerScorer(description)


class RankerScorer:
    """A description made ready to score: arranged once, called often.

    Rows are features as the layers of the description want them: a normaliser is not applied here.
    """

    def __init__(self, description: RankerDescription) -> None:
        self.n_features = description.n_features
        self._trees_in_a_round = 0
        self._trees: TreeLayout | None = None
        self._inputs: list[FillInputs] = []
        self._n_inputs = description.n_inputs
        self._layers = description.layers
        if description.n_rounds is not None:
            trees = description.inputs[0]
            assert isinstance(trees, TreeInputs)
            self._trees_in_a_round = trees.round_size
            self._trees = lay_out(trees)
        else:
            first = 0
            for group in description.inputs:
                self._inputs.append(_fill_inputs(group, description.feature_names, first))
                first += len(group)

    def score(self, rows: np.ndarray, *, n_jobs: int | None = None, n_rounds: int | None = None) -> np.ndarray:
        """Scores of rows.

        Parameters
        ----------
        rows : float32 array (n_docs, n_features), C order
        n_jobs : int, optional
            Threads; None is every core.
        n_rounds : int, optional
            Use only the first rounds of boosting: the trees' first ``n_rounds`` (times the trees of a round).

        Returns
        -------
        float64 array (n_docs,)
        """
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise DataError(f"rows must have shape (n_docs, {self.n_features}), got {rows.shape}.")
        if rows.dtype != np.float32 or not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(rows, dtype=np.float32)
        if self._trees is not None:
            return self._score_by_trees(rows, self._trees, n_jobs, n_rounds)
        if n_rounds is not None:
            raise ParameterError("only a sum of trees has scores after some of its rounds; this ranker is none.")
        return self._score_by_inputs(rows, n_jobs)

    def _score_by_trees(
        self, rows: np.ndarray, trees: TreeLayout, n_jobs: int | None, n_rounds: int | None
    ) -> np.ndarray:
        from rankwell.kernels.scoring.cpu.trees import sum_trees, sum_trees_one_by_one

        n_trees = trees.n_trees
        if n_rounds is not None:
            if not 0 < n_rounds * self._trees_in_a_round <= n_trees:
                most = n_trees // self._trees_in_a_round
                raise ParameterError(f"n_rounds must be between 1 and the model's {most}, got {n_rounds}.")
            n_trees = n_rounds * self._trees_in_a_round
        scores = np.empty(len(rows))
        if len(rows) <= _FEW_DOCUMENTS:
            sum_trees_one_by_one(rows, trees.columns, trees.trees, n_trees, trees.n_bin_columns, scores)
        else:
            with kernel_threads(n_jobs):
                sum_trees(rows, trees.columns, trees.trees, n_trees, trees.n_bin_columns, scores)
        first, *others = self._layers
        if isinstance(first, Mean):
            scores /= n_trees
        elif isinstance(first, Sum) and first.bias != 0.0:
            scores += first.bias
        if not others:
            return scores
        with kernel_threads(n_jobs):
            return _run_layers(others, scores[:, None, None])[:, 0, 0]

    def _score_by_inputs(self, rows: np.ndarray, n_jobs: int | None) -> np.ndarray:
        from rankwell.kernels.scoring.cpu.lanes import LANES

        scores = np.empty(len(rows))
        step = max(1, _INPUT_BYTES // (8 * LANES * max(self._n_inputs, 1))) * LANES
        with kernel_threads(n_jobs):
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                values = np.empty(((len(part) + LANES - 1) // LANES, self._n_inputs, LANES))
                for fill in self._inputs:
                    fill(part, values)
                scores[start : start + step] = _run_layers(self._layers, values)[:, 0].ravel()[: len(part)]
        return scores


_PREPARED: WeakKeyDictionary[RankerDescription, RankerScorer] = WeakKeyDictionary()


def prepared(description: RankerDescription) -> RankerScorer:
    """The evaluator of `description`, made at the first call and kept as long as the description is."""
    if description not in _PREPARED:
        _PREPARED[description] = RankerScorer(description)
    return _PREPARED[description]


def pack_programs(
    group: ExpressionInputs, feature_names: tuple[str, ...]
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], int]:
    """The group's expressions as programs one behind the other, and the size of the stack they need.

    (program_ptr, operation, operand, constant_ptr, constants): int64, int32, int32, int64, float64
    """
    programs = [parse_expression(text, feature_names) for text in group.expressions]
    arrays = (
        np.cumsum([0, *(len(program.operation) for program in programs)], dtype=np.int64),
        np.concatenate([np.empty(0, np.int32), *(program.operation for program in programs)]),
        np.concatenate([np.empty(0, np.int32), *(program.operand for program in programs)]),
        np.cumsum([0, *(len(program.constants) for program in programs)], dtype=np.int64),
        np.concatenate([np.empty(0), *(program.constants for program in programs)]),
    )
    return arrays, max((program.stack_size for program in programs), default=1)


def _fill_inputs(group: InputGroup, feature_names: tuple[str, ...], first: int) -> FillInputs:
    """What fills the inputs of `group`, the first of which is input `first`."""
    if isinstance(group, TreeInputs):
        return _fill_tree_inputs(lay_out(group), first)
    if isinstance(group, ExpressionInputs):
        return _fill_expression_inputs(group, feature_names, first)
    arguments = plain_arguments(group)

    def fill(rows: np.ndarray, values: np.ndarray) -> None:
        from rankwell.kernels.scoring.cpu import inputs as model_evaluation

        kernels: dict[type, Any] = {
            LinearInputs: model_evaluation.linear_inputs,
            LogLinearInputs: model_evaluation.log_linear_inputs,
            BucketInputs: model_evaluation.bucket_inputs,
        }
        kernels[type(group)](rows, *arguments, first, values)

    return fill


def _fill_tree_inputs(layout: TreeLayout, first: int) -> FillInputs:
    def fill(rows: np.ndarray, values: np.ndarray) -> None:
        from rankwell.kernels.scoring.cpu.trees import tree_inputs

        tree_inputs(rows, layout.columns, layout.trees, layout.n_bin_columns, first, values)

    return fill


def _fill_expression_inputs(group: ExpressionInputs, feature_names: tuple[str, ...], first: int) -> FillInputs:
    programs, stack_size = pack_programs(group, feature_names)
    missing = np.ascontiguousarray(group.missing, dtype=np.float64)

    def fill(rows: np.ndarray, values: np.ndarray) -> None:
        from rankwell.kernels.scoring.cpu.expressions import expression_inputs

        expression_inputs(rows, programs, missing, stack_size, first, values)

    return fill


def plain_arguments(group: LinearInputs | LogLinearInputs | BucketInputs) -> tuple[np.ndarray, ...]:
    """The group's arrays in the dtypes the kernels are compiled for, in the order they take them."""
    if isinstance(group, BucketInputs):
        names = {"feature": np.int32, "edge_ptr": np.int64, "edges": np.float32, "values": np.float64}
    else:
        names = {"feature": np.int32, "scale": np.float64, "offset": np.float64}
    names["missing"] = np.float64
    return tuple(np.ascontiguousarray(getattr(group, name), dtype=dtype) for name, dtype in names.items())


def _run_layers(layers: tuple[Layer, ...] | list[Layer], values: np.ndarray) -> np.ndarray:
    from rankwell.kernels.scoring.cpu.inputs import dense_layer, sum_layer

    for layer in layers:
        if isinstance(layer, Dense):
            weights = np.ascontiguousarray(layer.weights, dtype=np.float64)
            bias = np.ascontiguousarray(layer.bias, dtype=np.float64)
            values = dense_layer(values, weights, bias, ACTIVATIONS.index(layer.activation))
        elif isinstance(layer, Mean):
            values = sum_layer(values) / values.shape[1]
        else:
            values = sum_layer(values) + layer.bias
    return values
