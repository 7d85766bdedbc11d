"""Importances and linear forms, from the description of a ranker alone."""

import numpy as np
import pytest

from rankwell.scoring.description import (
    BucketInputs,
    Dense,
    ExpressionInputs,
    LinearInputs,
    Mean,
    RankerDescription,
    Sum,
)
from rankwell.scoring.importance import feature_importances
from rankwell.scoring.linear_form import linear_form
from rankwell.scoring.normaliser import Normaliser

NAMES = ("a", "b", "c")


def described(inputs, *layers, normaliser=None):
    return RankerDescription(NAMES, normaliser or Normaliser(), inputs, layers)


def test_a_linear_function():
    inputs = LinearInputs(np.array([0, 2, 0]), np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.0, 0.0]), np.zeros(3))
    ranker = described((inputs,), Dense(np.array([[2.0, 1.0, -1.0]]), np.array([10.0])))
    # 2·(a + 0.5) − 2c − 3a + 10
    form = linear_form(ranker)
    np.testing.assert_allclose(form.coef, [2 - 3, 0, -2])
    assert form.intercept == 11
    np.testing.assert_allclose(feature_importances(ranker), [2 + 3, 0, 2])


def test_a_linear_network_of_two_layers_and_a_mean():
    inputs = LinearInputs.identity(3)
    first = Dense(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 4.0]]), np.array([1.0, 3.0]))
    # the mean of a + 2c + 1 and b + 4c + 3
    form = linear_form(described((inputs,), first, Mean()))
    np.testing.assert_allclose(form.coef, [0.5, 0.5, 3.0])
    assert form.intercept == 2.0
    np.testing.assert_allclose(linear_form(described((inputs,), first, Sum(1.0))).coef, [1, 1, 6])
    assert linear_form(described((inputs,), first, Sum(1.0))).intercept == 5.0


def test_the_standard_normaliser_goes_into_the_coefficients():
    # 3·(a − 10)/2 + 0·b + 1·(c − 1)/4; b is constant in training
    normaliser = Normaliser("standard", {"mean": np.array([10.0, 5.0, 1.0]), "scale": np.array([2.0, np.inf, 4.0])})
    layer = Dense(np.array([[3.0, 7.0, 1.0]]), np.zeros(1))
    form = linear_form(described((LinearInputs.identity(3),), layer, normaliser=normaliser))
    np.testing.assert_allclose(form.coef, [1.5, 0, 0.25])
    assert form.intercept == pytest.approx(-15.25)


def test_what_is_not_linear_has_no_coefficients():
    layer = Dense(np.ones((1, 3)), np.zeros(1), "sigmoid")
    with pytest.raises(AttributeError, match="linear function of the features"):
        linear_form(described((LinearInputs.identity(3),), layer))
    with pytest.raises(AttributeError, match="linear function of the features"):
        linear_form(described((ExpressionInputs(("a",), np.zeros(1)),), Sum()))


def test_a_networks_paths_are_multiplied_and_summed():
    hidden = Dense(np.array([[1.0, -2.0, 0.0], [3.0, 0.0, 0.0]]), np.zeros(2), "tanh")
    output = Dense(np.array([[10.0, -100.0]]), np.zeros(1))
    ranker = described((LinearInputs.identity(3),), hidden, output)
    np.testing.assert_allclose(feature_importances(ranker), [10 * 1 + 100 * 3, 10 * 2, 0])


def test_steps_and_expressions():
    steps = BucketInputs(
        feature=np.array([1, 2], dtype=np.int32),
        edge_ptr=np.array([0, 2, 3]),
        edges=np.array([0.0, 1.0, 5.0], dtype=np.float32),
        values=np.array([0.0, 2.0, -1.0, 4.0, 4.5]),
        missing=np.zeros(2),
    )
    formulas = ExpressionInputs(("a * b + b", "log1p(c)"), np.zeros(2))
    layer = Dense(np.array([[1.0, 1.0, -10.0, 0.5]]), np.zeros(1))
    # b: steps of 2 and 3, and the first formula; c: a step of 0.5, and the second formula
    np.testing.assert_allclose(feature_importances(described((steps, formulas), layer)), [10, 5 + 10, 0.5 + 0.5])
