"""The CPU's trainer of networks over lists: owns scratch and ground truth, and calls the epoch kernel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from numba import get_num_threads

from rankwell.kernels.cpu.compilation import allow_function_values
from rankwell.kernels.lists.contract import NetworkProblem, NetworkState
from rankwell.kernels.lists.cpu.epoch import (
    SLOTS,
    Lists,
    Step,
    Workspace,
    query_steps,
    score_documents,
    slot_gradient,
    slots_gradient,
)
from rankwell.kernels.lists.cpu.first_order import first_order_step
from rankwell.kernels.lists.cpu.list_gradient import has_pairs, list_gradient, list_scratch, list_truth
from rankwell.kernels.lists.cpu.network import chunk_docs
from rankwell.kernels.lists.cpu.query_backward import query_backward
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.kernels.lists.losses import EXACT, LAMBDARANK, RANKNET

# Documents, or pairs of documents, whose gradient takes about a millisecond on one thread.
SERIAL_WORK = 20_000.0
_FLOAT32 = FixedPointFormat(bits=32, accumulator_bits=62, method=0, batches=1, feature_bits=0)


class CpuNetworkTrainer:
    """See `lists.contract.NetworkTrainer`."""

    def __init__(self, problem: NetworkProblem) -> None:
        self._problem = problem
        self._linear = problem.loss.kind not in (RANKNET, LAMBDARANK) and not has_pairs(problem.loss)
        self._chunk = chunk_docs(problem.shape.inputs, problem.shape.units)
        self._truth = list_truth(problem.loss, problem.labels, problem.query_ptr)
        # The sampled losses have no P_y by document: their batches go by the gradient alone.
        exact = problem.loss.kind == EXACT
        self._probabilities = self._truth[0] if exact else np.zeros(len(problem.labels))
        self._work = self._workspace()
        self._quantised: dict[tuple[int, int], np.ndarray] = {}

    def _workspace(self) -> Workspace:
        problem = self._problem
        slots = 1 if problem.batch_queries == 1 else SLOTS
        most_docs = max(int(np.diff(problem.query_ptr).max(initial=0)), 1)
        scratch = list_scratch(problem.loss, most_docs)

        def floats(*sizes: int) -> np.ndarray:
            return np.zeros((slots, *sizes), dtype=np.float32)

        hidden = most_docs * max(problem.shape.n_hidden, 1)
        return Workspace(
            hidden=floats(hidden),
            deltas=floats(hidden),
            scores=floats(most_docs),
            slopes=floats(most_docs),
            list_slopes=np.zeros((slots, most_docs)),
            products=floats(problem.shape.n_parameters),
            gradients=floats(problem.shape.n_parameters),
            doubles=np.zeros((slots, *scratch.doubles.shape)),
            lists=floats(*scratch.lists.shape),
            parts=floats(*scratch.parts.shape),
        )

    def _features_as_integers(self, fmt: FixedPointFormat) -> np.ndarray:
        """The features in the format's integers, int32; computed once a format."""
        key = (fmt.bits, fmt.feature_bits)
        if key not in self._quantised:
            limit = 2.0 ** (fmt.bits - 1)
            scaled = np.floor(self._problem.features.astype(np.float64) * (limit / 2.0**fmt.feature_bits) + 0.5)
            self._quantised = {key: np.clip(scaled, -limit, limit - 1).astype(np.int32)}
        return self._quantised[key]

    def run_epoch(
        self, state: NetworkState, order: np.ndarray, learning_rate: float, seed: int,
        fixed_point: FixedPointFormat | None, scale_exponent: int,
    ) -> float:  # fmt: skip
        problem = self._problem
        fmt = fixed_point or _FLOAT32
        quantised = np.zeros((1, 1), dtype=np.int32) if fixed_point is None else self._features_as_integers(fmt)
        lists = Lists(
            problem.features, quantised, self._truth, self._probabilities, problem.query_ptr, problem.query_weights
        )
        step = Step(
            chunk=self._chunk,
            learning_rate=learning_rate,
            dropout=problem.dropout,
            seed=seed,
            fixed=fixed_point is not None,
            scale_exponent=scale_exponent,
        )
        functions = ((list_gradient(problem.loss),) * 2, (query_backward(step.fixed),) * 2)
        setting = (functions, problem.shape, problem.loss, fmt, step)
        with allow_function_values():
            if problem.batch_queries == 1:
                loss = query_steps(
                    *setting, problem.optimizer, state.steps, state.parameters, state.first, state.second, lists, order,
                    self._work,
                )  # fmt: skip
                state.steps += len(order)
                return float(loss)
            # Numba's own parallel loops cannot carry function values; its compiled code runs on plain threads.
            with ThreadPoolExecutor(get_num_threads()) as pool:
                return self._batch_steps(setting, state, lists, order, pool)

    def _batch_steps(
        self, setting: Any, state: NetworkState, lists: Lists, order: np.ndarray, pool: ThreadPoolExecutor
    ) -> float:
        """One step a batch of queries, by the mean of their gradients."""
        loss = 0.0
        gradients = self._work.gradients
        gradient = gradients[0]
        rate = setting[-1].learning_rate
        for start in range(0, len(order), self._problem.batch_queries):
            batch = order[start : start + self._problem.batch_queries]
            losses = np.zeros(min(SLOTS, len(batch)))
            self._slots(setting, state, lists, batch, losses, pool)
            loss += float(losses.sum())
            used = len(losses)
            for slot in range(1, used):
                gradient += gradients[slot]
            gradient *= np.float32(1.0 / len(batch))
            state.steps += 1
            first_order_step(
                self._problem.optimizer, rate, state.steps, state.parameters, gradient, state.first, state.second
            )
        return loss

    def _slots(
        self, setting: Any, state: NetworkState, lists: Lists, batch: np.ndarray, losses: np.ndarray, pool: Any
    ) -> None:
        """The gradients of a batch, slot by slot; on all threads where that is more than their start costs."""
        one, every = cast(Any, slot_gradient), cast(Any, slots_gradient)
        sizes = lists.query_ptr[batch + 1] - lists.query_ptr[batch]
        # Only Top-3 and the pairwise losses grow with the square of a list.
        work = (sizes.astype(np.float64) ** (1 if self._linear else 2)).sum()
        if work < SERIAL_WORK:
            every(*setting, state.parameters, lists, batch, self._work, losses)
            return

        def one_slot(slot: int) -> float:
            return float(one(*setting, state.parameters, lists, batch, self._work, slot))

        losses[:] = list(pool.map(one_slot, range(len(losses))))

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        return score_documents(self._problem.shape, state.parameters, features, self._chunk)
