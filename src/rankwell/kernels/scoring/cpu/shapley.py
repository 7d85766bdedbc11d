"""Shapley values of trees on the CPU, document by document. Formula and slow twin: `rankwell.scoring.shapley`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.scoring.cpu.trees import in_categories
from rankwell.kernels.scoring.rules import IN_CATEGORIES, NEARLY_ZERO, ZERO_IS_MISSING


class NodeTests(NamedTuple):
    """What nodes test.

    column : int32, threshold : float32, missing_left : uint8 (n_nodes,)
    feature : int32, kind : uint8 (n_columns,); category_ptr : int64 (n_columns + 1,); categories : int32, ascending
    """

    column: Any
    threshold: Any
    missing_left: Any
    feature: Any
    kind: Any
    category_ptr: Any
    categories: Any


class LeafPaths(NamedTuple):
    """The features on the path to each leaf, a place each, and the nodes that test them.

    n_places : int64 (n_leaves,); feature : int64, z : float64 (n_leaves, longest)
    step_ptr : int64 (n_leaves + 1,); place, node : int64, is_left : uint8 (n_steps,), of a leaf's nodes
    weights : float64 (longest + 1, longest), k!·(m − 1 − k)! / m! of m places
    """

    n_places: Any
    feature: Any
    z: Any
    step_ptr: Any
    place: Any
    node: Any
    is_left: Any
    weights: Any


@inner_kernel
def _find_sides(row, tests, values, goes_left):
    """For each node whether the document goes left there: uint8 (n_nodes,); values : float32 (n_columns,)"""
    for c in range(len(tests.feature)):
        x = row[tests.feature[c]]
        if tests.kind[c] == ZERO_IS_MISSING and abs(x) <= NEARLY_ZERO:
            x = np.float32(np.nan)
        elif tests.kind[c] == IN_CATEGORIES:
            x = in_categories(tests.categories[tests.category_ptr[c] : tests.category_ptr[c + 1]], x)
        values[c] = x
    for node in range(len(tests.column)):
        x = values[tests.column[node]]
        goes_left[node] = tests.missing_left[node] != 0 if math.isnan(x) else x <= tests.threshold[node]


@inner_kernel
def _multiply_out(m, z, passed, coefficients):
    """The coefficients of Π (z_j + o_j·y) over m places."""
    coefficients[0] = 1.0
    for place in range(m):
        coefficients[place + 1] = 0.0
        for k in range(place + 1, 0, -1):
            coefficients[k] = coefficients[k] * z[place] + (coefficients[k - 1] if passed[place] else 0.0)
        coefficients[0] *= z[place]


@inner_kernel
def _share(m, z, is_passed, coefficients, weights):
    """(o − z)·Σ_k d_k·weights[k], d = the coefficients divided by z + o·y."""
    total = 0.0
    if is_passed:
        quotient = 0.0
        for k in range(m - 1, -1, -1):
            quotient = coefficients[k + 1] - z * quotient
            total += weights[k] * quotient
        return (1.0 - z) * total
    if z == 0.0:
        return 0.0
    for k in range(m):
        total += weights[k] * coefficients[k]
    # d is the coefficients over z, and o − z is −z.
    return -total


@kernel
def add_shapley_values(rows, tests, paths, leaf_value, out):
    """out[d, f] += the Shapley value of feature f for document d, of all trees.

    rows : float32 (n_docs, n_features); leaf_value : float64 (n_leaves,); out : float64 (n_docs, n_features)
    """
    longest = paths.z.shape[1]
    values, goes_left = np.empty(len(tests.feature), np.float32), np.empty(len(tests.column), np.uint8)
    passed, coefficients = np.empty(longest, np.bool_), np.empty(longest + 1)
    for d in range(len(rows)):
        _find_sides(rows[d], tests, values, goes_left)
        for leaf in range(len(leaf_value)):
            m = paths.n_places[leaf]
            for place in range(m):
                passed[place] = True
            for step in range(paths.step_ptr[leaf], paths.step_ptr[leaf + 1]):
                passed[paths.place[step]] &= goes_left[paths.node[step]] == paths.is_left[step]
            _multiply_out(m, paths.z[leaf], passed, coefficients)
            for place in range(m):
                share = _share(m, paths.z[leaf, place], passed[place], coefficients, paths.weights[m])
                out[d, paths.feature[leaf, place]] += leaf_value[leaf] * share
