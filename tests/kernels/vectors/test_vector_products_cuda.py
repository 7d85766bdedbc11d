"""Vector products on a CUDA device: the CPU's bits, for rows that stay on the device."""

import gc

import numpy as np
import pytest
from tests.kernels.vectors.test_vector_products import cases, random_rows

from rankwell.kernels.device_report import report_device
from rankwell.kernels.vectors.cpu.products import vector_products
from rankwell.kernels.vectors.rules import VectorPlace

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]


def test_the_same_bits_as_on_the_cpu():
    from rankwell.kernels.vectors.cuda import launches

    for rows, docs, place, query in cases():
        for part in (docs, docs[:1], docs[:0]):
            expected = vector_products(rows, part, place, query)
            np.testing.assert_array_equal(launches.vector_products(rows, part, place, query), expected)


def test_rows_are_copied_once_and_freed_with_the_array():
    from rankwell.kernels.vectors.cuda import launches

    rng = np.random.default_rng(1)
    place = VectorPlace(0, 384, False)
    rows, query = random_rows(rng, 5000, place), rng.normal(size=384).astype(np.float32)
    n_before = len(launches._copies)
    for _ in range(3):
        docs = rng.permutation(5000)[:1000]
        expected = vector_products(rows, docs, place, query)
        np.testing.assert_array_equal(launches.vector_products(rows, docs, place, query), expected)
    assert len(launches._copies) == n_before + 1
    del rows
    gc.collect()
    assert len(launches._copies) == n_before
