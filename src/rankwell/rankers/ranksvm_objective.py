"""The objective of linear RankSVM with L2 loss (equation 1): f(w) = ½‖w‖² + C·L(w)."""

from __future__ import annotations

from typing import Any

from rankwell.kernels.pair_loss.contract import PairLoss


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
