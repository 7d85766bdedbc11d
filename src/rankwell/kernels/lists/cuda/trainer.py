"""The CUDA trainer of networks over lists: an epoch of per-query steps is one launch of one team of blocks; batches of
queries take a block each, over the whole chip."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.errors import DeviceError
from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.lists.contract import ADAM, NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.top_k_loss import FIRST, top_k_truth
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat

TEAM = 8
THREADS = 512
TILE = 64
FEATURE_FORMATS = {"float32": 32, "float16": 16, "int8": 8}


class CudaNetworkTrainer:
    """See `lists.contract.NetworkTrainer`.

    feature_format : "float32", "float16" or "int8"
        What features are stored as; "int8" scales each feature by its largest value.
    """

    def __init__(self, problem: NetworkProblem, feature_format: str = "float32") -> None:
        import cupy

        self._problem = problem
        self._feature_bits = FEATURE_FORMATS[feature_format]
        self._n_docs = len(problem.labels)
        self._most_docs = max(int(np.diff(problem.query_ptr).max(initial=0)), 1)
        self._check_size()
        stored, scale = self._stored(problem.features)
        truth = top_k_truth(problem.loss.k, problem.labels, problem.query_ptr)
        self._lists = [
            cupy.asarray(stored),
            cupy.asarray(scale),
            cupy.asarray(problem.query_ptr),
            cupy.asarray(truth.astype(np.float32)),
            cupy.asarray(_best_labels(truth, problem.query_ptr)),
            cupy.asarray(problem.query_weights.astype(np.float32)),
            np.int64(self._n_docs),
        ]
        teams = problem.batch_queries
        n_parameters = problem.shape.n_parameters
        self._buffers = [
            cupy.empty(self._n_docs, dtype=cupy.float32),
            cupy.empty(self._n_docs * max(problem.shape.n_hidden, 1), dtype=cupy.float32),
            cupy.empty(TEAM * 2, dtype=cupy.float64),
            cupy.empty(max(2 * TEAM, teams) * n_parameters, dtype=cupy.float32),
        ]

    def _check_size(self) -> None:
        """Refuse a list whose scores would not fit into a block's shared memory."""
        import cupy

        most = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        if self._shared_bytes(self._most_docs) > most:
            raise DeviceError(
                f"device='cuda' cannot hold a query of {self._most_docs} documents and a network of "
                f"{self._problem.shape.n_parameters} parameters in {most} bytes of shared memory. Use device='cpu'."
            )

    def _shared_bytes(self, most_docs: int) -> int:
        shape = self._problem.shape
        width = max(shape.n_hidden, 1)
        return 4 * (4 * shape.n_parameters + 4 * most_docs + TILE * (shape.n_features + 2 * width + 1))

    def _stored(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features as they are stored, and what each is multiplied by."""
        scale = np.ones(features.shape[1], dtype=np.float32)
        if self._feature_bits == 16:
            return features.astype(np.float16), scale
        if self._feature_bits == 8:
            largest = np.abs(features).max(axis=0, initial=0.0)
            scale = np.where(largest > 0, largest / 127.0, 1.0).astype(np.float32)
            return np.rint(features / scale).astype(np.int8), scale
        return features, scale

    def _kernel(self, name: str, team: int) -> Any:
        shape = self._problem.shape
        module = cuda_module(
            "lists/network_training",
            f"TEAM={team}",
            f"THREADS={THREADS}",
            f"FEATURES={shape.n_features}",
            f"UNITS={shape.n_hidden}",
            f"PLACES={self._problem.loss.k}",
            f"HIDDEN_ACTIVATION={shape.hidden_activation}",
            f"OUTPUT_ACTIVATION={shape.output_activation}",
            f"ADAM={int(self._problem.optimizer.kind == ADAM)}",
            f"FEATURE_BITS={self._feature_bits}",
        )
        kernel = module.get_function(name)
        kernel.max_dynamic_shared_size_bytes = self._shared_bytes(self._most_docs)
        return kernel

    def _optimizer(self, learning_rate: float) -> list[np.float32]:
        settings = self._problem.optimizer
        numbers = (learning_rate, settings.momentum, settings.beta1, settings.beta2, settings.epsilon)
        return [np.float32(number) for number in (*numbers, settings.weight_decay)]

    def run_epoch(
        self, state: NetworkState, order: np.ndarray, learning_rate: float, seed: int,
        fixed_point: FixedPointFormat | None, scale_exponent: int,
    ) -> float:  # fmt: skip
        import cupy

        memory = [cupy.asarray(array) for array in (state.parameters, state.first, state.second)]
        loss = self.steps(memory, cupy.asarray(order), learning_rate, state.steps)
        state.steps += -(-len(order) // self._problem.batch_queries)
        for array, on_device in zip((state.parameters, state.first, state.second), memory, strict=True):
            array[:] = on_device.get()
        return float(loss.get().sum())

    def steps(self, memory: list[Any], order: Any, learning_rate: float, steps_before: int) -> Any:
        """An epoch on device arrays, without waiting for it: `memory` is parameters and the optimiser's two arrays.

        Returns the losses as a device array, to be summed.
        """
        import cupy

        problem = self._problem
        optimizer = self._optimizer(learning_rate)
        shared = self._shared_bytes(self._most_docs)
        if problem.batch_queries == 1:
            loss = cupy.zeros(1, dtype=cupy.float64)
            arguments = [*self._lists, *self._buffers, *optimizer, order, np.int32(len(order)), np.int64(steps_before)]
            arguments += [*memory, np.int32(self._most_docs), loss]
            self._kernel("train_queries", TEAM)((TEAM,), (THREADS,), tuple(arguments), shared_mem=shared)
            return loss
        losses = cupy.zeros(problem.batch_queries, dtype=cupy.float64)
        step = self._kernel("batch_step", 1)
        warps = -(-problem.shape.n_parameters * 32 // 256)
        for number, start in enumerate(range(0, len(order), problem.batch_queries)):
            batch = order[start : start + problem.batch_queries]
            self.gradients(batch, memory[0], losses)
            arguments = [
                self._buffers[3],
                *optimizer,
                np.int32(len(batch)),
                np.int64(steps_before + number + 1),
                *memory,
            ]
            step((warps,), (256,), tuple(arguments))
        return losses

    def gradients(self, batch: Any, parameters: Any, losses: Any) -> Any:
        """Loss and gradient of every query in `batch` (device arrays); returns (n_queries, n_parameters) of them."""
        arguments = (*self._lists, *self._buffers, batch, parameters, np.int32(self._most_docs), losses)
        shared = self._shared_bytes(self._most_docs)
        self._kernel("batch_gradients", 1)((len(batch),), (THREADS,), arguments, shared_mem=shared)
        n_parameters = self._problem.shape.n_parameters
        return self._buffers[3][: len(batch) * n_parameters].reshape(len(batch), n_parameters)

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        import cupy

        stored, scale = self._stored(features)
        scores = cupy.empty(len(features), dtype=cupy.float32)
        hidden = cupy.empty(len(features) * max(self._problem.shape.n_hidden, 1), dtype=cupy.float32)
        lists = [cupy.asarray(stored), cupy.asarray(scale), *self._lists[2:6], np.int64(len(features))]
        blocks = max(1, min(2048, -(-len(features) // THREADS)))
        arguments = (*lists, scores, hidden, *self._buffers[2:], cupy.asarray(state.parameters))
        self._kernel("score_documents", 1)((blocks,), (THREADS,), arguments, shared_mem=self._shared_bytes(0))
        return np.asarray(scores.get())


def _best_labels(truth: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """The document y1 of each query: the first with the largest P_y, as the CPU kernels have it, int32 (n_queries,)."""
    best = np.zeros(len(query_ptr) - 1, dtype=np.int32)
    for query, (start, end) in enumerate(zip(query_ptr[:-1].tolist(), query_ptr[1:].tolist(), strict=True)):
        if end > start:
            best[query] = int(np.argmax(truth[FIRST, start:end]))
    return best
