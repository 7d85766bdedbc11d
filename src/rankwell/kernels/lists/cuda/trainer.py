"""The CUDA trainer of networks over lists: an epoch with one step per query is a launch of one team of blocks, or a few
if it is long; batches of queries use one block per query, over the whole device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.device import memory_errors
from rankwell.kernels.device_report import report_device
from rankwell.kernels.lists.contract import ADAM, CUDA_TEAM, NETWORK_TRAINING, NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.top_k_loss import FIRST, top_k_truth
from rankwell.kernels.lists.cuda.placement import THREADS, TILE, Placement, most_docs, place
from rankwell.kernels.lists.declarations import BUFFERS, LISTS, OPTIMIZER
from rankwell.kernels.lists.epoch_pieces import EpochPieces
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat

CLUSTER_CAPABILITY = 90
FEATURE_FORMATS = {"float32": 32, "float16": 16, "int8": 8}


class CudaNetworkTrainer:
    """See `lists.contract.NetworkTrainer`.

    feature_format : "float32", "float16" or "int8"
        The type in which features are stored; "int8" scales each feature by its largest value.
    clusters : bool, optional
        Whether a team is a thread block cluster; by default if the device has them. The results have the same bits.
    shared_memory : int, optional
        Bytes of shared memory that a block may use; by default all that the device has. The results have the same bits.
    """

    def __init__(
        self,
        problem: NetworkProblem,
        feature_format: str = "float32",
        *,
        clusters: bool | None = None,
        shared_memory: int | None = None,
    ) -> None:
        import cupy

        report = report_device("cuda")
        self._problem = problem
        self._feature_bits = FEATURE_FORMATS[feature_format]
        self._clusters = report.capability >= CLUSTER_CAPABILITY if clusters is None else clusters
        self._n_docs = len(problem.labels)
        self._placement = place(
            problem.shape,
            most_docs(problem),
            shared_memory or report.shared_memory,
            one_step_per_query=problem.batch_queries == 1,
        )
        stored, scale = self._stored(problem.features)
        truth = top_k_truth(problem.loss.k, problem.labels, problem.query_ptr)
        self._lists: dict[str, Any] = {
            "features": cupy.asarray(stored),
            "feature_scale": cupy.asarray(scale),
            "query_ptr": cupy.asarray(problem.query_ptr),
            "truth": cupy.asarray(truth.astype(np.float32)),
            "best_label": cupy.asarray(_best_labels(truth, problem.query_ptr)),
            "weights": cupy.asarray(problem.query_weights.astype(np.float32)),
            "n_docs": self._n_docs,
        }
        n_parameters, blocks = problem.shape.n_parameters, max(CUDA_TEAM, problem.batch_queries)
        self._buffers = {
            "scores": cupy.empty(self._n_docs, dtype=cupy.float32),
            "hidden": cupy.empty(self._n_docs * max(problem.shape.n_hidden, 1), dtype=cupy.float32),
            "exchange": cupy.empty(CUDA_TEAM * 2, dtype=cupy.float64),
            "partial": cupy.empty(max(2 * CUDA_TEAM, problem.batch_queries) * n_parameters, dtype=cupy.float32),
            "workspace": cupy.empty(blocks * self._placement.workspace_floats, dtype=cupy.float32),
            "arrivals": cupy.zeros(1, dtype=cupy.uint32),
        }
        # What every launch is given, made once: a step takes less than a millisecond.
        self._arguments = (LISTS.pack(**self._lists), BUFFERS.pack(**self._buffers))
        self._modules: dict[int, Any] = {}
        self._pieces = EpochPieces()

    def _stored(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features as stored, and the factor of each."""
        scale = np.ones(features.shape[1], dtype=np.float32)
        if self._feature_bits == 16:
            return features.astype(np.float16), scale
        if self._feature_bits == 8:
            largest = np.abs(features).max(axis=0, initial=0.0)
            scale = np.where(largest > 0, largest / 127.0, 1.0).astype(np.float32)
            return np.rint(features / scale).astype(np.int8), scale
        return features, scale

    def _launch(self, name: str, blocks: int, arguments: tuple[Any, ...], *, team: int, shared: int) -> None:
        kernel = self._module(team).get_function(name)
        kernel.max_dynamic_shared_size_bytes = shared
        together = team > 1 and not self._clusters
        # Blocks that wait for each other must all run: a cooperative launch guarantees it, and so does a cluster.
        kernel.kernel((blocks,), (THREADS,), arguments, shared_mem=shared, enable_cooperative_groups=together)

    def _module(self, team: int) -> Any:
        if team not in self._modules:
            flags = definitions(self._problem, self._placement, team, self._clusters, self._feature_bits)
            self._modules[team] = cuda_module("lists/network_training", *flags)
        return self._modules[team]

    def _optimizer(self, learning_rate: float) -> np.ndarray:
        settings = self._problem.optimizer
        return OPTIMIZER.pack(
            rate=learning_rate,
            momentum=settings.momentum,
            beta1=settings.beta1,
            beta2=settings.beta2,
            epsilon=settings.epsilon,
            weight_decay=settings.weight_decay,
        )

    def run_epoch(
        self,
        state: NetworkState,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
        fixed_point: FixedPointFormat | None,
    ) -> float:
        import cupy

        with memory_errors("cuda", NETWORK_TRAINING.task):
            memory = [cupy.asarray(array) for array in (state.parameters, state.first, state.second)]
            loss = cupy.zeros(self._problem.batch_queries, dtype=cupy.float64)
            queries, stream = cupy.asarray(order), cupy.cuda.get_current_stream()
            for batches in self._pieces.slices(-(-len(order) // self._problem.batch_queries)):
                piece = slice(*(place * self._problem.batch_queries for place in (batches.start, batches.stop)))
                self.steps(memory, queries[piece], learning_rate, state.steps, loss)
                state.steps += batches.stop - batches.start
                stream.synchronize()
        for array, on_device in zip((state.parameters, state.first, state.second), memory, strict=True):
            array[:] = on_device.get()
        return float(loss.get().sum())

    def steps(self, memory: list[Any], order: Any, learning_rate: float, steps_before: int, losses: Any) -> None:
        """Train on the queries in `order` without waiting for it. All arrays are on the device.

        memory : parameters and the optimiser's two arrays; losses : float64 (batch_queries,), the queries' losses are
        added to it, one place for each place in a batch
        """
        problem = self._problem
        optimizer = self._optimizer(learning_rate)
        longest = np.int32(self._placement.most_docs)
        if problem.batch_queries == 1:
            arguments = [*self._arguments, optimizer, order]
            arguments += [np.int32(len(order)), np.int64(steps_before), *memory, longest, losses]
            shared = self._placement.shared_bytes
            self._launch("train_queries", CUDA_TEAM, tuple(arguments), team=CUDA_TEAM, shared=shared)
            return
        step = self._module(team=1).get_function("batch_step")
        warps = -(-problem.shape.n_parameters * 32 // 256)
        for number, start in enumerate(range(0, len(order), problem.batch_queries)):
            batch = order[start : start + problem.batch_queries]
            self.gradients(batch, memory[0], losses)
            arguments = [
                self._buffers["partial"],
                optimizer,
                np.int32(len(batch)),
                np.int64(steps_before + number + 1),
                *memory,
            ]
            step((warps,), (256,), tuple(arguments))

    def gradients(self, batch: Any, parameters: Any, losses: Any) -> Any:
        """Loss and gradient of every query in `batch` (device arrays); returns (n_queries, n_parameters) of them."""
        longest = np.int32(self._placement.most_docs)
        arguments = (*self._arguments, batch, parameters, longest, losses)
        self._launch("batch_gradients", len(batch), arguments, team=1, shared=self._placement.shared_bytes)
        n_parameters = self._problem.shape.n_parameters
        return self._buffers["partial"][: len(batch) * n_parameters].reshape(len(batch), n_parameters)

    def figures(self) -> Mapping[str, float]:
        return {}

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        with memory_errors("cuda", NETWORK_TRAINING.task):
            return self._scores(state, features)

    def _scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        import cupy

        stored, scale = self._stored(features)
        documents = {"features": cupy.asarray(stored), "feature_scale": cupy.asarray(scale), "n_docs": len(features)}
        scores = cupy.empty(len(features), dtype=cupy.float32)
        hidden = cupy.empty(len(features) * max(self._problem.shape.n_hidden, 1), dtype=cupy.float32)
        lists = LISTS.pack(**{**self._lists, **documents})
        buffers = BUFFERS.pack(**{**self._buffers, "scores": scores, "hidden": hidden})
        blocks = max(1, min(2048, -(-len(features) // THREADS)))
        arguments = (lists, buffers, cupy.asarray(state.parameters))
        self._launch("score_documents", blocks, arguments, team=1, shared=self._placement.scoring_bytes)
        return np.asarray(scores.get())


def definitions(
    problem: NetworkProblem, placement: Placement, team: int, clusters: bool, feature_bits: int = 32
) -> tuple[str, ...]:
    """The macros of `network_training.cu` for teams of this many blocks."""
    shape = problem.shape
    return (
        f"TEAM={team}",
        f"CLUSTER={int(clusters)}",
        f"THREADS={THREADS}",
        f"TILE={TILE}",
        f"FEATURES={shape.n_features}",
        f"UNITS={shape.n_hidden}",
        f"PLACES={problem.loss.k}",
        f"HIDDEN_ACTIVATION={shape.hidden_activation}",
        f"OUTPUT_ACTIVATION={shape.output_activation}",
        f"ADAM={int(problem.optimizer.kind == ADAM)}",
        f"FEATURE_BITS={feature_bits}",
        *placement.definitions(),
    )


def _best_labels(truth: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """The document y1 of each query: the first with the largest P_y, as in the CPU kernels, int32 (n_queries,)."""
    best = np.zeros(len(query_ptr) - 1, dtype=np.int32)
    for query, (start, end) in enumerate(zip(query_ptr[:-1].tolist(), query_ptr[1:].tolist(), strict=True)):
        if end > start:
            best[query] = int(np.argmax(truth[FIRST, start:end]))
    return best
