"""`rankwell plan`: predictions from measurements on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from rankwell import make_ranking, write


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rankwell.planning.measurement.FITTED", ((500, 16), (500, 64), (2000, 32), (4000, 48)))
    monkeypatch.setattr("rankwell.planning.measurement.UNSEEN", ((1000, 32),))
    write(make_ranking(n_docs=400, n_queries=20, n_features=12), tmp_path / "data.txt")
    return tmp_path


def test_a_plan_of_a_file(data: Path, rankwell: Command) -> None:
    outcome = rankwell("plan", "train", "data.txt", "--workers", "1,2", "--rounds", "10")
    assert outcome.exit_code == 0
    assert "400 documents × 12 features" in outcome.stdout
    assert "limited by" in outcome.stdout
    assert "workers" in outcome.stdout.splitlines()[-1]


def test_json_has_the_coefficients_and_is_what_figures_are_drawn_from(data: Path, rankwell: Command) -> None:
    pytest.importorskip("matplotlib")
    outcome = rankwell("plan", "train", "data.txt", "--workers", "1,4", "--json", "--check", "--network", "1e9/1e-4")
    plan = json.loads(outcome.stdout)
    assert [run["workers"] for run in plan["runs"] if run["device"] == "cpu"] == [1, 4]
    assert all(row["seconds"] > 0 and row["predicted"] > 0 for row in plan["measured"])
    Path("plan.json").write_text(outcome.stdout)
    assert rankwell("plan", "figures", "plan.json", "--out", "plan.svg").exit_code == 0
    assert "<svg" in Path("plan.svg").read_text()
    assert rankwell("plan", "figures", "plan.json", "--out", "plan.png").exit_code == 0
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")
    refused = rankwell("plan", "figures", "plan.json", "--out", "plan.txt")
    assert refused.exit_code == 2
    assert "--out plan.txt: the ending says how to draw" in refused.stderr
    Path("other.json").write_text("{}")
    assert "is not a plan's JSON" in rankwell("plan", "figures", "other.json", "--out", "plan.svg").stderr


def test_sizes_may_be_given_instead(data: Path, rankwell: Command) -> None:
    outcome = rankwell(
        "plan", "train", "--documents", "1e9", "--features", "1000", "--workers", "8", "--hardware", "h200",
        "--network", "nvlink", "--json",
    )  # fmt: skip
    (run,) = json.loads(outcome.stdout)["runs"]
    assert run["device"] == "H200"
    assert run["bytes_a_worker"] == pytest.approx(1000 * 125e6, rel=0.1)
    assert run["seconds_a_round"] < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "1,x"), "--workers must be numbers of 1 or more"),
        (("--network", "fast"), "--network must be this, 1gbit"),
        (("--hardware", "tpu"), "--hardware must be this or h200"),
    ],
)
def test_mistakes_are_named(data: Path, rankwell: Command, arguments: tuple[str, ...], message: str) -> None:
    assert message in rankwell("plan", "train", "data.txt", *arguments).stderr


def test_sizes_or_data_are_needed(data: Path, rankwell: Command) -> None:
    assert "give DATA, or both --documents and --features" in rankwell("plan", "train").stderr
