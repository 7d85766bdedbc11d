"""Quantile thresholds from summaries of parts: exact for few distinct values, within the stated error for many."""

from __future__ import annotations

import numpy as np
from tests.cluster.worker_threads import run_workers

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.data.binning import Binner
from rankwell.data.quantile_sketch import POINTS, summarise


def thresholds_together(parts, **options):
    def fit(exchange):
        binner = Binner(strategy="quantile", **options)
        return binner.fit(parts[exchange.number], agreement=WorkersAgreement(exchange)).threshold_table

    tables = run_workers(len(parts), fit)
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])
    return tables[0]


def test_few_distinct_values_are_cut_as_by_one_process():
    generator = np.random.default_rng(0)
    features = generator.standard_normal((5000, 70)).astype(np.float32).round(2)
    features[:, 3], features[:, 4] = np.nan, 7.0
    features[generator.random(features.shape) < 0.1] = np.nan
    whole = Binner(strategy="quantile").fit(features).threshold_table
    np.testing.assert_array_equal(thresholds_together(np.array_split(features, 3)), whole)


def test_many_values_are_within_the_stated_error():
    generator = np.random.default_rng(1)
    features = generator.gamma(0.3, size=(60_000, 2)).astype(np.float32)
    table = thresholds_together([features[:20_000], features[20_000:25_000], features[25_000:]])
    for column, thresholds in zip(features.T, table, strict=True):
        inner = thresholds[1:][np.isfinite(thresholds[1:])]
        assert len(inner) == 254
        up_to = np.searchsorted(np.sort(column), inner, side="right")
        filled = np.diff(up_to, prepend=0)
        assert np.abs(filled - len(column) / 255).max() <= 2 * len(column) / POINTS + 3


def test_a_summary_counts_every_value():
    column = np.random.default_rng(2).standard_normal(3 * POINTS + 17).astype(np.float32)
    column[:5] = np.nan
    values, counts = summarise(column)
    assert counts.sum() == len(column) - 5
    assert len(values) <= POINTS
    assert (np.diff(values) > 0).all()
    assert counts.max() <= 4


def test_zeros_of_both_signs_are_one_value():
    values, counts = summarise(np.array([-0.0, 0.0, 1.0], dtype=np.float32))
    assert values.tolist() == [0.0, 1.0]
    assert counts.tolist() == [2, 1]
