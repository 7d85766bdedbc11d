"""A first-order optimiser's settings, as the kernels of every backend read them."""

from __future__ import annotations

from typing import NamedTuple

SGD, ADAM = range(2)


class OptimizerSettings(NamedTuple):
    """kind : SGD or ADAM; momentum : SGD's; beta1, beta2, epsilon : Adam's; weight_decay : decoupled, for both."""

    kind: int
    momentum: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
