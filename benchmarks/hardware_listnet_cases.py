"""Queries for the ListNet accelerator, random and adversarial, and the sums of the integer model."""

from __future__ import annotations

import numpy as np

from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.gradient import QueryIntegers
from rankwell.kernels.lists.reference.fixed_point import multiply, saturate, slope

KINDS = ("random", "one document", "one batch", "largest", "lowest", "zeros", "two in turn", "long")


def make_query(
    rng: np.random.Generator, configuration: ListNetConfiguration, kind: str, *, most_docs: int = 24
) -> QueryIntegers:
    """The integers of a query of a kind; outputs of units are not negative, as those of sigmoids."""
    limit = 1 << configuration.bits - 1
    features, hidden, batches = configuration.features, configuration.hidden, configuration.batches
    n_docs = {"one document": 1, "long": 3 * most_docs}.get(kind, int(rng.integers(2, most_docs + 1)))

    def anything(*shape: int) -> np.ndarray:
        return rng.integers(-limit, limit, shape)

    query = QueryIntegers(
        weights=anything(hidden),
        gradient=anything(n_docs),
        score=rng.integers(0, limit, n_docs),
        hidden=rng.integers(0, limit, (n_docs, hidden)),
        features=anything(n_docs, features),
        batch=rng.integers(0, batches, n_docs),
    )
    if kind == "one batch":  # the same accumulators in every document
        query.batch[:] = batches - 1
    elif kind == "two in turn":
        query.batch[:] = np.arange(n_docs) % min(2, batches)
    elif kind in ("largest", "lowest"):  # sums saturate, and −1 · −1 does
        extreme = limit - 1 if kind == "largest" else -limit
        for values in (query.weights, query.gradient, query.features):
            values[...] = extreme
        query.score[:], query.hidden[:] = limit // 2, limit // 2
        query.batch[:] = 0
    elif kind == "zeros":
        query.gradient[:] = 0
    return query


def expected_sums(query: QueryIntegers, configuration: ListNetConfiguration) -> np.ndarray:
    """Σ_B sum·2^(batches − 1 − B) of every parameter by the integer model, in the order of `QuerySums.parameters`."""
    bits, wide = configuration.bits, configuration.accumulator_bits
    features, hidden = configuration.features, configuration.hidden
    sums = np.zeros((configuration.batches, hidden * (features + 2) + 1), dtype=object)

    def add(row: np.ndarray, place: int, value: int) -> None:
        row[place] = saturate(row[place] + value, wide)

    for d, gradient in enumerate(query.gradient.tolist()):
        row = sums[query.batch[d]]
        delta = gradient
        if configuration.sigmoid_output:
            delta = multiply(gradient, slope(int(query.score[d]), bits), bits)
        for unit in range(hidden):
            output = int(query.hidden[d, unit])
            below = multiply(multiply(delta, int(query.weights[unit]), bits), slope(output, bits), bits)
            for place, feature in enumerate(query.features[d].tolist()):
                add(row, unit * features + place, multiply(below, feature, bits))
            add(row, hidden * features + unit, below)
            add(row, hidden * (features + 1) + unit, multiply(delta, output, bits))
        add(row, hidden * (features + 2), delta)
    scale = [1 << configuration.batches - 1 - batch for batch in range(configuration.batches)]
    return (sums * np.array(scale, dtype=object)[:, None]).sum(axis=0).astype(np.int64)
