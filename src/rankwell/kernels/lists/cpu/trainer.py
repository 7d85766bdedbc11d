"""The CPU's trainer of networks over lists: owns scratch and ground truth, and calls the epoch kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwell.kernels.lists.contract import ADAM, NetworkProblem, NetworkState, OptimizerSettings
from rankwell.kernels.lists.cpu.epoch import (
    SLOTS,
    Lists,
    Step,
    Workspace,
    prepare_pairs,
    query_steps,
    score_documents,
    slots_gradient,
)
from rankwell.kernels.lists.cpu.first_order import Adam, Sgd, first_order_step
from rankwell.kernels.lists.cpu.list_gradient import TopThreeFromParts, has_pairs, kernel_loss, list_truth
from rankwell.kernels.lists.cpu.network import chunk_docs
from rankwell.kernels.lists.cpu.pair_sums import PARALLEL_DOCS, PARTS, pair_part
from rankwell.kernels.lists.cpu.query_backward import FixedBackward, FloatBackward
from rankwell.kernels.lists.epoch_pieces import EpochPieces
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.kernels.lists.losses import LAMBDARANK, RANKNET
from rankwell.kernels.threads import current_threads, run_parts, run_ranges

# Documents, or pairs of documents, whose gradient takes about a millisecond on one thread.
SERIAL_WORK = 20_000.0


class CpuNetworkTrainer:
    """See `lists.contract.NetworkTrainer`."""

    def __init__(self, problem: NetworkProblem) -> None:
        self._problem = problem
        self._linear = problem.loss.kind not in (RANKNET, LAMBDARANK) and not has_pairs(problem.loss)
        self._chunk = chunk_docs(problem.shape.inputs, problem.shape.units)
        self._truth = list_truth(problem.loss, problem.labels, problem.query_ptr)
        self._lists = Lists(problem.features, self._truth, problem.query_ptr, problem.query_weights)
        self._slots = 1 if problem.batch_queries == 1 else SLOTS
        self._most_docs = max(int(np.diff(problem.query_ptr).max(initial=0)), 1)
        # Queries whose sums over pairs are worth several threads; with batches, the threads already process the slots.
        has_long = self._slots == 1 and has_pairs(problem.loss)
        self._is_long = has_long & (np.diff(problem.query_ptr) >= PARALLEL_DOCS) & (problem.query_weights != 0.0)
        self._loss = kernel_loss(problem.loss, self._slots, self._most_docs)
        self._optimizer = kernel_optimizer(problem.optimizer)
        self._work = Workspace(
            hidden=self._floats(self._most_docs * max(problem.shape.n_hidden, 1)),
            scores=self._floats(self._most_docs),
            list_slopes=np.zeros((self._slots, self._most_docs)),
            gradients=self._floats(problem.shape.n_parameters),
        )
        self._float_backward = FloatBackward(
            slopes=self._floats(self._most_docs),
            deltas=self._floats(self._most_docs * max(problem.shape.n_hidden, 1)),
            products=self._floats(problem.shape.n_parameters),
        )
        self._pieces = EpochPieces()
        self._quantised: dict[tuple[int, int], np.ndarray] = {}

    def _floats(self, size: int) -> np.ndarray:
        return np.zeros((self._slots, size), dtype=np.float32)

    def _features_as_integers(self, fmt: FixedPointFormat) -> np.ndarray:
        """The features in the format's integers, int32; computed once per format."""
        key = (fmt.bits, fmt.feature_bits)
        if key not in self._quantised:
            limit = 2.0 ** (fmt.bits - 1)
            scaled = np.floor(self._problem.features.astype(np.float64) * (limit / 2.0**fmt.feature_bits) + 0.5)
            self._quantised = {key: np.clip(scaled, -limit, limit - 1).astype(np.int32)}
        return self._quantised[key]

    def _backward(self, fmt: FixedPointFormat | None) -> FloatBackward | FixedBackward:
        return self._float_backward if fmt is None else FixedBackward(*fmt, self._features_as_integers(fmt))

    def run_epoch(
        self,
        state: NetworkState,
        order: np.ndarray,
        learning_rate: float,
        seed: int,
        fixed_point: FixedPointFormat | None,
    ) -> float:
        step = Step(self._chunk, learning_rate, self._problem.dropout, seed)
        setting = (self._problem.shape, self._loss, self._backward(fixed_point), step)
        if self._slots > 1:
            return self._batch_steps(setting, state, order)
        loss = 0.0
        for piece in self._pieces.slices(len(order)):
            loss = self._steps(setting, state, order[piece], loss)
        return loss

    def _steps(self, setting: Any, state: NetworkState, order: np.ndarray, loss: float) -> float:
        """One step per query; adds their losses to `loss`."""
        done = 0
        for place in np.flatnonzero(self._is_long[order]).tolist() if current_threads() > 1 else ():
            loss = self._query_steps(setting, state, order[done:place], loss)
            loss = self._long_query_step(setting, state, order[place : place + 1], loss)
            done = place + 1
        return self._query_steps(setting, state, order[done:], loss)

    def _query_steps(self, setting: Any, state: NetworkState, order: np.ndarray, loss: float) -> float:
        """One step per query, on the calling thread."""
        total = query_steps(
            *setting, self._optimizer, state.steps, state.parameters, state.first, state.second, self._lists, order,
            self._work, loss,
        )  # fmt: skip
        state.steps += len(order)
        return float(total)

    def _long_query_step(self, setting: Any, state: NetworkState, order: np.ndarray, loss: float) -> float:
        """The step of one query whose sums over pairs are divided among the threads: the same to the last bit.

        The scores are computed twice, which is little beside these sums.
        """
        shape, of_list, backward, step = setting
        count = prepare_pairs(shape, of_list, step, state.parameters, self._lists, int(order[0]), self._work)
        lists, parts, losses = of_list.lists[0], of_list.parts[0], of_list.losses[0]
        run_parts(lambda part: pair_part(part, lists, count, parts, losses), PARTS)
        return self._query_steps((shape, TopThreeFromParts(*of_list), backward, step), state, order, loss)

    def _batch_steps(self, setting: Any, state: NetworkState, order: np.ndarray) -> float:
        """One step per batch of queries, by the mean of their gradients."""
        loss = 0.0
        gradient = self._work.gradients[0]
        rate = setting[-1].learning_rate
        for start in range(0, len(order), self._problem.batch_queries):
            batch = order[start : start + self._problem.batch_queries]
            loss += self._sum_gradient(setting, state, batch)
            gradient *= np.float32(1.0 / len(batch))
            state.steps += 1
            first_order_step(
                self._optimizer, rate, state.steps, state.parameters, gradient, state.first, state.second
            )  # fmt: skip
        return loss

    def _sum_gradient(self, setting: Any, state: NetworkState, batch: np.ndarray) -> float:
        """The sum of a batch's gradients, in the first slot; returns the sum of its losses."""
        gradients = self._work.gradients
        losses = np.zeros(min(SLOTS, len(batch)))
        self._batch_gradient(setting, state, batch, losses)
        for slot in range(1, len(losses)):
            gradients[0] += gradients[slot]
        return float(losses.sum())

    def _batch_gradient(self, setting: Any, state: NetworkState, batch: np.ndarray, losses: np.ndarray) -> None:
        """The gradients of a batch, slot by slot; on all threads if the work is worth starting them."""
        sizes = self._lists.query_ptr[batch + 1] - self._lists.query_ptr[batch]
        # Only Top-3 and the pairwise losses are quadratic in the length of a list.
        work = (sizes.astype(np.float64) ** (1 if self._linear else 2)).sum()
        common = (*setting, state.parameters, self._lists, batch, self._work)
        if work < SERIAL_WORK:
            slots_gradient(*common, 0, len(losses), losses)
        else:
            run_parts(lambda slot: slots_gradient(*common, slot, slot + 1, losses), len(losses))

    def figures(self) -> Mapping[str, float]:
        return {}

    def scores(self, state: NetworkState, features: np.ndarray) -> np.ndarray:
        shape, chunk = self._problem.shape, self._chunk
        scores = np.empty(len(features), dtype=np.float32)

        def score(first: int, last: int) -> None:
            hidden = np.empty(chunk * shape.n_hidden, dtype=np.float32)
            score_documents(shape, state.parameters, features, chunk, first, last, hidden, scores)

        run_ranges(score, (len(features) + chunk - 1) // chunk)
        return scores


def kernel_optimizer(settings: OptimizerSettings) -> Sgd | Adam:
    """The settings of one optimiser, in the form that kernels take."""
    if settings.kind == ADAM:
        return Adam(settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay)
    return Sgd(settings.momentum, settings.weight_decay)
