"""Gradients and Hessians as packed whole numbers (`rules`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.lean_compilation import kernel
from rankwell.kernels.threads import current_threads, run_parts
from rankwell.kernels.trees import rules

# Documents of a part at least, and parts for each thread at most: a pass takes 0.3 ns each, waking a thread 0.1 ms.
_DOCS_PER_PART = 1 << 19
_PARTS_PER_THREAD = 2


class PackedGradients(NamedTuple):
    """What a tree is grown on.

    packed : int64 (n_docs,); total : int, its sum; gradient_exponent, hessian_exponent : a and b of `rules`
    """

    packed: np.ndarray
    total: int
    gradient_exponent: int
    hessian_exponent: int


@kernel
def largest_values(gradient, hessian, start, end):
    """The largest |gradient| and Hessian of documents start, ..., end − 1."""
    largest_g, largest_h = np.float32(0.0), np.float32(0.0)
    for document in range(np.uint64(start), np.uint64(end)):
        size = abs(gradient[document])
        largest_g = size if size > largest_g else largest_g
        largest_h = hessian[document] if hessian[document] > largest_h else largest_h
    return largest_g, largest_h


@kernel
def sum_units(gradient, hessian, scale_g, scale_h, start, end):
    """Σ|gradient| and ΣHessian, each rounded to units."""
    total_g, total_h = np.int64(0), np.int64(0)
    for document in range(np.uint64(start), np.uint64(end)):
        total_g += abs(np.int64(np.rint(np.float64(gradient[document]) * scale_g)))
        total_h += np.int64(np.rint(np.float64(hessian[document]) * scale_h))
    return total_g, total_h


@kernel
def pack_units(gradient, hessian, scale_g, scale_h, start, end, packed, counts):
    """packed[d] = gradient in the upper half, Hessian in the lower; returns their sum.

    counts : uint8 (n_docs,), 0 for documents whose gradients count as 0; empty if all count
    """
    total = np.int64(0)
    for document in range(np.uint64(start), np.uint64(end)):
        g = np.int64(np.rint(np.float64(gradient[document]) * scale_g))
        h = np.int64(np.rint(np.float64(hessian[document]) * scale_h))
        value = (g << 32) + h
        if len(counts) and counts[document] == 0:
            value = np.int64(0)
        packed[document] = value
        total += value
    return total


class Totals:
    """Sums over the documents of one process; of several, see `shared_booster`."""

    def __init__(self, n_docs: int) -> None:
        self.n_docs = n_docs

    def largest(self, values: list[float]) -> list[float]:
        return values

    def sums(self, values: list[int]) -> list[int]:
        return values


def pack_gradients(
    gradient: np.ndarray, hessian: np.ndarray, packed: np.ndarray, counts: np.ndarray, of_all: Totals | None = None
) -> PackedGradients | None:
    """Both as whole numbers, written to `packed`; None if either is 0 everywhere.

    counts : see `pack_units`; of_all : sums over all documents, if these are a part of them
    """
    n_docs = len(gradient)
    of_all = of_all or Totals(n_docs)
    n_parts = max(1, min(n_docs // _DOCS_PER_PART, _PARTS_PER_THREAD * current_threads()))
    results: list = [None] * n_parts

    def in_parts(task: object, *arguments: object) -> list:
        def run(part: int) -> None:
            start, end = n_docs * part // n_parts, n_docs * (part + 1) // n_parts
            results[part] = task(gradient, hessian, *arguments[:2], start, end, *arguments[2:])  # type: ignore[operator]

        run_parts(run, n_parts)
        return list(zip(*results, strict=True)) if isinstance(results[0], tuple) else results

    largest = of_all.largest([float(max(values)) for values in in_parts(largest_values)])
    if min(largest) <= 0.0:
        return None
    first = [rules.first_exponent(value) for value in largest]
    scales = [math.ldexp(1.0, exponent) for exponent in first]
    totals = of_all.sums([sum(map(int, values)) for values in in_parts(sum_units, *scales)])
    a, b = (
        rules.final_exponent(exponent, total, of_all.n_docs, bits)
        for exponent, total, bits in zip(first, totals, (rules.GRADIENT_BITS, rules.HESSIAN_BITS), strict=True)
    )
    total = of_all.sums([sum(map(int, in_parts(pack_units, math.ldexp(1.0, a), math.ldexp(1.0, b), packed, counts)))])
    return PackedGradients(packed, total[0], a, b)
