"""The passes of RankSVM over the data: each reads X once, one query after another.

For one query a pass multiplies the rows by a vector, sums over support pairs, and adds the rows times the result, while
the query's rows are still in the cache. Queries are divided into chunks that depend on the data only; each chunk sums
into its own row of `partial`, and the rows are added in order: the result is the same on any number of threads.

A kernel takes a range of chunks, first ≤ chunk < last: the task of one thread.
"""

from __future__ import annotations

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.pair_loss.cpu.rows import add_curvature, add_rows, multiply_rows
from rankwell.kernels.pair_loss.cpu.sums import find_limits, sum_partners


@kernel
def hessian_vector(features, queries, support, scratch, sums, vector, first, last, partial):
    """partial[chunk] = Xᵀ AᵀA X·vector over the chunk's queries: equation 13 without v, 2 and C."""
    products, above, below = scratch.products, scratch.above, scratch.below
    for chunk in range(first, last):
        _clear(partial[chunk])
        for query in range(queries.chunk_ptr[chunk], queries.chunk_ptr[chunk + 1]):
            n_levels, query_weight = queries.n_levels[query], queries.query_weights[query]
            if n_levels < 2:
                continue
            start, end = queries.query_ptr[query], queries.query_ptr[query + 1]
            order, degree = support.order[start:end], support.degree[start:end]
            levels = support.sorted_levels[start:end]
            upper, lower = support.upper[start:end], support.lower[start:end]
            weights, values = queries.document_weights[start:end], scratch.values[: end - start]
            multiply_rows(features, start, end, vector, products)
            _gather(products, order, weights, values)
            sum_partners(values, levels, upper, lower, n_levels, sums, above, below)
            _subtract_partners(products, order, degree, above, below, weights, query_weight)
            add_rows(features, start, end, products, partial[chunk])


@kernel
def loss_and_gradient(features, queries, support, scratch, sums, vector, first, last, partial, losses):
    """Fill `support` at w = `vector`; partial[chunk] = half the loss's gradient, losses[chunk] = the loss.

    Loss: Σ weight·(1 − w·(x_a − x_b))² over the support pairs of the chunk's queries, as in equations 11 and 12.
    """
    products = scratch.products
    for chunk in range(first, last):
        loss = 0.0
        _clear(partial[chunk])
        for query in range(queries.chunk_ptr[chunk], queries.chunk_ptr[chunk + 1]):
            n_levels, query_weight = queries.n_levels[query], queries.query_weights[query]
            if n_levels < 2:
                continue
            start, end = queries.query_ptr[query], queries.query_ptr[query + 1]
            order, degree = support.order[start:end], support.degree[start:end]
            levels = support.sorted_levels[start:end]
            upper, lower = support.upper[start:end], support.lower[start:end]
            weights, scores = queries.document_weights[start:end], scratch.scores[: end - start]
            multiply_rows(features, start, end, vector, products)
            sort_keys(products[: end - start], order, scratch.merged)
            _sort_levels(queries.levels[start:end], order, levels)
            _centre(products, order, scores)
            find_limits(scores, upper, lower)
            loss += query_weight * _loss_and_residuals(
                scores, levels, upper, lower, n_levels, order, degree, weights, query_weight, scratch, sums, products
            )
            add_rows(features, start, end, products, partial[chunk])
        losses[chunk] = loss


@kernel
def curvature(features, queries, support, scratch, first, last, partial):
    """partial[chunk] = the diagonal of Xᵀ AᵀA X over the chunk's queries, approximately.

    The exact diagonal needs the sums over partners once per feature. Treating partners as if they were drawn from
    the whole query in proportion to their degree leaves, for each feature, the degree-weighted variance in the query.
    """
    for chunk in range(first, last):
        _clear(partial[chunk])
        for query in range(queries.chunk_ptr[chunk], queries.chunk_ptr[chunk + 1]):
            if queries.n_levels[query] < 2:
                continue
            start, end = queries.query_ptr[query], queries.query_ptr[query + 1]
            order, degree = support.order[start:end], support.degree[start:end]
            weights = queries.document_weights[start:end]
            _spread_degrees(order, degree, weights, queries.query_weights[query], scratch.products)
            add_curvature(features, start, end, scratch.products, partial[chunk], scratch.means)


@kernel
def row_scores(features, vector, first, last, scores):
    """scores[i] = x_i·vector for the rows first ≤ i < last."""
    multiply_rows(features, first, last, vector, scores[first:last])


@kernel(inline="always")
def _clear(total):
    for j in range(total.shape[0]):
        total[j] = 0.0


@kernel(inline="always")
def _spread_degrees(order, degree, weights, query_weight, factors):
    """factors[row]: the degree of the row, times the weights."""
    for place in range(order.shape[0]):
        row = order[place]
        weight = weights[row] if weights.shape[0] > 0 else 1.0
        factors[row] = query_weight * weight * degree[place]


@kernel(inline="always")
def _gather(products, order, weights, values):
    """values[place]: the product of the row there, times the row's weight."""
    for place in range(order.shape[0]):
        row = order[place]
        values[place] = products[row] * weights[row] if weights.shape[0] > 0 else products[row]


@kernel(inline="always")
def _subtract_partners(products, order, degree, above, below, weights, query_weight):
    """products becomes AᵀA·products: (β⁺ + β⁻)·x_i·v − (α⁺ + α⁻), times the weights."""
    for place in range(order.shape[0]):
        row = order[place]
        weight = query_weight * weights[row] if weights.shape[0] > 0 else query_weight
        products[row] = weight * (degree[place] * products[row] - (above[place] + below[place]))


@kernel(inline="always")
def _sort_levels(levels, order, sorted_levels):
    for place in range(order.shape[0]):
        sorted_levels[place] = levels[order[place]]


@kernel(inline="always")
def _centre(products, order, scores):
    """scores in ascending order, less the middle one: only differences count, and small numbers keep their digits."""
    middle = products[order[order.shape[0] // 2]]
    for place in range(order.shape[0]):
        scores[place] = products[order[place]] - middle


@kernel(inline="always")
def _loss_and_residuals(
    scores, levels, upper, lower, n_levels, order, degree, weights, query_weight, scratch, sums, residuals
):
    """One query's loss without its weight; fills `degree` and residuals[row] = (AᵀA X w − Aᵀe)·weight.

    Parameters
    ----------
    scores : float64 (n_docs,), ascending; levels, upper, lower, n_levels, sums : see `sum_partners`
    order, degree : of the support; weights : float64 (n_docs,) by row, or (0,); residuals : float64, at least (n_docs,)
    """
    n_docs = scores.shape[0]
    values, ones, above, below = scratch.values[:n_docs], scratch.ones[:n_docs], scratch.above, scratch.below
    for place in range(n_docs):
        ones[place] = weights[order[place]] if weights.shape[0] > 0 else 1.0
        values[place] = ones[place] * scores[place]
    loss = 0.0
    sum_partners(ones, levels, upper, lower, n_levels, sums, above, below)  # β⁺ and β⁻
    for place in range(n_docs):
        degree[place] = above[place] + below[place]
        surplus = below[place] - above[place]
        loss += ones[place] * (above[place] - 2.0 * scores[place] * surplus)
        residuals[order[place]] = -surplus
    sum_partners(values, levels, upper, lower, n_levels, sums, above, below)  # γ⁺ and γ⁻
    for place in range(n_docs):
        spread = degree[place] * scores[place] - (above[place] + below[place])
        loss += ones[place] * scores[place] * spread
        residuals[order[place]] = query_weight * ones[place] * (spread + residuals[order[place]])
    return loss
