"""Fixed-point back propagation against the integer model, bit for bit, and against float where bits abound."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.tolerances import TOLERANCES

from rankwell.errors import ParameterError
from rankwell.kernels.lists.cpu.fixed_point import fixed_point_backward, quantise
from rankwell.kernels.lists.cpu.network import forward
from rankwell.kernels.lists.fixed_point_format import (
    ADAPTIVE,
    BATCH,
    DIRECT,
    FixedPointFormat,
    bits_of_precision,
    loss_scale_exponent,
)
from rankwell.kernels.lists.network_shape import network_shape, pack_layers, unpack_layers
from rankwell.kernels.lists.reference import fixed_point as model
from rankwell.kernels.lists.reference import network


def backward(fmt, scale_exponent, hidden=(5,), n=9, n_features=4, spread=1.0, output="sigmoid"):
    """The kernel's gradient, the integer model's and float64's, for one random query."""
    rng = np.random.default_rng(len(hidden) + n)
    shape = network_shape(n_features, hidden, "sigmoid", output)
    sizes = [n_features, *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    flat = pack_layers(shape, layers)
    layers = unpack_layers(shape, flat)
    features = rng.uniform(0, 1, (n, n_features)).astype(np.float32)
    slopes = rng.normal(size=n) * spread * 10.0 ** -rng.integers(0, 4, n)
    probabilities = np.minimum(spread, 1.0) * rng.uniform(0, 1, n) * 10.0 ** -rng.integers(0, 4, n)
    outputs, scores = np.empty(n * shape.n_hidden + 1, dtype=np.float32), np.empty(n, dtype=np.float32)
    chunk = 4
    for first in range(0, n, chunk):
        last = min(first + chunk, n)
        forward(
            shape, flat, features[first:last], outputs[first * shape.n_hidden :], scores[first:last], 0.0, np.uint64(0)
        )
    quantised = np.array([[model.quantise(x, fmt.feature_bits, fmt.bits) for x in row] for row in features], np.int32)
    gradient = np.zeros(shape.n_parameters, dtype=np.float32)
    fixed_point_backward(
        shape, fmt, scale_exponent, flat, quantised, outputs, chunk, scores, slopes, probabilities, gradient
    )
    exact = network.forward(
        features, [(w, b, a) for (w, b), a in zip(layers, ["sigmoid"] * len(hidden) + [output], strict=True)]
    )
    # The model reads the very activations that the kernel read.
    hidden_outputs, column = [], 0
    for units in hidden:
        block = np.empty((n, units), dtype=np.float32)
        for first in range(0, n, chunk):
            docs = min(chunk, n - first)
            start = first * shape.n_hidden + column * docs
            block[first : first + docs] = outputs[start : start + docs * units].reshape(docs, units)
        hidden_outputs.append(block)
        column += units
    integers = model.fixed_point_backward(
        fmt, scale_exponent, features, hidden_outputs, scores, layers, output == "sigmoid", slopes, probabilities
    )
    full = [(w, b, a) for (w, b), a in zip(layers, ["sigmoid"] * len(hidden) + [output], strict=True)]
    return unpack_layers(shape, gradient), integers, network.backward(exact, full, slopes)


FORMATS = [
    pytest.param(FixedPointFormat(8, 18, DIRECT, 1, 0), 0, id="direct8"),
    pytest.param(FixedPointFormat(27, 37, DIRECT, 1, 0), 0, id="direct27"),
    pytest.param(FixedPointFormat(10, 20, ADAPTIVE, 1, 0), 13, id="adaptive10"),
    pytest.param(FixedPointFormat(10, 12, ADAPTIVE, 1, 0), 22, id="adaptive10-saturating"),
    pytest.param(FixedPointFormat(8, 18, BATCH, 10, 0), 13, id="batch8"),
    pytest.param(FixedPointFormat(4, 5, BATCH, 3, 2), 14, id="batch4"),
    pytest.param(FixedPointFormat(31, 41, BATCH, 10, 1), 13, id="batch31"),
]


@pytest.mark.parametrize(("fmt", "scale_exponent"), FORMATS)
@pytest.mark.parametrize("hidden", [(), (5,), (6, 3)])
def test_kernel_equals_the_integer_model(fmt, scale_exponent, hidden):
    output = "sigmoid" if hidden else "identity"
    kernel, integers, _ = backward(fmt, scale_exponent, hidden, output=output)
    for (weights, bias), (expected_weights, expected_bias) in zip(kernel, integers, strict=True):
        # The sums are the same integers; they differ from the model only by float32's rounding of the last step.
        np.testing.assert_allclose(weights, expected_weights, **TOLERANCES["cpu"]["fixed-point gradient"])
        np.testing.assert_allclose(bias, expected_bias, **TOLERANCES["cpu"]["fixed-point gradient"])


def test_with_many_bits_it_is_the_float_gradient():
    kernel, _, exact = backward(FixedPointFormat(31, 60, ADAPTIVE, 1, 0), 11)
    for (weights, bias), (expected_weights, expected_bias) in zip(kernel, exact, strict=True):
        np.testing.assert_allclose(weights, expected_weights, rtol=1e-3, atol=2e-5)
        np.testing.assert_allclose(bias, expected_bias, rtol=1e-3, atol=2e-5)


def test_batches_keep_what_one_scale_loses():
    def error(method, batches):
        # Gradients near 1e-4, where one last place of 8 bits is 2^−7.
        kernel, _, exact = backward(
            FixedPointFormat(8, 18, method, batches, 0), 13, (), n=40, spread=1e-4, output="identity"
        )
        return sum(np.abs(w - e).sum() for (w, _), (e, _) in zip(kernel, exact, strict=True))

    assert error(BATCH, 10) < 0.5 * error(ADAPTIVE, 1)


@pytest.mark.parametrize(
    ("value", "exponent", "bits", "expected"),
    [
        (0.5, 0, 8, 64),
        (-0.5, 0, 8, -64),
        (1.0, 0, 8, 127),
        (-1.0, 0, 8, -128),
        (-9.0, 3, 8, -128),
        (0.5 / 128, 0, 8, 1),  # half of the last place: up
        (-0.5 / 128, 0, 8, 0),  # also up
        (1.0, 13, 8, 0),  # 1/64 of the last place
        (1e300, 13, 31, 2**30 - 1),
    ],
)
def test_quantise_rounds_half_up_and_saturates(value, exponent, bits, expected):
    assert quantise(value, exponent, bits) == expected
    assert model.quantise(value, exponent, bits) == expected


def test_loss_scale_grows_every_thirty_epochs():
    assert [loss_scale_exponent(ADAPTIVE, epoch) for epoch in (0, 29, 30, 299)] == [13, 13, 14, 22]
    assert loss_scale_exponent(DIRECT, 299) == 0


def test_precision_names():
    assert bits_of_precision("float32") is None
    assert bits_of_precision("fixed8") == 8
    with pytest.raises(ParameterError, match="precision must be 'float32' or 'fixedN'"):
        bits_of_precision("fixed64")
