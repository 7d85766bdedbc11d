"""One step of a first-order optimiser over a flat float32 array of parameters. The settings are `FirstOrder`'s."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.lists.optimizer_settings import ADAM


@kernel(error_model="numpy")
def first_order_step(settings, rate, step, parameters, gradient, first, second):
    """Move `parameters` against `gradient`.

    rate : the learning rate now; step : how many steps there were, this one included. first, second : float32
    (n_parameters,), the optimiser's memory: momentum's velocity, or Adam's two moments.
    """
    rate32, decay = np.float32(rate), np.float32(rate * settings.weight_decay)
    if settings.kind == ADAM:
        _adam(settings, rate, step, parameters, gradient, first, second, decay)
    elif settings.momentum > 0.0:
        momentum = np.float32(settings.momentum)
        for i in range(len(parameters)):
            first[i] = momentum * first[i] + gradient[i]
            parameters[i] -= rate32 * first[i] + decay * parameters[i]
    else:
        for i in range(len(parameters)):
            parameters[i] -= rate32 * gradient[i] + decay * parameters[i]


@kernel(error_model="numpy")
def _adam(settings, rate, step, parameters, gradient, first, second, decay):
    beta1, beta2 = np.float32(settings.beta1), np.float32(settings.beta2)
    one, epsilon = np.float32(1.0), np.float32(settings.epsilon)
    scale = np.float32(rate / (1.0 - settings.beta1**step))
    correction = np.float32(1.0 / (1.0 - settings.beta2**step))
    for i in range(len(parameters)):
        g = gradient[i]
        first[i] = beta1 * first[i] + (one - beta1) * g
        second[i] = beta2 * second[i] + (one - beta2) * g * g
        parameters[i] -= scale * first[i] / (np.float32(math.sqrt(second[i] * correction)) + epsilon)
        parameters[i] -= decay * parameters[i]
