"""RankBoost on a CUDA device: bins, weights and results stay there; the host reads them once per batch of rounds.

A batch is a replay of CUDA graphs, which saves launches. Bins that do not fit the device's memory
are streamed through it feature block by feature block, every round (the ATI paper's 1 − γ); then the host waits once
per round, to send the chosen feature's column.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwell.kernels.boosting.bin_placement import place_bins
from rankwell.kernels.boosting.contract import BoostedRounds, BoostingSizes, LevelledQueries, ScoreWeights
from rankwell.kernels.boosting.cpu.weights import level_ratios
from rankwell.kernels.boosting.declarations import (
    BINS,
    COLUMNS,
    CONTROL,
    QUERIES,
    RECORD,
    SEGMENT_FIELDS,
    TILE,
    WEIGHTS,
)
from rankwell.kernels.boosting.precision import tolerance
from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.device_report import DeviceReport

_ROUNDS_PER_GRAPH = 16
_RECORD_ROUNDS = 1024
_HISTOGRAM_THREADS = 1024
_QUERY_THREADS = 256
_COLUMN_BYTES = BINS * COLUMNS * 4  # one feature's histogram
_MOST_FEATURES = 5  # histograms per block; with six there are too few registers (H200: 0.234 against 0.240 ms)


def device_bytes(sizes: BoostingSizes, report: DeviceReport, **_: Any) -> int:
    """Bins that do not fit are streamed: three columns in nine tenths of the free memory are enough."""
    return sizes.document_bytes + min(sizes.n_features, 3) * sizes.column_bytes * 10 // 9


class CudaBooster:
    """A training run on a CUDA device over queries in factorised form.

    Parameters
    ----------
    bins : uint8 (n_features, n_docs rounded up to 16)
        The layout "features" of `Binner`, in the host's memory; or a CuPy array already on the device.
    n_features, n_bins : int
    queries : LevelledQueries
    weights : ScoreWeights
    n_halvings : int
        The learning rate is 2^−n_halvings.
    memory : int, optional
        Bytes of device memory to use; by default nine tenths of what is free.
    """

    def __init__(
        self,
        bins: Any,
        n_features: int,
        n_bins: int,
        queries: LevelledQueries,
        weights: ScoreWeights,
        *,
        n_halvings: int = 0,
        memory: int | None = None,
    ) -> None:
        import cupy

        self._cupy = cupy
        self._n_halvings = n_halvings
        self._n_features, self._n_bins = n_features, n_bins
        self._queries = queries
        self._stride = int(bins.shape[1])
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._choose_kernels()
        with self._stream:
            self._place_documents(weights)
            self._place_bins(bins, memory)
            self._start(weights)
            self._graphs: dict[int, Any] = {}

    @property
    def streams(self) -> bool:
        """Whether some of the bins are streamed through the device every round instead of staying there."""
        return bool(self._host_blocks)

    def _choose_kernels(self) -> None:
        attributes = self._cupy.cuda.Device().attributes
        group = max(1, min(_MOST_FEATURES, attributes["MaxSharedMemoryPerBlockOptin"] // _COLUMN_BYTES))
        width = _lanes_per_query(self._queries)
        module = cuda_module("boosting/boosting", *definitions(group, width))
        names = ("potentials", "histograms", "choose", "reweight", "recentre")
        self._kernels = {name: module.get_function(name) for name in names}
        self._shared = group * _COLUMN_BYTES
        self._kernels["histograms"].max_dynamic_shared_size_bytes = self._shared
        blocks = min(
            attributes["MaxThreadsPerMultiProcessor"] // _HISTOGRAM_THREADS,
            attributes["MaxSharedMemoryPerMultiprocessor"] // (self._shared + 1024),
        )
        self._histogram_blocks = attributes["MultiProcessorCount"] * max(1, blocks)
        self._query_blocks = -(-self._queries.n_queries * width // _QUERY_THREADS)
        # Mostly it has nothing to do: then fewer blocks are better.
        self._recentre_blocks = min(self._query_blocks, 8 * attributes["MultiProcessorCount"])

    def _place_documents(self, weights: ScoreWeights) -> None:
        """The arrays by document, segment or query, on the device."""
        cupy, queries = self._cupy, self._queries
        n_tiles = -(-self._stride // TILE)
        self._pi = cupy.zeros(n_tiles * TILE, dtype=np.int32)
        self._held: dict[str, Any] = {
            "segment_ptr": cupy.asarray(queries.segment_ptr, dtype=np.int32),
            "query_segments": cupy.asarray(queries.query_segments, dtype=np.int32),
            "query_weight": cupy.asarray(queries.query_weight),
            "step": cupy.asarray(queries.step),
            "up": cupy.array(weights.up),
            "down": cupy.array(weights.down),
            "up_exponent": cupy.array(weights.up_exponent),
            "down_exponent": cupy.array(weights.down_exponent),
            "share": cupy.zeros(queries.n_queries),
            **{name: cupy.zeros(queries.n_segments) for name in SEGMENT_FIELDS},
        }
        numbers = {"carry": float(queries.carry), "n_queries": queries.n_queries}
        self._queries_struct = QUERIES.pack(**self._held, **numbers)
        self._weights_struct = WEIGHTS.pack(**self._held)
        self._record = {
            name: cupy.zeros(_RECORD_ROUNDS, dtype=np.float64 if name == "total" else np.int32)
            for _, name, _ in RECORD.fields
        }
        self._record_struct = RECORD.pack(**self._record)
        self._histogram = cupy.zeros((self._n_features, BINS), dtype=np.int32)
        self._table = cupy.zeros((self._n_features, BINS), dtype=np.int32)
        self._largest = cupy.zeros(self._n_features, dtype=np.int32)

    def _place_bins(self, bins: Any, memory: int | None) -> None:
        """As many features on the device as fit; the others stay on the host, in blocks to be streamed."""
        cupy = self._cupy
        self._host_blocks: list[tuple[int, np.ndarray]] = []
        if isinstance(bins, cupy.ndarray):
            self._bins = bins
            return
        room = int(cupy.cuda.runtime.memGetInfo()[0] * 0.9) if memory is None else memory
        placement = place_bins(self._n_features, self._stride, room)
        if placement.streamed:
            self._host_blocks = [(block.start, bins[block.start : block.stop]) for block in placement.streamed]
            longest = len(placement.streamed[0])
            self._staging = [cupy.empty((longest, self._stride), dtype=np.uint8) for _ in range(2)]
            self._column = cupy.empty(self._stride, dtype=np.uint8)
            self._ready = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            self._used = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            self._host_bins = bins
            # Pinned, so that copies run at the same time as kernels and at the full speed of the bus.
            runtime = cupy.cuda.runtime
            runtime.hostRegister(bins.ctypes.data, bins.nbytes, 0)
            weakref.finalize(self, runtime.hostUnregister, bins.ctypes.data)
        self._bins = cupy.empty((placement.n_resident, self._stride), dtype=np.uint8)
        if len(self._bins):
            self._bins.set(bins[: len(self._bins)])

    def _start(self, weights: ScoreWeights) -> None:
        """Sums and Z of the current weights."""
        queries = self._queries
        ratios = tuple(np.empty(queries.n_segments) for _ in range(3))
        state = np.zeros(1, dtype=CONTROL.dtype)
        state["round"] = weights.n_rounds
        state["pending"] = 2
        state["next_common"] = level_ratios(
            queries.query_segments, queries.query_weight, weights.up_exponent, weights.down_exponent, *ratios
        )
        self._control = self._cupy.asarray(state.view(np.uint8))
        self._launch_recentre()
        self._stream.synchronize()

    def boost(self, n_rounds: int) -> BoostedRounds:
        """See `Booster`."""
        batches = [self._boost_batch(n) for n in _batches(n_rounds)]
        columns = {name: np.concatenate([batch[name] for batch in batches]) for _, name, _ in RECORD.fields}
        return BoostedRounds(
            feature=columns["feature"],
            bin=columns["bin"],
            r=columns["r"],
            loss=np.ldexp(columns["total"], columns["common"]),
            finished=bool(self._read_control()["finished"]),
        )

    def _boost_batch(self, n_rounds: int) -> dict[str, np.ndarray]:
        with self._stream:
            self._control[CONTROL.bytes_of("recorded")].fill(0)
            left = n_rounds
            while left > 0:
                together = _ROUNDS_PER_GRAPH if left >= _ROUNDS_PER_GRAPH else 1
                if self.streams:
                    self._launch_streamed_round()
                    together = 1
                else:
                    self._graph_of(together).launch(self._stream)
                left -= together
            done = int(self._read_control()["recorded"])
            return {name: array[:done].get(stream=self._stream) for name, array in self._record.items()}

    def _read_control(self) -> Any:
        return self._control.get(stream=self._stream).view(CONTROL.dtype)[0]

    def _graph_of(self, n_rounds: int) -> Any:
        """The graph of this many rounds; its kernels read the progress from the device, so it serves any rounds."""
        if n_rounds not in self._graphs:
            self._stream.begin_capture()
            for _ in range(n_rounds):
                self._launch_potentials()
                self._launch_histograms(self._bins, 0)
                self._launch_choose()
                self._launch_reweight(np.uint64(0))
                self._launch_recentre()
            self._graphs[n_rounds] = self._stream.end_capture()
        return self._graphs[n_rounds]

    def _launch_streamed_round(self) -> None:
        """One round with the host's feature blocks copied while the previous block is processed."""
        self._launch_potentials()
        if len(self._bins):
            self._launch_histograms(self._bins, 0)
        for number, (first, block) in enumerate(self._host_blocks):
            side = number % 2
            staged = self._staging[side][: len(block)]
            self._copies.wait_event(self._used[side])
            staged.set(block, stream=self._copies)
            self._ready[side].record(self._copies)
            self._stream.wait_event(self._ready[side])
            self._launch_histograms(staged, first)
            self._used[side].record(self._stream)
        self._launch_choose()
        chosen = int(self._read_control()["feature"])
        column = np.uint64(0)
        if chosen >= len(self._bins):
            self._column.set(self._host_bins[chosen], stream=self._stream)
            column = np.uint64(self._column.data.ptr)
        self._launch_reweight(column)
        self._launch_recentre()

    def _launch_potentials(self) -> None:
        self._kernels["potentials"](
            (self._query_blocks,),
            (_QUERY_THREADS,),
            (self._queries_struct, self._weights_struct, self._control, self._pi),
        )

    def _launch_histograms(self, bins: Any, first_feature: int) -> None:
        sizes = (np.int32(self._stride // 16), np.int32(len(bins)), np.int32(first_feature))
        self._kernels["histograms"](
            (self._histogram_blocks,),
            (_HISTOGRAM_THREADS,),
            (bins, self._pi, *sizes, self._control, self._histogram),
            shared_mem=self._shared,
        )

    def _launch_choose(self) -> None:
        sizes = (np.int32(self._n_features), np.int32(self._n_bins), np.int32(tolerance(self._queries.n_docs)))
        halvings = np.int32(self._n_halvings)
        self._kernels["choose"](
            (self._n_features,), (256,), (self._histogram, *sizes, halvings, self._table, self._largest, self._control)
        )

    def _launch_reweight(self, column: np.uint64) -> None:
        bins = (self._bins, np.uint64(self._stride), column)
        self._kernels["reweight"](
            (self._query_blocks,),
            (_QUERY_THREADS,),
            (self._queries_struct, self._weights_struct, *bins, self._control, self._record_struct),
        )

    def _launch_recentre(self) -> None:
        self._kernels["recentre"](
            (self._recentre_blocks,),
            (_QUERY_THREADS,),
            (self._queries_struct, self._weights_struct, self._control, self._record_struct),
        )


def definitions(group: int, width: int) -> tuple[str, ...]:
    """The macros of `boosting.cu`: features whose histograms a block holds, and lanes that work on a query."""
    return f"GROUP={group}", f"THREADS={_HISTOGRAM_THREADS}", f"WIDTH={width}"


def _lanes_per_query(queries: LevelledQueries) -> int:
    """All 32 lanes of a warp if queries are few or have many label levels, otherwise 8: then fewer lanes are idle."""
    return 8 if queries.n_queries > 10_000 and queries.n_segments <= 16 * queries.n_queries else 32


def _batches(n_rounds: int) -> Iterator[int]:
    for start in range(0, n_rounds, _RECORD_ROUNDS):
        yield min(_RECORD_ROUNDS, n_rounds - start)
