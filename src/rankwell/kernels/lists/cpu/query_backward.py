"""Back propagation of one whole query, in float32 or in fixed point.

Each is a NamedTuple of its settings and scratch, and its type selects the kernel when the caller is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import intrinsic

from rankwell.kernels.cpu.compilation import call_of, inner_kernel
from rankwell.kernels.lists.cpu.fixed_point import fixed_point_backward
from rankwell.kernels.lists.cpu.network import backward


class FloatBackward(NamedTuple):
    """Scratch of back propagation in float32, one row per slot: slopes (most_docs), deltas (most_docs · n_hidden) and
    products (n_parameters), all float32."""

    slopes: np.ndarray
    deltas: np.ndarray
    products: np.ndarray


class FixedBackward(NamedTuple):
    """A fixed-point format (see `FixedPointFormat`), and the features in that format: quantised int32 (n_docs,
    n_features)."""

    bits: int
    accumulator_bits: int
    method: int
    batches: int
    feature_bits: int
    quantised: np.ndarray


@inner_kernel(error_model="numpy")
def _float_backward(
    way, slot, shape, parameters, features, start, end, hidden, chunk, scores, list_slopes, gradient, dropout
):
    slopes, deltas, products = way.slopes[slot], way.deltas[slot], way.products[slot]
    n = end - start
    for i in range(n):
        slopes[i] = np.float32(list_slopes[i])
    for first in range(0, n, chunk):
        last = min(first + chunk, n)
        backward(
            shape, parameters, features[start + first : start + last], hidden[first * shape.n_hidden :],
            scores[first:last], slopes[first:last], gradient, deltas, products, dropout,
        )  # fmt: skip


@inner_kernel(error_model="numpy")
def _fixed_backward(
    way, slot, shape, parameters, features, start, end, hidden, chunk, scores, list_slopes, gradient, dropout
):
    fixed_point_backward(shape, way, parameters, way.quantised[start:end], hidden, chunk, scores, list_slopes, gradient)


@intrinsic
def query_backward(
    typing_context, way, slot, shape, parameters, features, start, end, hidden, chunk, scores, list_slopes, gradient,
    dropout,
):  # fmt: skip
    """Add the ∂L/∂parameters of the query of the documents start ≤ d < end to `gradient`.

    way : FloatBackward or FixedBackward; features : float32 (all documents, n_features); hidden, scores : as `forward`
    filled them, `chunk` documents at a time; list_slopes : ∂L/∂score, float64 (n_docs,)
    """
    backward_kernel = _float_backward if way.instance_class is FloatBackward else _fixed_backward
    arguments = (
        way, slot, shape, parameters, features, start, end, hidden, chunk, scores, list_slopes, gradient, dropout
    )  # fmt: skip
    return call_of(backward_kernel, typing_context, arguments)
