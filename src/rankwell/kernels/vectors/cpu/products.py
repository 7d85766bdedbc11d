"""Vector products on the CPU: a document is one task; see `rankwell.kernels.vectors.rules`."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.threads import kernel_threads, run_ranges
from rankwell.kernels.vectors.rules import COSINE, DOT, LANES, N_PRODUCTS, VectorPlace

# A document takes about a tenth of a microsecond, and a thread a fifth of a millisecond to be worth waking.
_LEAST_DOCUMENTS = 2048


def vector_products(
    rows: np.ndarray, docs: np.ndarray, place: VectorPlace, query: np.ndarray, *, n_jobs: int | None = None
) -> np.ndarray:
    """Dot product and cosine of documents and a query, float32 (n, 2); NaN for documents without a vector.

    rows : int32 (n_docs, n_words); docs : int64 (n,); query : float32 (dimension,)
    """
    values = np.empty((len(docs), N_PRODUCTS), np.float32)
    floats, bytes_ = rows.view(np.float32), rows.view(np.int8)
    square = np.zeros(1)
    square_of(query, square)
    with kernel_threads(n_jobs):
        run_ranges(
            lambda first, last: multiply(
                first, last, floats, bytes_, docs, place.start, place.is_int8, query, square[0], values
            ),
            len(docs),
            least_items=_LEAST_DOCUMENTS,
        )
    return values


@inner_kernel()
def _sum_of_lanes(lanes):
    """The sum of 32 lanes, in pairs."""
    half = LANES // 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@kernel()
def square_of(query, square):
    """Σ q² to `square`."""
    lanes = np.zeros(LANES)
    for i in range(len(query)):
        lanes[i % LANES] += np.float64(query[i]) * np.float64(query[i])
    square[0] = _sum_of_lanes(lanes)


@inner_kernel()
def _add_products(vector, query, dots, squares):
    """Add the products of a vector of float32 or int8 to the lanes."""
    whole = len(query) // LANES * LANES
    for base in range(0, whole, LANES):
        for lane in range(LANES):
            number = np.float64(vector[base + lane])
            dots[lane] += np.float64(query[base + lane]) * number
            squares[lane] += number * number
    for i in range(whole, len(query)):
        number = np.float64(vector[i])
        dots[i - whole] += np.float64(query[i]) * number
        squares[i - whole] += number * number


@kernel()
def multiply(first, last, floats, bytes_, docs, start, is_int8, query, square, values):
    """The products of documents first to last.

    floats, bytes_ : the rows as float32 and as int8
    """
    dots, squares = np.empty(LANES), np.empty(LANES)
    for n in range(first, last):
        doc = docs[n]
        scale = np.float64(floats[doc, start])
        if np.isnan(scale):
            values[n, DOT] = np.nan
            values[n, COSINE] = np.nan
            continue
        for lane in range(LANES):
            dots[lane] = 0.0
            squares[lane] = 0.0
        if is_int8:
            begin = 4 * (start + 1)
            _add_products(bytes_[doc, begin : begin + len(query)], query, dots, squares)
        else:
            scale = 1.0
            _add_products(floats[doc, start : start + len(query)], query, dots, squares)
        dot = _sum_of_lanes(dots) * scale
        length = np.sqrt(square * (_sum_of_lanes(squares) * (scale * scale)))
        values[n, DOT] = np.float32(dot)
        values[n, COSINE] = np.float32(dot / length) if length > 0.0 else np.float32(0.0)
