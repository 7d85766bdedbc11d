"""What a second-order solver needs to know of a function: nothing of losses, queries or features."""

from __future__ import annotations

from typing import Any, Protocol


class Objective(Protocol):
    """A convex function f of a vector, on any device.

    Vectors are float64 arrays of one kind (NumPy or CuPy); the solver only adds, scales and multiplies them. `evaluate`
    looks at a point, `accept` makes the point looked at last the one where second derivatives are taken: so a step can
    be tried and refused without losing them.
    """

    def evaluate(self, w: Any) -> tuple[float, Any]:
        """f(w) and ∇f(w)."""

    def accept(self) -> None:
        """Take second derivatives at the point looked at last."""

    def hessian_vector(self, v: Any) -> Any:
        """∇²f·v."""

    def preconditioner(self) -> Any:
        """A positive diagonal close to that of ∇²f."""
