"""Scores rows on a CUDA device: the ranker stays there; rows are uploaded once, scores downloaded once."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from rankwell.errors import DataError
from rankwell.kernels.cuda.buffers import Buffers, copy_to_host
from rankwell.kernels.cuda.graph import LaunchGraphs, size_class
from rankwell.kernels.scoring.cuda import launches, normalisation
from rankwell.kernels.scoring.cuda.table import INPUTS, LAYERS, UPLOADS
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.plan import Plan, make_plan


class CudaRankerScorer:
    """A description on the device, ready to score.

    The same results as `RankerScorer`: trees, linear and bucket inputs and sums bit for bit, logarithms and
    exponentials to the last places. Any number of threads may call `score`: calls run one at a time.

    Attributes
    ----------
    nbytes : int
        Device memory that the ranker itself uses.
    feature_names : tuple of str
    lock : threading.Lock
        Held by `score`. Hold it around `normalise` and `launch`, until the work they launched is done.
    """

    def __init__(self, description: RankerDescription) -> None:
        import cupy

        self.feature_names = description.feature_names
        self.lock = threading.Lock()
        self.n_columns = description.n_columns
        self._plan = _upload(make_plan(description))
        self._normaliser = description.normaliser.name
        of_normaliser = description.normaliser.arrays
        self._normaliser_arrays = [
            cupy.asarray(np.ascontiguousarray(of_normaliser[name])) for name in sorted(of_normaliser)
        ]
        self.nbytes = self._plan.nbytes + sum(array.nbytes for array in self._normaliser_arrays)
        self._buffers = Buffers()
        self._graphs = LaunchGraphs()

    def pinned_rows(self, n_docs: int) -> np.ndarray:
        """A float32 array (n_docs, n_columns) in page-locked memory: rows written there are copied faster."""
        import cupyx

        return cupyx.empty_pinned((n_docs, self.n_columns), dtype=np.float32)

    def score(self, rows: np.ndarray, *, n_rounds: int | None = None) -> np.ndarray:
        """Scores of rows, float32 (n_docs, n_columns) in C order: float64 (n_docs,)."""
        if rows.ndim != 2 or rows.shape[1] != self.n_columns:
            raise DataError(f"rows must have shape (n_docs, {self.n_columns}), got {rows.shape}.")
        if len(rows) == 0:
            return np.empty(0)
        self._plan.first_rounds(n_rounds)
        n_docs, size = len(rows), size_class(len(rows))
        with self.lock, self._graphs.stream as stream:
            on_device = self._buffers.device("rows", (size, self.n_columns), np.float32)
            scores = self._buffers.pinned("scores", (size,), np.float64)

            def launch() -> None:
                copy_to_host(self._launch_rows(on_device, n_rounds), scores)

            on_device[:n_docs].set(np.ascontiguousarray(rows, dtype=np.float32), stream=stream)
            self._graphs.run(("to the host", size, n_rounds, self.generation), launch)
            stream.synchronize()
            return scores[:n_docs].copy()

    def score_on_device(self, rows: Any, *, n_rounds: int | None = None) -> Any:
        """As `score`, for a CuPy array of rows: the scores stay on the device, in an array that is reused.

        Call it from one thread at a time, and use the scores before the next call.
        """
        import cupy

        self._plan.first_rounds(n_rounds)
        n_docs, size = len(rows), size_class(len(rows))
        callers = cupy.cuda.get_current_stream()
        with self._graphs.stream as stream:
            stream.wait_event(callers.record())
            on_device = self._buffers.device("rows", (size, self.n_columns), np.float32)
            on_device[:n_docs] = rows
            scores = self._buffers.device("scores", (size,), np.float64)

            def launch() -> None:
                scores[:] = self._launch_rows(on_device, n_rounds)

            self._graphs.run(("on the device", size, n_rounds, self.generation), launch)
            callers.wait_event(stream.record())
        return scores[:n_docs]

    @property
    def generation(self) -> int:
        """The work of `launch` may be recorded and replayed as long as this number stays the same."""
        return self._buffers.generation

    def normalise(self, columns: Any, n_docs: int, query_ptr: Any, n_queries: Any, most_queries: int) -> None:
        """Launch the ranker's normaliser over columns of extracted features.

        query_ptr : int64, on the device; n_queries : int64 (1,), on the device, at most `most_queries`
        """
        if self._normaliser == "standard":
            normalisation.standardise(columns, n_docs, *self._normaliser_arrays)
        elif self._normaliser != "none":
            fill_missing = self._normaliser == "letor"
            normalisation.scale_queries(columns, query_ptr, n_queries, most_queries, fill_missing=fill_missing)

    def launch(self, columns: Any, n_docs: int, *, n_rounds: int | None = None) -> Any:
        """Launch the scoring of normalised columns on the current stream; the scores, float64 (n_docs,), stay there.

        columns : float32 (n_columns, stride), on the device; stride is n_docs rounded up to 32
        """
        plan = self._plan.first_rounds(n_rounds)
        values = self._buffers.device("values", (plan.n_inputs, columns.shape[1]), np.float64)
        for group in plan.inputs:
            out = values[group.first : group.first + group.n_inputs]
            INPUTS[group.kind](columns, n_docs, group.arrays, out, self._buffers)
        for number, layer in enumerate(plan.layers):
            values = LAYERS[layer.kind](values, n_docs, layer.arrays, f"layer {number}", self._buffers)
        return values[0, :n_docs]

    def _launch_rows(self, rows: Any, n_rounds: int | None) -> Any:
        """Whole size classes are scored: rows after the requested ones are scored too, and ignored."""
        columns = self._buffers.device("columns", (self.n_columns, len(rows)), np.float32)
        launches.transpose(rows, len(rows), columns)
        return self.launch(columns, len(rows), n_rounds=n_rounds)


def _upload(plan: Plan) -> Plan:
    """The plan with its arrays on the device."""
    inputs = (group._replace(arrays=UPLOADS[group.kind](group.arrays)) for group in plan.inputs)
    layers = (layer._replace(arrays=UPLOADS[layer.kind](layer.arrays)) for layer in plan.layers)
    return replace(plan, inputs=tuple(inputs), layers=tuple(layers))
