"""One step of a first-order optimiser over a flat float32 array of parameters. The settings are `FirstOrder`'s.

The type of the settings selects the optimiser when the caller is compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import call_of, inner_kernel, kernel


class Sgd(NamedTuple):
    """See `OptimizerSettings`."""

    momentum: float
    weight_decay: float


class Adam(NamedTuple):
    """See `OptimizerSettings`."""

    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float


@inner_kernel(error_model="numpy")
def _sgd(settings, rate, step, parameters, gradient, first, second):
    rate32, decay = np.float32(rate), np.float32(rate * settings.weight_decay)
    if settings.momentum > 0.0:
        momentum = np.float32(settings.momentum)
        for i in range(len(parameters)):
            first[i] = momentum * first[i] + gradient[i]
            parameters[i] -= rate32 * first[i] + decay * parameters[i]
    else:
        for i in range(len(parameters)):
            parameters[i] -= rate32 * gradient[i] + decay * parameters[i]


@inner_kernel(error_model="numpy")
def _adam(settings, rate, step, parameters, gradient, first, second):
    beta1, beta2 = np.float32(settings.beta1), np.float32(settings.beta2)
    one, epsilon, decay = np.float32(1.0), np.float32(settings.epsilon), np.float32(rate * settings.weight_decay)
    scale = np.float32(rate / (1.0 - settings.beta1**step))
    correction = np.float32(1.0 / (1.0 - settings.beta2**step))
    for i in range(len(parameters)):
        g = gradient[i]
        first[i] = beta1 * first[i] + (one - beta1) * g
        second[i] = beta2 * second[i] + (one - beta2) * g * g
        parameters[i] -= scale * first[i] / (np.float32(math.sqrt(second[i] * correction)) + epsilon)
        parameters[i] -= decay * parameters[i]


@intrinsic
def descend(typing_context, settings, rate, step, parameters, gradient, first, second):
    """`first_order_step`, inside a kernel."""
    move = _adam if settings.instance_class is Adam else _sgd
    return call_of(move, typing_context, (settings, rate, step, parameters, gradient, first, second))


@kernel(error_model="numpy")
def first_order_step(settings, rate, step, parameters, gradient, first, second):
    """Move `parameters` against `gradient`.

    settings : Sgd or Adam; rate : the learning rate now; step : the number of steps, this one included. first,
    second : float32 (n_parameters,), the optimiser's memory: momentum's velocity, or Adam's two moments.
    """
    descend(settings, rate, step, parameters, gradient, first, second)
