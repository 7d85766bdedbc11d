"""Trust-region Newton on functions whose minimum is known: it knows no loss."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell.solvers.trust_region_newton import minimise


class Quadratic:
    """½(w − m)·H(w − m), with every call counted."""

    def __init__(self, hessian, minimum):
        self.hessian, self.minimum = np.asarray(hessian, dtype=float), np.asarray(minimum, dtype=float)
        self.n_evaluations = self.n_products = 0

    def evaluate(self, w):
        self.n_evaluations += 1
        gradient = self.hessian @ (w - self.minimum)
        return 0.5 * (w - self.minimum) @ gradient, gradient

    def accept(self):
        pass

    def hessian_vector(self, v):
        self.n_products += 1
        return self.hessian @ v

    def preconditioner(self):
        return np.diag(self.hessian)


class SoftAbsolute:
    """Σ a·√(1 + (w/a)²) with minimum 0: far from quadratic, so that full Newton steps overshoot wildly."""

    def __init__(self, scale):
        self.scale = np.asarray(scale, dtype=float)
        self.tried = self.w = None
        self.accepted = []

    def evaluate(self, w):
        self.tried = w
        root = np.sqrt(1 + (w / self.scale) ** 2)
        return float(self.scale @ root), w / (self.scale * root)

    def accept(self):
        self.w = self.tried
        self.accepted.append(self.w)

    def _curvature(self):
        return 1 / (self.scale * (1 + (self.w / self.scale) ** 2) ** 1.5)

    def hessian_vector(self, v):
        return self._curvature() * v

    def preconditioner(self):
        return self._curvature()


def test_a_quadratic_is_solved_and_counted():
    objective = Quadratic([[4.0, 1.0], [1.0, 3.0]], [1.0, -2.0])
    result = minimise(objective, np.zeros(2), tolerance=1e-10)
    np.testing.assert_allclose(result.w, [1.0, -2.0], rtol=1e-8)
    assert result.converged
    assert result.stopped_by == "gradient"
    assert result.relative_gradient <= 1e-10
    assert result.n_products == objective.n_products
    assert result.n_evaluations == objective.n_evaluations == result.n_iterations + 1


@pytest.mark.parametrize("preconditioning", [0.0, 0.01, 1.0])
def test_any_preconditioner_leads_to_the_same_point(preconditioning):
    objective = SoftAbsolute([1.0, 10.0, 0.1])
    result = minimise(
        objective,
        np.array([5.0, -3.0, 20.0]),
        initial_gradient_norm=1.0,
        tolerance=1e-9,
        preconditioning=preconditioning,
    )
    assert result.converged
    np.testing.assert_allclose(result.w, 0.0, atol=1e-8)


def test_the_preconditioner_saves_products_on_badly_scaled_functions():
    generator = np.random.default_rng(0)
    scale = np.geomspace(1e-3, 1e3, 30)
    inner = generator.normal(size=(30, 30))
    hessian = scale[:, None] * (inner @ inner.T / 30 + np.eye(30)) * scale
    products = []
    for preconditioning in (0.0, 1.0):
        objective = Quadratic(hessian, 1 / scale)
        result = minimise(objective, np.zeros(30), tolerance=1e-6, preconditioning=preconditioning)
        assert result.converged
        products.append(result.n_products)
    assert products[1] < products[0] / 2


def test_a_step_that_overshoots_is_refused_and_the_region_shrinks():
    """Newton's own step for √(1 + w²) from w = 2 lands at −w³ = −8, and leaves for good; the region brings it back."""
    objective = SoftAbsolute([1.0])
    seen = []
    result = minimise(
        objective, np.array([2.0]), initial_gradient_norm=1.0, tolerance=1e-8, callback=lambda step: seen.append(step)
    )
    assert result.converged
    values = [objective.evaluate(w)[0] for w in objective.accepted]
    assert values == sorted(values, reverse=True)
    assert len(objective.accepted) == 1 + sum(step.accepted for step in seen)


def test_a_refused_step_changes_nothing():
    class Trap(Quadratic):
        """Promises a fall and delivers a rise, everywhere but at the start."""

        def evaluate(self, w):
            value, gradient = super().evaluate(w)
            return (1.0 if not w.any() else 2.0 + value), gradient

    steps = []
    result = minimise(Trap(np.eye(2), [1.0, 1.0]), np.zeros(2), max_iterations=5, callback=lambda s: steps.append(s))
    assert not any(step.accepted for step in steps)
    np.testing.assert_array_equal(result.w, [0.0, 0.0])
    assert result.value == 1.0
    assert result.stopped_by == "max_iterations"
    assert not result.converged


def test_the_gradient_is_compared_with_the_one_at_zero():
    """From a warm start whose gradient is already 1e-6 of ‖∇f(0)‖ nothing is left to do."""
    objective = Quadratic(np.eye(3), [1.0, 2.0, 2.0])
    start = np.array([1.0, 2.0, 2.0]) + 3e-6 / np.sqrt(3)
    result = minimise(objective, start, initial_gradient_norm=3.0, tolerance=1e-5)
    assert result.n_iterations == 0
    assert result.converged
    assert result.relative_gradient == pytest.approx(1e-6, rel=1e-6)


def test_a_start_at_the_minimum_of_everything():
    result = minimise(Quadratic(np.eye(2), [0.0, 0.0]), np.zeros(2))
    assert result.converged
    assert result.n_iterations == 0


def test_a_callback_ends_the_run():
    result = minimise(
        SoftAbsolute([1.0, 3.0]), np.array([9.0, -9.0]), initial_gradient_norm=1.0, callback=lambda s: True
    )
    assert result.n_iterations == 1
    assert result.stopped_by == "callback"


def test_a_tolerance_below_rounding_ends():
    objective = SoftAbsolute([1.0, 10.0])
    result = minimise(objective, np.array([5.0, 3.0]), initial_gradient_norm=1.0, tolerance=1e-300, max_iterations=500)
    assert result.stopped_by in ("rounding", "gradient")
    np.testing.assert_allclose(result.w, 0.0, atol=1e-6)


def test_the_steps_tell_the_story():
    steps = []
    result = minimise(
        SoftAbsolute([1.0, 10.0]),
        np.array([5.0, -3.0]),
        initial_gradient_norm=1.0,
        tolerance=1e-8,
        callback=lambda step: steps.append(step),
    )
    assert [step.number for step in steps] == list(range(1, result.n_iterations + 1))
    assert sum(step.n_products for step in steps) == result.n_products
    assert steps[-1].value == result.value
    assert steps[-1].relative_gradient == result.relative_gradient <= 1e-8
    np.testing.assert_array_equal(steps[-1].w, result.w)
