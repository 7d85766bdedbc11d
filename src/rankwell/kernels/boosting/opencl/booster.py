"""RankBoost on an OpenCL device: bins, weights and results stay there; the host reads them once per batch of rounds.

Pair weights need double precision. A device without it builds the histograms and searches them, and the host does the
remaining O(documents) work, as in the ATI Stream part of the 2010 paper.

Bins that do not fit the device's memory are sent through it block by block, every round (that paper's 1 − γ); then the
host waits once per round, to send the chosen feature's column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.kernels.boosting.bin_placement import place_bins
from rankwell.kernels.boosting.contract import BoostedRounds, BoostingSizes, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.documents import DocumentWeights
from rankwell.kernels.boosting.declarations import BINS, Control
from rankwell.kernels.boosting.opencl.feature_bins import FeatureBins
from rankwell.kernels.boosting.precision import LARGEST_R, QUERY_LANES, tolerance
from rankwell.kernels.device_report import DeviceReport, report_device
from rankwell.kernels.opencl.memory import free_bytes
from rankwell.kernels.opencl.program import opencl_context, opencl_program
from rankwell.kernels.threads import kernel_threads

_RECORD_ROUNDS = 1024
_GROUP_ITEMS = 256
_DOCS_PER_PART = 65536


def device_bytes(sizes: BoostingSizes, report: DeviceReport, **_: Any) -> int:
    """Bins that do not fit are streamed: three columns in nine tenths of what documents leave are enough."""
    return sizes.document_bytes + min(sizes.n_features, 3) * sizes.column_bytes * 10 // 9


def definitions(*, with_doubles: bool) -> tuple[str, ...]:
    """The macros of `boosting.cl`."""
    return ("WITH_DOUBLES",) if with_doubles else ()


class OpenClBooster:
    """A training run on an OpenCL device over queries in factorised form.

    Parameters
    ----------
    bins : uint8 (n_features, n_docs rounded up to 16)
        The layout "features" of `Binner`.
    n_features, n_bins : int
    queries : LevelledQueries
    weights : ScoreWeights
    n_halvings : int
        The learning rate is 2^−n_halvings.
    documents_on_host : bool, optional
        Keep the pair weights on the host; by default if the device has no double precision.
    memory : int, optional
        Bytes of device memory for bins; by default nine tenths of what the other arrays leave.
    n_jobs : int or None
        Threads of the host.
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_features: int,
        n_bins: int,
        queries: LevelledQueries,
        weights: ScoreWeights,
        *,
        n_halvings: int = 0,
        documents_on_host: bool | None = None,
        memory: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        import pyopencl

        self._opencl: Any = pyopencl
        context = opencl_context()
        has_doubles = "cl_khr_fp64" in context.devices[0].extensions
        self._on_host = not has_doubles if documents_on_host is None else documents_on_host
        self._n_jobs, self._n_halvings = n_jobs, n_halvings
        self._queue = pyopencl.CommandQueue(context)
        program = opencl_program("boosting/boosting", *definitions(with_doubles=not self._on_host))
        self._kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}
        self._queries, self._weights = queries, weights
        self._n_features, self._n_bins, self._stride = n_features, n_bins, bins.shape[1]
        self._place_search()
        self._place_bins(bins, memory)
        with kernel_threads(n_jobs):
            self._documents = DocumentWeights(queries, weights)
        if not self._on_host:
            self._place_documents()

    def _buffer(self, array: np.ndarray) -> Any:
        """A copy of `array` on the device."""
        flags = self._opencl.mem_flags
        return self._opencl.Buffer(
            opencl_context(), flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(array)
        )

    def _place_bins(self, bins: np.ndarray, memory: int | None) -> None:
        """As many features on the device as fit; the others stay on the host, in blocks to be streamed."""
        if memory is None:
            queries = self._queries
            sizes = BoostingSizes(queries.n_docs, queries.n_segments, queries.n_queries, self._n_features)
            memory = max(0, free_bytes() - sizes.document_bytes) * 9 // 10
        self.placement = place_bins(self._n_features, self._stride, memory, report_device("opencl").largest_buffer)
        self._bins = FeatureBins(self._queue, bins, self.placement)

    def _place_search(self) -> None:
        table = np.zeros((self._n_features, BINS), dtype=np.int32)
        self._pi = self._buffer(np.zeros(self._stride, dtype=np.int32))
        self._histogram, self._table = self._buffer(table), self._buffer(table)
        self._largest = self._buffer(np.zeros(self._n_features, dtype=np.int32))
        self._control_host = np.zeros(len(Control), dtype=np.int32)
        self._control = self._buffer(self._control_host)

    def _place_documents(self) -> None:
        queries, weights, documents = self._queries, self._weights, self._documents
        self._held = {
            "segment_ptr": self._buffer(queries.segment_ptr.astype(np.int32)),
            "query_segments": self._buffer(queries.query_segments.astype(np.int32)),
            "query_weight": self._buffer(queries.query_weight),
            "up": self._buffer(weights.up),
            "down": self._buffer(weights.down),
            "up_exponent": self._buffer(weights.up_exponent),
            "down_exponent": self._buffer(weights.down_exponent),
        }
        names = ("share", "step", "up_ratio", "down_ratio", "bridge", "below", "above")
        self._held |= {name: self._buffer(getattr(documents.arrays, name)) for name in names}
        self._total = self._buffer(np.array([documents.total]))
        self._lanes = self._buffer(np.zeros(QUERY_LANES))
        self._control_host[Control.ROUND] = weights.n_rounds
        self._control_host[Control.COMMON] = documents.common
        self._copy(self._control, self._control_host)
        self._record = self._buffer(np.zeros((4, _RECORD_ROUNDS), dtype=np.int32))
        self._record_total = self._buffer(np.zeros(_RECORD_ROUNDS))

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        batch = self._boost_on_host if self._on_host else self._boost_on_device
        rows: list[np.ndarray] = []
        losses: list[np.ndarray] = []
        for start in range(0, n_rounds, _RECORD_ROUNDS):
            chosen, loss = batch(min(_RECORD_ROUNDS, n_rounds - start))
            rows.append(chosen)
            losses.append(loss)
        feature, threshold, r = np.concatenate(rows, axis=1)
        return BoostedRounds(feature, threshold, r, np.concatenate(losses), bool(self._control_host[Control.FINISHED]))

    def _boost_on_device(self, n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Rounds that the host waits for only if bins are streamed: (feature, bin, r) int32 (3, done), and losses."""
        self._control_host[Control.RECORDED] = 0
        self._copy(self._control, self._control_host)
        places = tuple(self._held[name] for name in ("segment_ptr", "query_segments"))
        n_items, n_queries = self._queries.n_queries, np.int32(self._queries.n_queries)
        both = (self._held["up"], self._held["down"])
        exponents = (self._held["up_exponent"], self._held["down_exponent"])
        levels = tuple(self._held[name] for name in ("up_ratio", "down_ratio", "bridge", "below", "above", "share"))
        fixed = (self._held["query_weight"], self._held["step"], np.float64(self._queries.carry), n_queries)
        for _ in range(n_rounds):
            self._run("potentials", n_items, *places, n_queries, *both, *levels[3:5], self._total, self._control,
                      self._pi)  # fmt: skip
            self._search()
            if self._bins.streams:
                self._copy(self._control_host, self._control)
                if self._control_host[Control.FINISHED]:
                    break
            column, halvings = self._chosen_column(), np.int32(self._n_halvings)
            self._run("reweight", n_items, *places, n_queries, *column, halvings, *both, *exponents, self._control)
            self._run("sum_levels", n_items, *places, *fixed, *both, *exponents, *levels, self._control)
            self._run("lane_sums", QUERY_LANES, self._held["share"], n_queries, self._control, self._lanes)
            self._run("fold_lanes", 32, self._control, self._lanes)
            written = (self._record, self._record_total, np.int32(_RECORD_ROUNDS))
            self._run("total", 1, self._lanes, self._control, self._total, *written)
        self._copy(self._control_host, self._control)
        done = int(self._control_host[Control.RECORDED])
        record, total = np.empty((4, _RECORD_ROUNDS), dtype=np.int32), np.empty(_RECORD_ROUNDS)
        self._copy(record, self._record)
        self._copy(total, self._record_total)
        return record[:3, :done], np.ldexp(total[:done], record[3, :done])

    def _boost_on_host(self, n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Rounds whose O(documents) part the host does."""
        chosen: list[tuple[int, int, int]] = []
        losses: list[float] = []
        column = np.empty(self._stride, dtype=np.uint8)
        with kernel_threads(self._n_jobs):
            while len(chosen) < n_rounds and not self._control_host[Control.FINISHED]:
                self._copy(self._pi, self._documents.potentials())
                self._search()
                self._copy(self._control_host, self._control)
                if self._control_host[Control.FINISHED]:
                    break
                feature, threshold, r = (
                    int(self._control_host[place]) for place in (Control.FEATURE, Control.BIN, Control.R)
                )
                self._bins.read_column(feature, column)
                losses.append(self._documents.apply(column[: self._queries.n_docs] > threshold, r, self._n_halvings))
                chosen.append((feature, threshold, r))
                self._control_host[Control.FINISHED] = abs(r) >= LARGEST_R
        return np.array(chosen, dtype=np.int32).reshape(-1, 3).T, np.array(losses)

    def _search(self) -> None:
        """Integral histograms of π and the best weak ranker."""
        n_parts = max(1, self._stride // _DOCS_PER_PART)
        margin = np.int32(tolerance(self._queries.n_docs))
        for features, bins in self._bins.arrays():
            self._run("histograms", len(features) * n_parts * _GROUP_ITEMS, bins, self._pi, np.int32(self._stride),
                      np.int32(n_parts), np.int32(features.start), self._control, self._histogram)  # fmt: skip
        found = (self._table, self._largest)
        sizes = (np.int32(self._n_features), np.int32(self._n_bins))
        self._run("integrate", self._n_features, self._histogram, *sizes, *found, self._control)
        self._run("choose", 1, *found, *sizes, margin, self._control)

    def _chosen_column(self) -> tuple[Any, np.int32]:
        """The bins and the stride by which `reweight` finds the chosen feature's."""
        bins, stride = self._bins, np.int32(self._stride)
        if bins.column is None:
            return bins.resident[0][1], stride
        for features, array in bins.resident:
            sizes = (np.int32(features.start), np.int32(len(features)))
            self._run("take_column", self._stride // 16, array, stride, *sizes, self._control, bins.column)
        if bins.streams:
            bins.send_column(int(self._control_host[Control.FEATURE]))
        return bins.column, np.int32(0)

    def _run(self, name: str, n_items: int, *arguments: Any) -> None:
        """Queue a kernel over `n_items` work-items, rounded up to whole work-groups."""
        local = min(_GROUP_ITEMS, n_items)
        self._kernels[name](self._queue, (-(-n_items // local) * local,), (local,), *arguments)

    def _copy(self, target: Any, source: Any, **where: int) -> None:
        self._opencl.enqueue_copy(self._queue, target, source, **where)
