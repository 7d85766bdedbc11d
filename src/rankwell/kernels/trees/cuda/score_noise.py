"""Noise on scores, drawn on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.kernels.cuda.module import cuda_module
from rankwell.kernels.trees.declarations import NOISE_THREADS
from rankwell.kernels.trees.losses import RankingLoss


class ScoreNoise:
    """Fills `noisy` from `scores`, both CuPy float32 (n_docs,)."""

    def __init__(self, loss: RankingLoss, scores: Any) -> None:
        import cupy

        self._kernel = cuda_module("trees/score_noise", fuse=False).get_function("add_noise")
        self._noise, self._seed = np.float64(loss.noise), np.int64(loss.seed)
        self._scores, self.noisy = scores, cupy.empty_like(scores)

    def launch(self, tree: int) -> None:
        """The scores that tree `tree` ranks documents by, on the current stream."""
        n_docs = len(self._scores)
        arguments = (self._scores, np.int32(n_docs), self._noise, self._seed, np.int64(tree), self.noisy)
        self._kernel((-(-n_docs // NOISE_THREADS),), (NOISE_THREADS,), arguments)
