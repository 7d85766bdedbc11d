"""Back propagation of one whole query, in float32 or in fixed point: one signature, each compiled by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import typeof, types

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.lists.cpu.fixed_point import fixed_point_backward
from rankwell.kernels.lists.cpu.network import backward
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat
from rankwell.kernels.lists.network_shape import network_shape

# backward(shape, fmt, scale_exponent, parameters, features, quantised, hidden, chunk, scores, list_slopes, slopes,
#          probabilities, gradient, deltas, product, dropout)
_SIGNATURE = types.void(
    typeof(network_shape(1, (1,), "sigmoid", "sigmoid")),
    typeof(FixedPointFormat(8, 18, 0, 1, 0)),
    types.int64,
    types.float32[::1],
    types.float32[:, ::1],
    types.int32[:, ::1],
    types.float32[::1],
    types.int64,
    types.float32[::1],
    types.float64[::1],
    types.float32[::1],
    types.float64[:],
    types.float32[::1],
    types.float32[::1],
    types.float32[::1],
    types.float64,
)


@cache
def query_backward(fixed: bool) -> Any:
    """The compiled back propagation; it adds one query's ∂L/∂parameters to `gradient`."""
    return kernel(signature=_SIGNATURE, error_model="numpy")(_fixed if fixed else _float)


def _float(
    shape, fmt, scale_exponent, parameters, features, quantised, hidden, chunk, scores, list_slopes, slopes,
    probabilities, gradient, deltas, product, dropout,
):  # fmt: skip
    n = len(scores)
    for i in range(n):
        slopes[i] = np.float32(list_slopes[i])
    for first in range(0, n, chunk):
        last = min(first + chunk, n)
        backward(
            shape, parameters, features[first:last], hidden[first * shape.n_hidden :], scores[first:last],
            slopes[first:last], gradient, deltas, product, dropout,
        )  # fmt: skip


def _fixed(
    shape, fmt, scale_exponent, parameters, features, quantised, hidden, chunk, scores, list_slopes, slopes,
    probabilities, gradient, deltas, product, dropout,
):  # fmt: skip
    fixed_point_backward(
        shape, fmt, scale_exponent, parameters, quantised, hidden, chunk, scores, list_slopes, probabilities, gradient
    )
