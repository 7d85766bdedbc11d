"""Names from files never reach the terminal as escape sequences: not in tables, notes, errors or JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

from rankwell import LeastSquares, RankwellError
from rankwell.data.dataset import RankingDataset
from rankwell.printable import printable

HOSTILE = "bm25\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\r\u202egnp"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def hostile(files: Path) -> Path:
    """A ranker and data whose features, query ids and figures have hostile names."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(24, 2)), np.tile([0.0, 1.0, 2.0], 8)
    data = RankingDataset(X, y, qid=np.repeat([f"{HOSTILE}{i}" for i in range(4)], 6), feature_names=[HOSTILE, "b"])
    ranker = LeastSquares().fit(data)
    ranker.metrics_ = {"convention": HOSTILE, HOSTILE: {HOSTILE: 0.5, "ndcg@x": HOSTILE}}
    ranker.save(files / "hostile.rank")
    header = "# features: " + json.dumps([HOSTILE, "b"])
    rows = [f"{int(y[i])} qid:{i // 6} 1:{X[i, 0]:.3f} 2:{X[i, 1]:.3f} # {HOSTILE!r}" for i in range(24)]
    (files / "hostile.txt").write_text("\n".join([header, *rows]) + "\n")
    (files / "queries.csv").write_text("label,qid,b\n" + "".join(f'{i % 3},"{HOSTILE}",0.{i}\n' for i in range(6)))
    return files


@pytest.mark.parametrize(
    "command",
    [
        ["info", "hostile.rank"],
        ["info", "hostile.rank", "--json"],
        ["info", "hostile.txt"],
        ["info", "hostile.txt", "--json"],
        ["explain", "hostile.rank", "hostile.txt"],
        ["predict", "hostile.rank", "train.txt"],
        ["evaluate", "hostile.txt", "hostile.rank", "--per-query"],
        ["evaluate", "queries.csv", "hostile.rank"],
        ["info", f"missing-{HOSTILE}.txt"],
        ["train", HOSTILE, "hostile.txt"],
    ],
    ids=lambda command: " ".join(command)[:30].replace("\x1b", "ESC"),
)
def test_no_command_prints_control_characters(rankwell: Command, hostile: Path, command: list[str]) -> None:
    outcome = rankwell(*command)
    assert not RAW.search(outcome.stdout + outcome.stderr)
    assert outcome.stdout + outcome.stderr


def test_a_name_is_shown_with_its_escapes(rankwell: Command, hostile: Path) -> None:
    assert r"bm25\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x0d\u202egnp" in rankwell("info", "hostile.rank").stdout
    assert json.loads(rankwell("info", "hostile.rank", "--json").stdout)["feature_names"] == [HOSTILE, "b"]


def test_an_error_says_names_with_their_escapes() -> None:
    assert str(RankwellError(f"no feature {HOSTILE}.")) == f"no feature {printable(HOSTILE)}."
    assert not RAW.search(str(RankwellError(f"no feature {HOSTILE}.")))


def test_text_keeps_its_lines_tabs_and_letters() -> None:
    assert printable("Größe\tπ\n日本語 שלום") == "Größe\tπ\n日本語 שלום"
