"""ListNet's epochs on boards: the terms of the prediction, the configurations of formats, the figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")

from rankwell.hardware.listnet.board import RECONFIGURATION_SECONDS, clock, fitted_configuration, reconfiguration_cycles
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import epoch_cycles, forward_cycles, loss_cycles
from rankwell.hardware.listnet.loss_gradient import LossConfiguration
from rankwell.hardware.listnet.performance import predict_all_tasks, predict_epoch
from rankwell.hardware.listnet.resources_plot import plot_resources
from rankwell.hardware.listnet.tasks import task_cycles
from rankwell.hardware.listnet.thesis import TABLE_3_4, TABLE_4_1, TABLE_4_2, TABLE_4_3
from rankwell.hardware.rankboost.performance import BOARDS
from rankwell.hardware.synthesis import Resources, Synthesis
from rankwell.kernels.lists.fixed_point_format import BATCH, FixedPointFormat

SIZES = np.array([100, 1, 50])
BOARD = replace(BOARDS["ecp5"], megahertz=100.0, memory=1e9, link=1e8, link_latency=1e-5)


def test_the_terms_of_an_epoch():
    configuration = ListNetConfiguration(unrolling=120)
    found = predict_epoch(configuration, BOARD, SIZES, host_per_document=1e-6)
    assert found.cycles == epoch_cycles(configuration, SIZES)
    assert found.compute == pytest.approx(found.cycles / 100e6)
    assert found.memory == pytest.approx(150 * 48 / 1e9)  # six beats of eight features, a byte each
    document, sums = (8 + 8 + 15 * 8 + 4 + 1) / 8, 49 * 15 * 28 / 8
    assert found.link == pytest.approx((150 * document + 2 * sums) / 1e8 + 4 * 1e-5)
    assert found.host == pytest.approx(150e-6)
    assert found.total == pytest.approx(max(found.compute, found.memory) + found.link + found.host)
    assert found.needed_bandwidth == pytest.approx(8 * 100e6)
    assert found.limit == "host"


def test_all_tasks_on_the_board_need_no_host_but_for_the_step():
    configuration, loss = ListNetConfiguration(unrolling=120), LossConfiguration(k=2)
    cycles = task_cycles(configuration, loss, SIZES)
    assert cycles["forward"] == forward_cycles(configuration, 100) + forward_cycles(configuration, 50)
    assert cycles["loss"] == loss_cycles(loss, 100) + loss_cycles(loss, 50)
    found = predict_all_tasks(configuration, loss, BOARD, SIZES)
    assert found.cycles == sum(cycles.values())
    assert found.host == 0.0
    assert found.memory == pytest.approx(150 * (48 + 96) / 1e9)


def test_memory_limits_a_board_whose_memory_is_slow():
    found = predict_epoch(ListNetConfiguration(unrolling=120), replace(BOARD, memory=1e6, link=1e12), SIZES)
    assert found.limit == "memory bandwidth"
    assert found.back_propagation == pytest.approx(150 * 48 / 1e6)


def test_a_network_too_large_for_the_part_has_one_lane_a_unit():
    configuration = fitted_configuration(46, 60, FixedPointFormat(31, 41, BATCH, 10, 0), sigmoid_output=True)
    assert configuration.lanes == 1


def test_a_swap_takes_as_long_as_its_bitstream():
    # 15.1 Mbit, four bits at a time at 62 MHz
    assert pytest.approx(0.0609, rel=1e-3) == RECONFIGURATION_SECONDS
    configuration = ListNetConfiguration()
    assert reconfiguration_cycles(configuration) == round(RECONFIGURATION_SECONDS * clock(configuration))


def test_the_thesis_tables_add_up():
    assert TABLE_3_4["cpu"].total == pytest.approx(395.53)
    assert TABLE_3_4["fpga"].total == pytest.approx(122.87)
    assert TABLE_4_3["cpu"] / TABLE_4_3["batch, 8 bits"] == pytest.approx(40.51, rel=1e-3)
    assert TABLE_4_3["gpu"] / TABLE_4_3["batch, 8 bits"] == pytest.approx(4.42, rel=1e-3)
    assert TABLE_4_1["batch", 8] == TABLE_4_2[8]


def test_the_figure_of_resources(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    found = {
        8: Synthesis("ecp5-85k", Resources(5267, 5465, 16, 35), 180.0),
        22: Synthesis("ecp5-85k", Resources(12031, 15306, 31, 140)),
    }
    plot_resources(found, tmp_path / "resources.svg")
    text = (tmp_path / "resources.svg").read_text()
    assert "<svg" in text
