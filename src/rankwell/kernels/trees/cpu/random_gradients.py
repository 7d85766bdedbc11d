"""What losses draw at random in each round: noise on scores, and the gradients of xendcg."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.elementary_functions import exp64, log64
from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.cpu.random_numbers import random_unit
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.losses import LEAST_REST, JudgedQueries, RankingLoss


@kernel
def add_noise(scores, noise, seed, number, before, start, end, noisy):
    """noisy = scores − noise·ln(−ln u) for documents start, ..., end − 1; float32 (n_docs,) both.

    before : documents of other processes that come before these
    """
    for document in range(start, end):
        unit = random_unit(np.uint64(seed), number, before + document)
        noisy[document] = np.float32(np.float64(scores[document]) - noise * log64(-log64(unit)))


def noisy_scores(scores: np.ndarray, loss: RankingLoss, number: int, before: int = 0) -> np.ndarray:
    """The scores of round `number` with the loss's noise; `before` are documents of other processes before these."""
    noisy = np.empty_like(scores)
    run_ranges(
        lambda start, end: add_noise(scores, loss.noise, loss.seed, number, before, start, end, noisy),
        len(scores),
        least_items=4096,
    )
    return noisy


@kernel
def xendcg_queries(first, last, queries, scores, seed, number, before, gradient, hessian, share, part):
    """Gradient and Hessian of the documents of queries first, ..., last − 1.

    before : documents of other processes that come before these; share, part : float64 (n_docs,), scratch
    """
    for query in range(first, last):
        start, end = queries.query_ptr[query], queries.query_ptr[query + 1]
        if queries.inverse[query] <= 0.0:
            for document in range(start, end):
                gradient[document] = hessian[document] = 0.0
            continue
        best = np.float64(scores[start])
        for document in range(start, end):
            best = max(best, np.float64(scores[document]))
        total, target = 0.0, 0.0
        for document in range(start, end):
            share[document] = exp64(np.float64(scores[document]) - best)
            total += share[document]
            gain = np.float64(queries.gain[document])
            part[document] = gain + 1.0 - random_unit(np.uint64(seed), number, before + document)
            target += part[document]
        # Twice the same step: each term is spread over the other documents of the query.
        spread = 0.0
        for document in range(start, end):
            share[document] /= total
            term = share[document] - part[document] / target
            gradient[document] = np.float32(term)
            part[document] = term / max(1.0 - share[document], LEAST_REST)
            spread += part[document]
        following = 0.0
        for document in range(start, end):
            term = share[document] * (spread - part[document])
            gradient[document] = np.float32(np.float64(gradient[document]) + term)
            part[document] = term / max(1.0 - share[document], LEAST_REST)
            following += part[document]
        for document in range(start, end):
            term = share[document] * (following - part[document])
            gradient[document] = np.float32(np.float64(gradient[document]) + term)
            hessian[document] = np.float32(share[document] * (1.0 - share[document]))
            if len(queries.weight):
                gradient[document] *= queries.weight[document]
                hessian[document] *= queries.weight[document]


class XendcgGradients:
    """Fills the gradients of xendcg."""

    def __init__(self, loss: RankingLoss, queries: JudgedQueries, before: int = 0) -> None:
        self._loss, self._queries, self._before = loss, queries, before
        self._share, self._part = (np.zeros(len(queries.gain)) for _ in range(2))

    def fill(self, scores: np.ndarray, number: int, gradient: np.ndarray, hessian: np.ndarray) -> None:
        """Those of round `number` at these scores; float32 (n_docs,) all."""
        drawn_by = (self._loss.seed, number, self._before)
        arguments = (self._queries, scores, *drawn_by, gradient, hessian, self._share, self._part)
        run_ranges(lambda first, last: xendcg_queries(first, last, *arguments), len(self._queries.inverse))
