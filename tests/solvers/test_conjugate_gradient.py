"""Conjugate gradient in a trust region: exact on small quadratics, never outside the region."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell.solvers.conjugate_gradient import minimise_model

FAR = 1e9


def quadratic(n=6, seed=0, condition=50.0):
    """A positive definite Hessian and a gradient."""
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.normal(size=(n, n)))[0]
    hessian = basis @ np.diag(np.geomspace(1, condition, n)) @ basis.T
    return hessian, generator.normal(size=n)


def model(hessian, gradient, step):
    return gradient @ step + 0.5 * step @ hessian @ step


def test_by_hand():
    """H = diag(2, 8), g = (−2, −8): H·s = −g at s = (1, 1); with M = diag(H) it takes one product."""
    hessian, gradient = np.diag([2.0, 8.0]), np.array([-2.0, -8.0])
    found = minimise_model(gradient, lambda v: hessian @ v, np.array([2.0, 8.0]), FAR, tolerance=1e-12, max_products=10)
    np.testing.assert_allclose(found.step, [1.0, 1.0], rtol=1e-12)
    assert found.n_products == 1
    assert not found.on_boundary


@pytest.mark.parametrize("preconditioned", [False, True])
def test_as_many_products_as_dimensions_solve_it(preconditioned):
    hessian, gradient = quadratic()
    diagonal = np.diag(hessian) if preconditioned else np.ones(6)
    found = minimise_model(gradient, lambda v: hessian @ v, diagonal, FAR, tolerance=1e-10, max_products=100)
    np.testing.assert_allclose(found.step, np.linalg.solve(hessian, -gradient), rtol=1e-8)
    np.testing.assert_allclose(found.residual, -gradient - hessian @ found.step, atol=1e-10)
    assert found.n_products <= 7


def test_the_tolerance_decides_how_far_it_goes():
    hessian, gradient = quadratic(n=40, condition=1e4)
    diagonal = np.ones(40)
    used = []
    for tolerance in (0.5, 0.1, 1e-3):
        found = minimise_model(gradient, lambda v: hessian @ v, diagonal, FAR, tolerance=tolerance, max_products=1000)
        used.append(found.n_products)
    assert used[0] < used[1] < used[2]


def test_max_products_ends_it():
    hessian, gradient = quadratic(n=40, condition=1e4)
    found = minimise_model(gradient, lambda v: hessian @ v, np.ones(40), FAR, tolerance=1e-12, max_products=3)
    assert found.n_products == 3
    np.testing.assert_allclose(found.residual, -gradient - hessian @ found.step, atol=1e-12)


@pytest.mark.parametrize("radius", [1e-3, 0.1, 0.5])
def test_the_region_is_measured_in_the_norm_of_m(radius):
    hessian, gradient = quadratic()
    diagonal = np.diag(hessian).copy()
    found = minimise_model(gradient, lambda v: hessian @ v, diagonal, radius, tolerance=1e-10, max_products=100)
    assert found.on_boundary
    assert np.sqrt(found.step @ (diagonal * found.step)) == pytest.approx(radius, rel=1e-12)
    np.testing.assert_allclose(found.residual, -gradient - hessian @ found.step, atol=1e-10)
    assert model(hessian, gradient, found.step) < 0


def test_a_larger_region_is_never_worse():
    hessian, gradient = quadratic(seed=3)
    values = []
    for radius in (0.01, 0.1, 1.0, 10.0):
        found = minimise_model(gradient, lambda v: hessian @ v, np.ones(6), radius, tolerance=1e-10, max_products=50)
        values.append(model(hessian, gradient, found.step))
    assert values == sorted(values, reverse=True)
