"""The model of time and energy against the paper's tables."""

from __future__ import annotations

import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")

from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import round_cycles
from rankwell.hardware.rankboost.far_paper import (
    ENERGY_ROUNDS,
    N_DOCS,
    N_FEATURES,
    RUN_HOURS,
    RUN_ROUNDS,
    TABLE_IV,
    TABLE_V,
    accelerated_round,
    distributed_round,
    energy,
    naive_round,
    software_round,
)
from rankwell.hardware.rankboost.performance import BOARDS, predict_round
from rankwell.hardware.rankboost.speedup_plot import plot_speedup, run_energies, speedups


def test_cycles_of_a_round_of_the_papers_data():
    # 41 passes: the documents, 16 · 256 words scanned, 5 cycles of flush and 16 of drain; then the choice
    configuration = RankBoostConfiguration()
    cycles = round_cycles(configuration, N_DOCS, N_FEATURES)
    assert cycles == 41 * (N_DOCS + 16 * 256 + 21) + round_cycles(configuration, 0, 0)
    assert cycles < 49_300_000


@pytest.mark.parametrize("board", ["far1", "far2"])
def test_equation_10_gives_table_iv(board):
    times, measured = accelerated_round(board), TABLE_IV[board]
    assert times.total == pytest.approx(measured.total, rel=1e-3)
    # Half the documents and pairs: all but the transfer of the integral histograms halves.
    half = accelerated_round(board, 15_146_236 // 2, N_DOCS // 2)
    assert half.total == pytest.approx((measured.total + measured.transfer) / 2, rel=1e-3)


def test_equations_8_and_9_give_tables_iii_and_iv():
    assert naive_round() * RUN_ROUNDS / 3600 == pytest.approx(RUN_HOURS["naive"])
    assert software_round() == pytest.approx(TABLE_IV["software"].total, rel=1e-3)
    assert software_round() * RUN_ROUNDS / 3600 == pytest.approx(RUN_HOURS["software"], rel=1e-2)


def test_equations_11_to_13_within_a_fifth_of_the_papers_run_of_four_threads():
    # The run of table III includes the distribution of the features, which the model of a round does not.
    assert distributed_round(4) == pytest.approx(RUN_HOURS["distributed"] * 3600 / RUN_ROUNDS, rel=0.2)
    assert distributed_round(52) == pytest.approx(TABLE_IV["far1"].total)


@pytest.mark.parametrize(("name", "error"), [("naive", 1e-3), ("far1", 0.06), ("far2", 0.06)])
def test_table_v_follows_from_table_iv_within_its_rounding(name, error):
    row = TABLE_V[name]
    assert row.watts * row.hours / 1000 == pytest.approx(row.kilowatt_hours, rel=2e-3)
    seconds = naive_round() if name == "naive" else TABLE_IV[name].total
    assert seconds * ENERGY_ROUNDS / 3600 == pytest.approx(row.hours, rel=error)
    assert energy(row.watts, seconds) == pytest.approx(row.kilowatt_hours, rel=error)


@pytest.mark.parametrize("board", ["far1", "far2"])
def test_with_the_papers_memory_the_search_takes_as_long_as_the_papers(board):
    # 672 + 6 · 4 bytes a document instead of 646, and no transfer of histograms.
    prediction = predict_round(BOARDS[board], N_DOCS, N_FEATURES)
    measured = TABLE_IV[board]
    assert prediction.limit == "memory bandwidth"
    assert prediction.fill_memory == pytest.approx(measured.search * (6 * (112 + 4)) / 646)
    assert prediction.search == pytest.approx(measured.search + measured.transfer, rel=0.06)


def test_a_board_with_hbm_searches_in_less_than_ten_milliseconds():
    prediction = predict_round(BOARDS["hbm"], N_DOCS, N_FEATURES)
    assert prediction.search < 0.010
    assert prediction.limit == "clock"


def test_speedups_rise_with_pes_until_memory_limits():
    for board, limited in (("far1", True), ("hbm", False)):
        by_pes = dict(speedups(board))
        gain = by_pes[656] / by_pes[16]
        assert gain < 1.3 if limited else gain > 30
    # FAR1 measured 52.068 / (0.719 + 0.058) = 67.0
    assert max(dict(speedups("far1")).values()) == pytest.approx(52.068 / 0.777, rel=0.06)


def test_energies_are_the_papers_and_the_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    energies = run_energies()
    assert energies["FAR1 (paper)"] == pytest.approx(220 * 3.075 * 300 / 3600)
    assert energies["ECP5, 128 PEs (predicted, without host)"] < energies["FAR2 (paper)"]
    plot_speedup(tmp_path / "speedup.png")
    assert (tmp_path / "speedup.png").stat().st_size > 10_000


def test_more_pes_do_not_help_where_memory_limits():
    board = BOARDS["ecp5"]
    few = predict_round(board, N_DOCS, N_FEATURES, configuration=RankBoostConfiguration(pes=112))
    many = predict_round(board, N_DOCS, N_FEATURES, configuration=RankBoostConfiguration(pes=224))
    assert few.limit == many.limit == "memory bandwidth"
    assert many.search > 0.95 * few.search
