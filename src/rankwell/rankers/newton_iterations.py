"""RankSVM's objective (equation 1), f(w) = ½‖w‖² + C·L(w), and the outer iterations that minimise it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rankwell.kernels.pair_loss.contract import PairLoss
from rankwell.rankers.ranksvm_data import LinearScores
from rankwell.rankers.training_run import Steps, StepSource
from rankwell.solvers.trust_region_newton import TrustRegionNewton


class RankSVMObjective:
    """A `rankwell.solvers.objective.Objective` over a pair loss. `C` may change between minimisations."""

    def __init__(self, loss: PairLoss, C: float) -> None:
        self._loss = loss
        self.C = C

    def evaluate(self, w: Any) -> tuple[float, Any]:
        loss, gradient = self._loss.loss_and_gradient(w)
        return 0.5 * float(w @ w) + self.C * loss, w + self.C * gradient

    def accept(self) -> None:
        self._loss.accept()

    def hessian_vector(self, v: Any) -> Any:
        return v + self.C * self._loss.hessian_vector(v)

    def preconditioner(self) -> Any:
        return 1.0 + self.C * self._loss.curvature()


class NewtonIterations(StepSource):
    """Outer iterations of trust-region Newton for one C, one at a time.

    Parameters
    ----------
    loss : PairLoss
    C, tol : float
    start : float64 array (n_features,), optional
        Weights of normalised features; without it 0.
    initial_gradient_norm : float, optional
        ‖∇f(0)‖, where it is known.
    validation : LinearScores, optional

    Attributes
    ----------
    best : float64 array (n_features,) or None
        The weights of the iteration that was best on the validation data; None before the first one.
    """

    figures = ("objective", "relative_gradient", "eta", "products")

    def __init__(
        self,
        loss: PairLoss,
        C: float,
        tol: float,
        *,
        start: np.ndarray | None = None,
        initial_gradient_norm: float | None = None,
        validation: LinearScores | None = None,
    ) -> None:
        self._loss = loss
        self._C, self._tol = C, tol
        self._start = start
        self._initial_gradient_norm = initial_gradient_norm
        self._validation = validation
        self._gradient_before = 1.0
        self._remaining = 0.0
        self.best: np.ndarray | None = None

    @cached_property
    def solver(self) -> TrustRegionNewton:
        """Made by the first iteration, so that its passes over the data count as training."""
        loss, norm = self._loss, self._initial_gradient_norm
        if self._start is not None and norm is None:
            norm = self._C * loss_gradient_norm_at_zero(loss)
        return TrustRegionNewton(
            RankSVMObjective(loss, self._C),
            loss.to_device(np.zeros(loss.n_features) if self._start is None else self._start),
            initial_gradient_norm=norm,
            tolerance=self._tol,
        )

    @property
    def weights(self) -> np.ndarray:
        """The weights after the last iteration, float64 (n_features,)."""
        return self._loss.to_host(self.solver.w)

    def run(self, n_steps: int) -> Steps:
        """Make one outer iteration, unless the start is good enough already."""
        if self.solver.stopped_by is not None:
            return Steps([], finished=True)
        step = self.solver.iterate()
        # What is left to gain cannot be known; it shrinks at least about as fast as the gradient does.
        ratio = step.relative_gradient / self._gradient_before
        self._remaining = step.predicted_fall * min(ratio, 1.0)
        self._gradient_before = step.relative_gradient
        figures = {
            "objective": step.value,
            "relative_gradient": step.relative_gradient,
            "eta": step.value / _estimated_optimum(step.value, self._remaining) - 1.0,  # equation 15
            "products": self.solver.n_products,
        }
        return Steps([figures], finished=self.solver.stopped_by is not None)

    def validation_scores(self) -> np.ndarray:
        assert self._validation is not None
        return self._validation.under(self.weights)

    def step_done(self, seconds: float, validation: float | None, is_best: bool) -> None:
        if is_best:
            self.best = self.weights.copy()

    def final_eta(self, objectives: list[float]) -> list[float]:
        """Every η against one f(w*): the last objective less what was left to gain then."""
        if not objectives:
            return []
        optimum = _estimated_optimum(objectives[-1], self._remaining)
        return [abs(value - optimum) / optimum for value in objectives]


def loss_gradient_norm_at_zero(loss: PairLoss) -> float:
    """‖∇L(0)‖; times C it is ‖∇f(0)‖, which the stopping rule compares with."""
    gradient = loss.loss_and_gradient(loss.to_device(np.zeros(loss.n_features)))[1]
    return float(gradient @ gradient) ** 0.5


def _estimated_optimum(value: float, remaining: float) -> float:
    """f(w*), always above 0; far from it, where the estimate means little, no lower than a hundredth of f(w)."""
    return max(value - remaining, 0.01 * value)
