"""The passes of RankSVM over the data: each reads X once, one query after another.

For one query a pass multiplies the rows by a vector, sums over support pairs, and adds the rows times the result, while
the query's rows are still in the cache. Queries are divided into chunks that depend on the data alone; each chunk sums
into its own row of `partial`, and the rows are added in order: the result is the same on any number of threads.

A `queries` tuple says what does not change during training:

    query_ptr         int64 (n_queries + 1,)
    chunk_ptr         int64 (n_chunks + 1,): the queries of each chunk
    n_levels          int32 (n_queries,): label levels in each query; a query with one has no pairs and is not read
    levels            int32 (n_docs,): dense rank of each label within its query
    query_weights     float64 (n_queries,)
    document_weights  float64 (n_docs,), or (0,) if all are 1

and a `support` tuple describes the support pairs at one w, by place in ascending order of score within each query:

    order             int32 (n_docs,): the row behind each place, counted from the query's first row
    sorted_levels     int32 (n_docs,)
    upper, lower      int32 (n_docs,): see `sums`
    degree            float64 (n_docs,): β⁺ + β⁻, the weight of the partners
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.vectors import TOTALS
from rankwell.kernels.pair_loss.cpu.rows import add_curvature, add_rows, multiply_rows
from rankwell.kernels.pair_loss.cpu.sums import find_limits, sort_by_score, sum_partners


@kernel(parallel=True)
def hessian_vector(features, queries, support, vector, method, partial):
    """partial[chunk] = Xᵀ AᵀA X·vector over the chunk's queries: equation 13 without v, 2 and C."""
    # prange counts unsigned in parallel and signed otherwise: one type, or everything below is compiled twice.
    for chunk in prange(partial.shape[0]):
        _hessian_vector_of_chunk(features, queries, support, vector, method, np.int64(chunk), partial[chunk])


@kernel(parallel=True)
def loss_and_gradient(features, queries, support, vector, method, partial, losses):
    """Fill `support` at w = `vector`; partial[chunk] = half the loss's gradient, losses[chunk] = the loss.

    Loss: Σ weight·(1 − w·(x_a − x_b))² over the support pairs of the chunk's queries, as in equations 11 and 12.
    """
    for chunk in prange(partial.shape[0]):
        losses[chunk] = _gradient_of_chunk(features, queries, support, vector, method, np.int64(chunk), partial[chunk])


@kernel(parallel=True)
def curvature(features, queries, support, partial):
    """partial[chunk] = the diagonal of Xᵀ AᵀA X over the chunk's queries, to a close approximation.

    The exact diagonal needs the sums over partners once for each feature. Taking partners as if they were drawn from
    the whole query in proportion to their degree leaves, for each feature, the degree-weighted variance in the query.
    """
    for chunk in prange(partial.shape[0]):
        _curvature_of_chunk(features, queries, support, np.int64(chunk), partial[chunk])


@kernel(parallel=True)
def row_scores(features, vector, scores):
    """scores[i] = x_i·vector for every row."""
    n_docs = scores.shape[0]
    for block in prange((n_docs + 1023) // 1024):
        start, end = 1024 * block, min(1024 * (block + 1), n_docs)
        multiply_rows(features, start, end, vector, scores[start:end])


@kernel
def _hessian_vector_of_chunk(features, queries, support, vector, method, chunk, total):
    query_ptr, chunk_ptr, n_levels, _, query_weights, document_weights = queries
    order, sorted_levels, upper, lower, degree = support
    first, last = chunk_ptr[chunk], chunk_ptr[chunk + 1]
    products, values, above, below, tally, totals = _scratch(query_ptr, n_levels, first, last)
    total[:] = 0.0
    for query in range(first, last):
        if n_levels[query] < 2:
            continue
        start, end = query_ptr[query], query_ptr[query + 1]
        multiply_rows(features, start, end, vector, products)
        weights = _weights_of(document_weights, start, end)
        _gather(products, order[start:end], weights, values)
        pairs = (sorted_levels[start:end], upper[start:end], lower[start:end], n_levels[query], method)
        sum_partners(values[: end - start], pairs, tally, totals, above, below)
        _subtract_partners(products, order[start:end], degree[start:end], above, below, weights, query_weights[query])
        add_rows(features, start, end, products, total)


@kernel
def _gradient_of_chunk(features, queries, support, vector, method, chunk, total):
    query_ptr, chunk_ptr, n_levels, levels, query_weights, document_weights = queries
    order, sorted_levels, upper, lower, degree = support
    first, last = chunk_ptr[chunk], chunk_ptr[chunk + 1]
    products, values, above, below, tally, totals = _scratch(query_ptr, n_levels, first, last)
    scores, ones, merged = np.empty_like(values), np.empty_like(values), np.empty(values.shape[0], dtype=np.int32)
    total[:] = 0.0
    loss = 0.0
    for query in range(first, last):
        if n_levels[query] < 2:
            continue
        start, end = query_ptr[query], query_ptr[query + 1]
        multiply_rows(features, start, end, vector, products)
        sort_by_score(products[: end - start], order[start:end], merged)
        _sort_levels(levels[start:end], order[start:end], sorted_levels[start:end])
        _centre(products, order[start:end], scores)
        find_limits(scores[: end - start], upper[start:end], lower[start:end])
        weights = _weights_of(document_weights, start, end)
        loss += query_weights[query] * _loss_and_residuals(
            scores[: end - start],
            (sorted_levels[start:end], upper[start:end], lower[start:end], n_levels[query], method),
            (order[start:end], degree[start:end], weights, query_weights[query]),
            (values, ones, above, below, tally, totals),
            products,
        )
        add_rows(features, start, end, products, total)
    return loss


@kernel
def _curvature_of_chunk(features, queries, support, chunk, diagonal):
    query_ptr, chunk_ptr, n_levels, _, query_weights, document_weights = queries
    order, _, _, _, degree = support
    first, last = chunk_ptr[chunk], chunk_ptr[chunk + 1]
    factors, scratch = _scratch(query_ptr, n_levels, first, last)[0], np.empty(diagonal.shape[0])
    diagonal[:] = 0.0
    for query in range(first, last):
        if n_levels[query] < 2:
            continue
        start, end = query_ptr[query], query_ptr[query + 1]
        weights = _weights_of(document_weights, start, end)
        for place in range(end - start):
            row = order[start + place]
            weight = weights[row] if weights.shape[0] > 0 else 1.0
            factors[row] = query_weights[query] * weight * degree[start + place]
        add_curvature(features, start, end, factors, diagonal, scratch)


@kernel
def _scratch(query_ptr, n_levels, first, last):
    """Arrays for the longest query of a chunk, and one for the most levels."""
    longest = 0
    most_levels = 0
    for query in range(first, last):
        longest = max(longest, query_ptr[query + 1] - query_ptr[query])
        most_levels = max(most_levels, n_levels[query])
    products, values, above, below = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    return products, values, above, below, np.empty(most_levels + 1), np.empty((longest + 1, TOTALS))


@kernel
def _weights_of(document_weights, start, end):
    return document_weights[start:end] if document_weights.shape[0] > 0 else document_weights


@kernel
def _gather(products, order, weights, values):
    """values[place]: the product of the row there, times the row's weight."""
    for place in range(order.shape[0]):
        row = order[place]
        values[place] = products[row] * weights[row] if weights.shape[0] > 0 else products[row]


@kernel
def _subtract_partners(products, order, degree, above, below, weights, query_weight):
    """products becomes AᵀA·products: (β⁺ + β⁻)·x_i·v − (α⁺ + α⁻), times the weights."""
    for place in range(order.shape[0]):
        row = order[place]
        weight = query_weight * weights[row] if weights.shape[0] > 0 else query_weight
        products[row] = weight * (degree[place] * products[row] - (above[place] + below[place]))


@kernel
def _sort_levels(levels, order, sorted_levels):
    for place in range(order.shape[0]):
        sorted_levels[place] = levels[order[place]]


@kernel
def _centre(products, order, scores):
    """scores in ascending order, less the middle one: only differences count, and small numbers keep their digits."""
    middle = products[order[order.shape[0] // 2]]
    for place in range(order.shape[0]):
        scores[place] = products[order[place]] - middle


@kernel
def _loss_and_residuals(scores, pairs, documents, scratch, residuals):
    """One query's loss without its weight; fills `degree` and residuals[row] = (AᵀA X w − Aᵀe)·weight.

    Parameters
    ----------
    scores : float64 (n_docs,), ascending
    pairs : see `sum_partners`
    documents : tuple (order, degree, weights, query_weight)
    scratch : tuple (values, ones, above, below, tally, totals)
    residuals : float64, at least (n_docs,)
    """
    order, degree, weights, query_weight = documents
    values, ones, above, below, tally, totals = scratch
    n_docs = scores.shape[0]
    for place in range(n_docs):
        ones[place] = weights[order[place]] if weights.shape[0] > 0 else 1.0
        values[place] = ones[place] * scores[place]
    loss = 0.0
    sum_partners(ones[:n_docs], pairs, tally, totals, above, below)  # β⁺ and β⁻
    for place in range(n_docs):
        degree[place] = above[place] + below[place]
        surplus = below[place] - above[place]
        loss += ones[place] * (above[place] - 2.0 * scores[place] * surplus)
        residuals[order[place]] = -surplus
    sum_partners(values[:n_docs], pairs, tally, totals, above, below)  # γ⁺ and γ⁻
    for place in range(n_docs):
        spread = degree[place] * scores[place] - (above[place] + below[place])
        loss += ones[place] * scores[place] * spread
        residuals[order[place]] = query_weight * ones[place] * (spread + residuals[order[place]])
    return loss
