"""Preconditioned conjugate gradient within a trust region (Steihaug's method): the inner iterations of Algorithm 1.

Minimises the model q(s) = g·s + ½ s·Hs subject to ‖s‖_M ≤ radius, where ‖s‖_M² = s·Ms and M is a diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any


@dataclass(frozen=True)
class ModelStep:
    """What the inner iterations found.

    step : s
    residual : −g − Hs
    n_products : Hessian-vector products used
    on_boundary : whether the trust region stopped it
    """

    step: Any
    residual: Any
    n_products: int
    on_boundary: bool


def minimise_model(
    gradient: Any,
    hessian_vector: Callable[[Any], Any],
    diagonal: Any,
    radius: float,
    *,
    tolerance: float,
    max_products: int,
) -> ModelStep:
    """Iterate until ‖r‖_{M⁻¹} ≤ tolerance·‖g‖_{M⁻¹}, the region's boundary, or `max_products`.

    Parameters
    ----------
    gradient : float64 array (n,)
    hessian_vector : callable
    diagonal : float64 array (n,), positive
        M.
    radius : float

    Scalars that only scale vectors stay arrays of the vectors' kind; on a GPU the host waits once for each product.
    """
    step = 0.0 * gradient
    residual = -gradient
    scaled = residual / diagonal
    direction = scaled
    energy = residual @ scaled
    goal = tolerance * sqrt(float(energy))
    for n_products in range(1, max_products + 1):
        product = hessian_vector(direction)
        length = energy / (direction @ product)
        longer = step + length * direction
        shorter_residual = residual - length * product
        scaled = shorter_residual / diagonal
        next_energy = shorter_residual @ scaled
        size, decrease = _as_floats(longer @ (diagonal * longer), next_energy)
        if sqrt(size) > radius:
            length = _length_to_boundary(step, direction, diagonal, radius)
            return ModelStep(step + length * direction, residual - length * product, n_products, True)
        step, residual = longer, shorter_residual
        if sqrt(decrease) <= goal:
            return ModelStep(step, residual, n_products, False)
        direction = scaled + (next_energy / energy) * direction
        energy = next_energy
    return ModelStep(step, residual, max_products, False)


def _length_to_boundary(step: Any, direction: Any, diagonal: Any, radius: float) -> float:
    """The t ≥ 0 with ‖step + t·direction‖_M = radius, from the root that does not cancel."""
    scaled = diagonal * direction
    along, across, inside = _as_floats(step @ scaled, direction @ scaled, step @ (diagonal * step))
    gap = radius * radius - inside
    root = sqrt(along * along + across * gap)
    return gap / (along + root) if along >= 0 else (root - along) / across


def _as_floats(*scalars: Any) -> tuple[float, ...]:
    """Scalars of the device as floats of the host, in one transfer."""
    if not hasattr(scalars[0], "get"):
        return tuple(float(scalar) for scalar in scalars)
    import cupy

    return tuple(cupy.stack(scalars).get().tolist())
