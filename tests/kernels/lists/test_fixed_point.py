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
    INTEGER_BITS,
    LEAST_EXPONENT,
    FixedPointFormat,
    bits_of_precision,
    sufficient_accumulator_bits,
)
from rankwell.kernels.lists.network_shape import network_shape, pack_layers, unpack_layers
from rankwell.kernels.lists.reference import fixed_point as model
from rankwell.kernels.lists.reference import network


def backward(fmt, hidden=(5,), n=9, n_features=4, spread=1.0, output="sigmoid", slopes=None):
    """The kernel's gradient, the integer model's and float64's, for one random query."""
    rng = np.random.default_rng(len(hidden) + n)
    shape = network_shape(n_features, hidden, "sigmoid", output)
    sizes = [n_features, *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    flat = pack_layers(shape, layers)
    layers = unpack_layers(shape, flat)
    features = rng.uniform(0, 1, (n, n_features)).astype(np.float32)
    if slopes is None:
        slopes = rng.normal(size=n) * spread * 10.0 ** -rng.integers(0, 4, n)
    outputs, scores = np.empty(n * shape.n_hidden + 1, dtype=np.float32), np.empty(n, dtype=np.float32)
    chunk = 4
    for first in range(0, n, chunk):
        last = min(first + chunk, n)
        forward(
            shape, flat, features[first:last], outputs[first * shape.n_hidden :], scores[first:last], 0.0, np.uint64(0)
        )
    quantised = np.array([[model.quantise(x, fmt.feature_bits, fmt.bits) for x in row] for row in features], np.int32)
    gradient = np.zeros(shape.n_parameters, dtype=np.float32)
    fixed_point_backward(shape, fmt, flat, quantised, outputs, chunk, scores, slopes, gradient)
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
    integers = model.fixed_point_backward(fmt, features, hidden_outputs, scores, layers, output == "sigmoid", slopes)
    full = [(w, b, a) for (w, b), a in zip(layers, ["sigmoid"] * len(hidden) + [output], strict=True)]
    return unpack_layers(shape, gradient), integers, network.backward(exact, full, slopes)


FORMATS = [
    pytest.param(FixedPointFormat(8, 18, DIRECT, 1, 0), id="direct8"),
    pytest.param(FixedPointFormat(27, 37, DIRECT, 1, 0), id="direct27"),
    pytest.param(FixedPointFormat(10, 20, ADAPTIVE, 1, 0), id="adaptive10"),
    pytest.param(FixedPointFormat(10, 12, ADAPTIVE, 1, 0), id="adaptive10-saturating"),
    pytest.param(FixedPointFormat(8, 18, BATCH, 10, 0), id="batch8"),
    pytest.param(FixedPointFormat(4, 5, BATCH, 3, 2), id="batch4"),
    pytest.param(FixedPointFormat(31, 41, BATCH, 10, 1), id="batch31"),
]


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("hidden", [(), (5,), (6, 3)])
def test_kernel_equals_the_integer_model(fmt, hidden):
    output = "sigmoid" if hidden else "identity"
    kernel, integers, _ = backward(fmt, hidden, output=output)
    for (weights, bias), (expected_weights, expected_bias) in zip(kernel, integers, strict=True):
        # The sums are the same integers; they differ from the model only by float32's rounding of the last step.
        np.testing.assert_allclose(weights, expected_weights, **TOLERANCES["cpu"]["fixed-point gradient"])
        np.testing.assert_allclose(bias, expected_bias, **TOLERANCES["cpu"]["fixed-point gradient"])


@pytest.mark.parametrize("spread", [1e-30, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("hidden", [(), (5,), (6, 3)])
def test_with_many_bits_it_is_the_float_gradient(hidden, spread):
    kernel, _, exact = backward(FixedPointFormat(31, 60, ADAPTIVE, 1, 0), hidden, spread=spread)
    for (weights, bias), (expected_weights, expected_bias) in zip(kernel, exact, strict=True):
        np.testing.assert_allclose(weights, expected_weights, rtol=1e-3, atol=2e-6 * spread)
        np.testing.assert_allclose(bias, expected_bias, rtol=1e-3, atol=2e-6 * spread)


def test_batches_keep_what_one_scale_loses():
    # One relevant document among 300: the others' gradients are below half of the last place of the largest.
    slopes = np.full(300, 1 / 300)
    slopes[7] -= 1

    def error(method, batches):
        fmt = FixedPointFormat(8, 18, method, batches, 0)
        kernel, _, exact = backward(fmt, (), n=300, output="identity", slopes=slopes)
        return sum(np.abs(w - e).sum() for (w, _), (e, _) in zip(kernel, exact, strict=True))

    assert error(BATCH, 10) < 0.1 * error(ADAPTIVE, 1)


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


def scaled(fmt, gradients):
    """What every document's gradient becomes before it is rounded, and the model's integers."""
    exponents = [model.gradient_exponent(gradient) for gradient in gradients]
    largest = max(exponents)
    scale = model.loss_scale_exponent(fmt, largest)
    values = [
        gradient * 2.0 ** (scale + model.batch_of(fmt, largest, exponent))
        for gradient, exponent in zip(gradients, exponents, strict=True)
    ]
    return values, [model.quantise(value, INTEGER_BITS, fmt.bits) for value in values]


@pytest.mark.parametrize("method", [ADAPTIVE, BATCH])
@pytest.mark.parametrize("largest", [1e-300, 1e-12, 0.5, np.nextafter(1.0, 0.0), 1.0, 3.0, 1e9])
def test_the_loss_scale_lets_no_gradient_overflow(method, largest):
    fmt = FixedPointFormat(31, 41, method, 10 if method == BATCH else 1, 0)
    values, integers = scaled(fmt, [largest, -largest, largest / 3, -largest / 300, 0.0])
    assert max(abs(value) for value in values) < 2**INTEGER_BITS
    if largest > 1e-30:  # below float32's range there is nothing to keep
        assert abs(integers[0]) >= 2**29  # the largest gradient uses the highest bit
    if method == BATCH:
        assert all(abs(integer) >= 2**29 for integer in integers[:4]) or largest < 1e-30


def test_loss_scale_and_batches_by_hand():
    # 0.75 < 2^0, 0.2 < 2^−2, 0.01 < 2^−6: F = 2^13, and a batch is the distance to the largest exponent.
    fmt = FixedPointFormat(8, 18, BATCH, 4, 0)
    assert [model.gradient_exponent(g) for g in (0.75, -0.2, 0.01, 0.5, 0.0)] == [0, -2, -6, 0, LEAST_EXPONENT]
    assert model.loss_scale_exponent(fmt, 0) == INTEGER_BITS
    assert [model.batch_of(fmt, 0, exponent) for exponent in (0, -2, -6, LEAST_EXPONENT)] == [0, 2, 3, 3]
    assert model.loss_scale_exponent(FixedPointFormat(8, 18, DIRECT, 1, 0), -5) == 0


@pytest.mark.parametrize(("most_docs", "bits"), [(1, 18), (1024, 18), (1025, 19), (100_000, 25)])
def test_accumulators_hold_the_longest_list(most_docs, bits):
    assert sufficient_accumulator_bits(8, most_docs) == bits
    assert most_docs * 2**7 <= 2 ** (bits - 1)


def test_precision_names():
    assert bits_of_precision("float32") is None
    assert bits_of_precision("fixed8") == 8
    with pytest.raises(ParameterError, match="precision must be 'float32' or 'fixedN'"):
        bits_of_precision("fixed64")
