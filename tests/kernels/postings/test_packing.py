"""Packed numbers against their slow definition, of every width."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.packing import (
    load_ascending,
    load_number,
    load_run,
    put_run,
    width_of,
)
from rankwell.kernels.postings.reference import pack, unpack
from rankwell.kernels.postings.rules import BLOCK, PADDING

# Runs begin at an odd byte, so that nothing relies on alignment.
START = 3


@kernel
def put(numbers, count, width, target):
    return put_run(numbers, 0, count, width, target, START)


@kernel
def needed(numbers, count):
    return width_of(numbers, 0, count)


@kernel
def load(packed, width, count, out):
    load_run(packed, START, width, 1, count, out, 0)


@kernel
def ascend(packed, width, count, out):
    load_ascending(packed, START, width, 7, count, out, 0)


@kernel
def load_one(packed, width, count, j):
    return load_number(packed, START, width, count, j)


@pytest.mark.parametrize("count", [1, 2, 64, BLOCK - 1, BLOCK])
def test_every_width(count: int) -> None:
    random = np.random.default_rng(count)
    for width in range(32):
        numbers = random.integers(0, 2**width, count).astype(np.int32)
        numbers[-1] = 2**width - 1
        assert needed(numbers, count) == width
        target = np.full(START + 4 * count + PADDING, 255, np.uint8)
        end = put(numbers, count, width, target)
        assert target[START:end].tolist() == pack(numbers.tolist(), width)
        assert unpack(target, START, count, width) == numbers.tolist()
        assert [load_one(target, width, count, j) for j in (0, count // 2, count - 1)] == [
            numbers[j] for j in (0, count // 2, count - 1)
        ]
        out = np.zeros(BLOCK, np.uint32)
        load(target, width, count, out)
        assert out[:count].tolist() == (numbers.astype(np.int64) + 1).tolist()
        ascend(target, width, count, out)
        # Wrong numbers of a forged index may be too large: their sums are those of 32 bits.
        wanted = 6 + np.cumsum(numbers.astype(np.int64) + 1)
        assert out[:count].tolist() == (wanted % 2**32).tolist()
