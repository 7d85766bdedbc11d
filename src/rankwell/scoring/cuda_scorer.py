"""A description evaluated on a CUDA device: the ranker stays there, rows go in once and scores come out once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.kernels.cuda.buffers import Buffers, copy_to_host
from rankwell.kernels.cuda.graph import LaunchGraphs, size_class
from rankwell.kernels.scoring.cuda import launches as kernels
from rankwell.kernels.scoring.cuda import normalisation
from rankwell.kernels.scoring.rules import ACTIVATIONS, SUM_RUN
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, InputGroup, LogLinearInputs
from rankwell.scoring.layers import Dense, Layer, Mean, Sum
from rankwell.scoring.scorer import pack_programs, plain_arguments
from rankwell.scoring.tree_layout import TreeLayout, lay_out
from rankwell.scoring.trees import TreeInputs

# (features by column, documents, values to fill) of one group of inputs.
FillInputs = Callable[[Any, int, Any], None]


class CudaRankerScorer:
    """A description on the device, ready to score.

    The same results as `RankerScorer`: trees, linear and bucket inputs and sums to the bit, logarithms and
    exponentials to the last places. Any number of threads may call `score`: it serves one at a time.

    Attributes
    ----------
    nbytes : int
        Device memory that the ranker itself takes.
    feature_names : tuple of str
    lock : threading.Lock
        Held by `score`; to be held around `normalise` and `launch`, and until what they launched is done.
    """

    def __init__(self, description: RankerDescription) -> None:
        self.feature_names = description.feature_names
        self.lock = threading.Lock()
        self.n_features = description.n_features
        self.nbytes = 0
        self._n_inputs = description.n_inputs
        self._first_layer = description.layers[0]
        self._layers = [self._upload_layer(layer) for layer in description.layers]
        self._normaliser = description.normaliser.name
        of_normaliser = description.normaliser.arrays
        self._normaliser_arrays = self._upload(tuple(of_normaliser[name] for name in sorted(of_normaliser)))
        self._trees: _DeviceTrees | None = None
        self._inputs: list[tuple[int, FillInputs]] = []
        self._round_size = 1
        self._buffers = Buffers()
        self._graphs = LaunchGraphs()
        if description.n_rounds is not None:
            trees = description.inputs[0]
            assert isinstance(trees, TreeInputs)
            self._round_size = trees.round_size
            self._trees = self._upload_trees(trees)
        else:
            for group in description.inputs:
                self._inputs.append((len(group), self._fill_inputs(group, description.feature_names)))

    def pinned_rows(self, n_docs: int) -> np.ndarray:
        """A float32 array (n_docs, n_features) in page-locked memory: rows written there travel faster."""
        import cupyx

        return cupyx.empty_pinned((n_docs, self.n_features), dtype=np.float32)

    def score(self, rows: np.ndarray, *, n_rounds: int | None = None) -> np.ndarray:
        """Scores of rows, float32 (n_docs, n_features) in C order: float64 (n_docs,)."""
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise DataError(f"rows must have shape (n_docs, {self.n_features}), got {rows.shape}.")
        if len(rows) == 0:
            return np.empty(0)
        self._check_rounds(n_rounds)
        n_docs, size = len(rows), size_class(len(rows))
        with self.lock, self._graphs.stream as stream:
            on_device = self._buffers.device("rows", (size, self.n_features), np.float32)
            scores = self._buffers.pinned("scores", (size,), np.float64)

            def launch() -> None:
                copy_to_host(self._launch_rows(on_device, n_rounds), scores)

            on_device[:n_docs].set(np.ascontiguousarray(rows, dtype=np.float32), stream=stream)
            self._graphs.run(("to the host", size, n_rounds, self.generation), launch)
            stream.synchronize()
            return scores[:n_docs].copy()

    def score_on_device(self, rows: Any, *, n_rounds: int | None = None) -> Any:
        """The same for a CuPy array of rows: the scores stay on the device, in an array that is used again.

        One thread at a time, and its scores must have been used before the next call.
        """
        import cupy

        self._check_rounds(n_rounds)
        n_docs, size = len(rows), size_class(len(rows))
        callers = cupy.cuda.get_current_stream()
        with self._graphs.stream as stream:
            stream.wait_event(callers.record())
            on_device = self._buffers.device("rows", (size, self.n_features), np.float32)
            on_device[:n_docs] = rows
            scores = self._buffers.device("scores", (size,), np.float64)

            def launch() -> None:
                scores[:] = self._launch_rows(on_device, n_rounds)

            self._graphs.run(("on the device", size, n_rounds, self.generation), launch)
            callers.wait_event(stream.record())
        return scores[:n_docs]

    @property
    def generation(self) -> int:
        """What `launch` does may be recorded and replayed as long as this stays the same."""
        return self._buffers.generation

    def normalise(self, columns: Any, n_docs: int, query_ptr: Any, n_queries: Any, most_queries: int) -> None:
        """Launch the ranker's normaliser over columns of features as they were extracted.

        query_ptr : int64, on the device; n_queries : int64 (1,), on the device, at most `most_queries`
        """
        if self._normaliser == "standard":
            normalisation.standardise(columns, n_docs, *self._normaliser_arrays)
        elif self._normaliser != "none":
            fill_missing = self._normaliser == "letor"
            normalisation.scale_queries(columns, query_ptr, n_queries, most_queries, fill_missing=fill_missing)

    def launch(self, columns: Any, n_docs: int, *, n_rounds: int | None = None) -> Any:
        """Launch the evaluation of normalised columns on the current stream; the scores, float64 (n_docs,), stay there.

        columns : float32 (n_features, stride), on the device; stride is n_docs rounded up to 32
        """
        self._check_rounds(n_rounds)
        layers = self._layers
        if self._trees is not None:
            values = self._sum_trees(self._trees, columns, n_docs, n_rounds)
            layers = layers[1:]
        else:
            values = self._buffers.device("values", (self._n_inputs, columns.shape[1]), np.float64)
            first = 0
            for length, fill in self._inputs:
                fill(columns, n_docs, values[first : first + length])
                first += length
        for number, layer in enumerate(layers):
            values = layer(values, n_docs, f"layer {number}")
        return values[0, :n_docs]

    def _launch_rows(self, rows: Any, n_rounds: int | None) -> Any:
        """Whole size classes are evaluated: what lies behind the rows asked for is evaluated and never looked at."""
        columns = self._buffers.device("columns", (self.n_features, len(rows)), np.float32)
        kernels.transpose(rows, len(rows), columns)
        return self.launch(columns, len(rows), n_rounds=n_rounds)

    def _check_rounds(self, n_rounds: int | None) -> None:
        if n_rounds is None:
            return
        if self._trees is None:
            raise ParameterError("only a sum of trees has scores after some of its rounds; this ranker is none.")
        if not 0 < n_rounds * self._round_size <= self._trees.n_trees:
            most = self._trees.n_trees // self._round_size
            raise ParameterError(f"n_rounds must be between 1 and the model's {most}, got {n_rounds}.")

    def _sum_trees(self, trees: _DeviceTrees, columns: Any, n_docs: int, n_rounds: int | None) -> Any:
        n_trees = trees.n_trees if n_rounds is None else n_rounds * self._round_size
        n_runs = (n_trees + SUM_RUN - 1) // SUM_RUN
        runs = self._buffers.device("runs", (n_runs, columns.shape[1]), np.float64)
        trees.walk(columns, n_docs, n_trees, runs, write_values=False, buffers=self._buffers)
        out = self._buffers.device("sum", (1, columns.shape[1]), np.float64)
        layer = self._first_layer
        is_mean, bias = isinstance(layer, Mean), layer.bias if isinstance(layer, Sum) else 0.0
        kernels.add_runs(runs, n_docs, n_runs, n_trees if is_mean else 1.0, bias, out)
        return out

    def _fill_inputs(self, group: InputGroup, feature_names: tuple[str, ...]) -> FillInputs:
        if isinstance(group, TreeInputs):
            trees = self._upload_trees(group)
            return lambda columns, n_docs, out: trees.walk(
                columns, n_docs, trees.n_trees, out, write_values=True, buffers=self._buffers
            )
        if isinstance(group, ExpressionInputs):
            programs, _ = pack_programs(group, feature_names)
            arrays = self._upload((*programs, np.asarray(group.missing, np.float64)))
            return lambda columns, n_docs, out: kernels.expression_inputs(columns, n_docs, arrays, out)
        arrays = self._upload(plain_arguments(group))
        if isinstance(group, BucketInputs):
            return lambda columns, n_docs, out: kernels.bucket_inputs(columns, n_docs, arrays, out)
        is_log = isinstance(group, LogLinearInputs)
        return lambda columns, n_docs, out: kernels.line_inputs(columns, n_docs, arrays, out, logarithmic=is_log)

    def _upload(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        import cupy

        uploaded = tuple(cupy.asarray(np.ascontiguousarray(array)) for array in arrays)
        self.nbytes += sum(array.nbytes for array in uploaded)
        return uploaded

    def _upload_trees(self, trees: TreeInputs) -> _DeviceTrees:
        layout = lay_out(trees)
        node_ptr, _, _, _, words, word_value, child_shift, child_mask = layout.trees
        word_ptr = 2 * np.asarray(node_ptr) + np.arange(len(trees) + 1)
        arrays = self._upload((word_ptr, words, word_value))
        return _DeviceTrees(layout, self._upload(layout.columns), (*arrays, child_shift, child_mask), word_ptr)

    def _upload_layer(self, layer: Layer) -> Callable[[Any, int, str], Any]:
        if isinstance(layer, Dense):
            units = -len(layer.weights) % kernels.DENSE_UNITS
            padded = np.pad(np.asarray(layer.weights, np.float64).T, ((0, 0), (0, units)))
            weights, bias = self._upload((padded, np.asarray(layer.bias, np.float64)))
            activation = ACTIVATIONS.index(layer.activation)

            def run_dense(values: Any, n_docs: int, name: str) -> Any:
                out = self._buffers.device(name, (len(bias), values.shape[1]), np.float64)
                kernels.dense(values, n_docs, weights, bias, activation, out)
                return out

            return run_dense
        is_mean, shift = isinstance(layer, Mean), 0.0 if isinstance(layer, Mean) else layer.bias

        def run_sum(values: Any, n_docs: int, name: str) -> Any:
            n_runs = (len(values) + SUM_RUN - 1) // SUM_RUN
            runs = self._buffers.device(f"{name} runs", (n_runs, values.shape[1]), np.float64)
            kernels.sum_runs(values, n_docs, runs)
            out = self._buffers.device(name, (1, values.shape[1]), np.float64)
            kernels.add_runs(runs, n_docs, n_runs, len(values) if is_mean else 1.0, shift, out)
            return out

        return run_sum


class _DeviceTrees:
    """Trees on the device."""

    def __init__(
        self, layout: TreeLayout, columns: tuple[Any, ...], trees: tuple[Any, ...], word_ptr: np.ndarray
    ) -> None:
        self.n_trees = layout.n_trees
        self._n_bin_words = max(1, (layout.n_bin_columns + 3) // 4)
        self._columns = columns
        self._trees = trees
        starts = np.arange(0, max(layout.n_trees, 1), SUM_RUN)
        ends = np.minimum(starts + SUM_RUN, layout.n_trees)
        self._largest_run = int((word_ptr[ends] - word_ptr[starts]).max())

    def walk(self, columns: Any, n_docs: int, n_trees: int, out: Any, *, write_values: bool, buffers: Buffers) -> None:
        bins = buffers.device("bins", (self._n_bin_words, columns.shape[1]), np.uint32)
        kernels.bin_columns(columns, n_docs, self._columns, bins)
        kernels.walk_trees(bins, n_docs, self._trees, n_trees, self._largest_run, write_values=write_values, out=out)
