"""The optimisers' steps against their formulas in float64."""

import numpy as np
import pytest

from rankwell.errors import ParameterError
from rankwell.kernels.lists.cpu.first_order import first_order_step
from rankwell.kernels.lists.cpu.trainer import kernel_optimizer
from rankwell.solvers.first_order import FirstOrder


def steps(optimizer, gradients, start):
    parameters = np.array(start, dtype=np.float32)
    first, second = np.zeros_like(parameters), np.zeros_like(parameters)
    for number, gradient in enumerate(gradients, start=1):
        settings, slopes = kernel_optimizer(optimizer.settings()), np.array(gradient, np.float32)
        first_order_step(settings, optimizer.rate(0), number, parameters, slopes, first, second)
    return parameters


def test_plain_step_by_hand():
    # 1 − 0.1·2 = 0.8, and −1 − 0.1·(−4) = −0.6.
    np.testing.assert_allclose(steps(FirstOrder(learning_rate=0.1), [[2.0, -4.0]], [1.0, -1.0]), [0.8, -0.6], rtol=1e-6)


def test_momentum_by_hand():
    # v = 1, then 0.5·1 + 1 = 1.5: 0 − 0.1·1 − 0.1·1.5 = −0.25.
    assert steps(FirstOrder(learning_rate=0.1, momentum=0.5), [[1.0], [1.0]], [0.0])[0] == pytest.approx(-0.25)


def test_weight_decay_by_hand():
    # 2 − 0.1·(0 + 0.5·2) = 1.9.
    assert steps(FirstOrder(learning_rate=0.1, weight_decay=0.5), [[0.0]], [2.0])[0] == pytest.approx(1.9)


def test_adam_against_its_formula():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(20, 5))
    w, m, v = np.ones(5), np.zeros(5), np.zeros(5)
    for t, g in enumerate(gradients.astype(np.float32).astype(float), start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        w = w - 0.01 * 0.1 * w
    optimizer = FirstOrder("adam", learning_rate=0.01, weight_decay=0.1)
    np.testing.assert_allclose(steps(optimizer, gradients, np.ones(5)), w, rtol=1e-5)


def test_learning_rate_decays_by_epoch():
    optimizer = FirstOrder(learning_rate=0.4, lr_decay=0.5)
    assert [optimizer.rate(epoch) for epoch in (0, 1, 2)] == pytest.approx([0.4, 0.4 / 1.5, 0.2])


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "newton"},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"lr_decay": -1.0},
        {"momentum": 1.0},
        {"weight_decay": -1.0},
        {"optimizer": "adam", "momentum": 0.9},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(ParameterError, match=next(reversed(settings))):
        FirstOrder(**settings).check()
