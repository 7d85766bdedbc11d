"""What a second-order solver needs from a function, independent of losses, queries and features."""

from __future__ import annotations

from typing import Any, Protocol


class Objective(Protocol):
    """A convex function f of a vector, on any device.

    Vectors are float64 arrays of one kind (NumPy or CuPy); the solver only adds, scales and multiplies them. `evaluate`
    evaluates f at a point, `accept` makes the last evaluated point the one where second derivatives are taken: so a
    step can be tried and rejected without losing them.
    """

    def evaluate(self, w: Any) -> tuple[float, Any]:
        """f(w) and ∇f(w)."""

    def accept(self) -> None:
        """Take second derivatives at the last evaluated point."""

    def hessian_vector(self, v: Any) -> Any:
        """∇²f·v."""

    def preconditioner(self) -> Any:
        """A positive diagonal close to that of ∇²f."""
