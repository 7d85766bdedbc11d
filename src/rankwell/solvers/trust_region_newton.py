"""Trust-region Newton (TRON): Algorithm 1 of Jin and Lin (2014), after Lin, Weng and Keerthi (2008).

Each outer iteration minimises a quadratic model of f inside a trust region by conjugate gradient, tries the step, and
accepts it if f fell enough; the region grows or shrinks by how well the model predicted the fall. Constants and updates
are LIBLINEAR's, and so is the form of the preconditioner, M = (1 − a)·I + a·diag(∇²f), in whose norm the region is
measured. LIBLINEAR sets a = 0.01; here it is 1, which took fewer steps wherever it was measured.

The stopping rule is the paper's equation 3: ‖∇f(w)‖ ≤ tolerance·‖∇f(0)‖.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from rankwell.solvers.conjugate_gradient import minimise_model
from rankwell.solvers.objective import Objective

# LIBLINEAR's: a step is taken if f falls by ETA_0 of what the model promised; ETA_1 and ETA_2 divide poor, fair and
# good predictions; the region changes by factors between SIGMA_1 and SIGMA_3.
_ETA_0, _ETA_1, _ETA_2 = 1e-4, 0.25, 0.75
_SIGMA_1, _SIGMA_2, _SIGMA_3 = 0.25, 0.5, 4.0
# Below this share of f a change is rounding, and says nothing of a step; the gradient still does.
_ROUNDING = 1e-12
# How far the inner iterations go: the residual they leave, relative to the gradient, and their number at most.
_MODEL_TOLERANCE, _MOST_PRODUCTS = 0.1, 1000


@dataclass(frozen=True)
class NewtonStep:
    """One outer iteration, as a callback sees it.

    relative_gradient : ‖∇f(w)‖ / ‖∇f(0)‖ after the step
    predicted_fall : what the model promised the step would gain
    accepted : whether the step was taken
    n_products : Hessian-vector products of this iteration
    w : the point after the step
    """

    number: int
    value: float
    relative_gradient: float
    predicted_fall: float
    accepted: bool
    n_products: int
    w: Any


@dataclass(frozen=True)
class NewtonResult:
    """Where the solver stopped and why.

    converged : whether the stopping rule was met
    stopped_by : "gradient" (the stopping rule), "rounding" (f and its gradient cannot fall further in float64),
        "callback" or "max_iterations"
    """

    w: Any
    value: float
    relative_gradient: float
    n_iterations: int
    n_products: int
    n_evaluations: int
    converged: bool
    stopped_by: str


def minimise(
    objective: Objective,
    start: Any,
    *,
    initial_gradient_norm: float | None = None,
    tolerance: float = 1e-5,
    max_iterations: int = 1000,
    preconditioning: float = 1.0,
    callback: Callable[[NewtonStep], bool | None] | None = None,
) -> NewtonResult:
    """Minimise a convex objective; parameters as `TrustRegionNewton`'s, and

    max_iterations : int
    callback : callable, optional
        Called with a `NewtonStep` after each outer iteration; a true answer ends the run.
    """
    solver = TrustRegionNewton(
        objective,
        start,
        initial_gradient_norm=initial_gradient_norm,
        tolerance=tolerance,
        preconditioning=preconditioning,
    )
    while solver.stopped_by is None and solver.n_iterations < max_iterations:
        step = solver.iterate()
        if callback is not None and callback(step):
            return solver.result("callback")
    return solver.result("max_iterations")


class TrustRegionNewton:
    """One minimisation of a convex objective, an outer iteration at a time.

    Parameters
    ----------
    start : float64 array (n,)
        Where to begin; of the objective's own kind of array.
    initial_gradient_norm : float, optional
        ‖∇f(0)‖, where it is known; needed if `start` is not 0, else it is measured there.
    tolerance : float
        The stopping rule.
    preconditioning : float
        The share a of the Hessian's diagonal in M: 0 is none.

    Attributes
    ----------
    w : float64 array (n,)
        The point after the last iteration.
    stopped_by : "gradient", "rounding" or None
        Why no further iteration is wanted; None where one is.
    n_iterations, n_products, n_evaluations : int
    """

    def __init__(
        self,
        objective: Objective,
        start: Any,
        *,
        initial_gradient_norm: float | None = None,
        tolerance: float = 1e-5,
        preconditioning: float = 1.0,
    ) -> None:
        self._objective = objective
        self._tolerance = tolerance
        self._share = preconditioning
        self.w = start
        self.value, self.gradient = objective.evaluate(start)
        objective.accept()
        self._norm = _norm(self.gradient)
        self._initial_norm = self._norm if initial_gradient_norm is None else initial_gradient_norm
        self._diagonal = self._preconditioner()
        self._radius = sqrt(float(self.gradient @ (self._diagonal * self.gradient)))
        self.n_iterations = self.n_products = 0
        self.n_evaluations = 1
        self._has_moved = False
        self.stopped_by: str | None = "gradient" if self.relative_gradient <= tolerance else None

    @property
    def relative_gradient(self) -> float:
        return self._norm / self._initial_norm if self._initial_norm > 0 else 0.0

    def iterate(self) -> NewtonStep:
        """Make one outer iteration."""
        model = minimise_model(
            self.gradient,
            self._objective.hessian_vector,
            self._diagonal,
            self._radius,
            tolerance=_MODEL_TOLERANCE,
            max_products=_MOST_PRODUCTS,
        )
        slope = float(self.gradient @ model.step)
        predicted = -0.5 * (slope - float(model.step @ model.residual))
        tried = self.w + model.step
        value, gradient = self._objective.evaluate(tried)
        fall = self.value - value
        if max(abs(fall), abs(predicted)) <= _ROUNDING * abs(self.value):
            accepted = _norm(gradient) < self._norm
            self.stopped_by = None if accepted else "rounding"
        else:
            accepted = fall > _ETA_0 * predicted
            length = sqrt(float(model.step @ (self._diagonal * model.step)))
            self._update_radius(fall, predicted, slope, length, model.on_boundary)
        self.n_iterations += 1
        self.n_products += model.n_products
        self.n_evaluations += 1
        if accepted:
            self._move(tried, value, gradient)
            self.stopped_by = "gradient" if self.relative_gradient <= self._tolerance else None
        return NewtonStep(
            self.n_iterations, self.value, self.relative_gradient, predicted, accepted, model.n_products, self.w
        )

    def _move(self, w: Any, value: float, gradient: Any) -> None:
        self._objective.accept()
        self.w, self.value, self.gradient = w, value, gradient
        self._norm = _norm(gradient)
        self._diagonal = self._preconditioner()
        self._has_moved = True

    def _preconditioner(self) -> Any:
        if self._share == 0:
            return 1.0 + 0.0 * self.gradient
        return (1.0 - self._share) + self._share * self._objective.preconditioner()

    def _update_radius(self, fall: float, predicted: float, slope: float, length: float, on_boundary: bool) -> None:
        if not self._has_moved:
            self._radius = min(self._radius, length)
        # The step's best multiple, if f were the parabola through f(w), its slope and f(w + s).
        excess = -fall - slope
        multiple = _SIGMA_3 if excess <= 0 else max(_SIGMA_1, -0.5 * slope / excess)
        wanted, radius = multiple * length, self._radius
        if fall < _ETA_0 * predicted:
            self._radius = min(wanted, _SIGMA_2 * radius)
        elif fall < _ETA_1 * predicted:
            self._radius = max(_SIGMA_1 * radius, min(wanted, _SIGMA_2 * radius))
        elif fall < _ETA_2 * predicted:
            self._radius = max(_SIGMA_1 * radius, min(wanted, _SIGMA_3 * radius))
        elif on_boundary:
            self._radius = _SIGMA_3 * radius
        else:
            self._radius = max(radius, min(wanted, _SIGMA_3 * radius))

    def result(self, otherwise: str) -> NewtonResult:
        """Where it is, stopped by what `stopped_by` says, or by what `otherwise` says where that is None."""
        stopped_by = self.stopped_by or otherwise
        return NewtonResult(
            self.w,
            self.value,
            self.relative_gradient,
            self.n_iterations,
            self.n_products,
            self.n_evaluations,
            converged=stopped_by == "gradient",
            stopped_by=stopped_by,
        )


def _norm(vector: Any) -> float:
    return sqrt(float(vector @ vector))
