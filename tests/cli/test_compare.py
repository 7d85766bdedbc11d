"""`rankwell compare`: several runs against the first, with significance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command

# Five queries of two documents, the first relevant; a run either puts it first or second.
JUDGED = "".join(f"1 qid:{query} 1:0\n0 qid:{query} 1:0\n" for query in range(5))
ALL_RIGHT = "2\n1\n" * 5
ALL_WRONG = "1\n2\n" * 5


@pytest.fixture
def runs(files: Path) -> Path:
    (files / "judged.txt").write_text(JUDGED)
    (files / "right").write_text(ALL_RIGHT)
    (files / "wrong").write_text(ALL_WRONG)
    return files


def test_differences_and_p_values(rankwell: Command, runs: Path) -> None:
    outcome = rankwell("compare", "judged.txt", "wrong", "right", "wrong", "--metrics", "mrr,p@1", "--json")
    assert outcome.exit_code == 0
    report = json.loads(outcome.stdout)
    assert [run["metrics"] for run in report["runs"]] == [
        {"mrr": 0.5, "p@1": 0.0},
        {"mrr": 1.0, "p@1": 1.0},
        {"mrr": 0.5, "p@1": 0.0},
    ]
    better = report["comparisons"][0]
    assert (better["run"], better["baseline"], better["metric"]) == ("right", "wrong", "mrr")
    assert (better["difference"], better["wins"], better["ties"], better["losses"]) == (0.5, 5, 0, 0)
    # Of the 2^5 ways to choose signs, two are as extreme: all plus and all minus.
    assert better["fisher_p"] == 2 / 2**5
    assert better["convention"] == "burges"
    same = report["comparisons"][2]
    assert (same["run"], same["difference"], same["fisher_p"]) == ("wrong", 0.0, 1.0)


def test_the_table_names_the_convention(rankwell: Command, runs: Path) -> None:
    outcome = rankwell("compare", "judged.txt", "wrong", "right", "--metrics", "mrr", "--convention", "letor4")
    assert "mrr (letor4)" in outcome.stdout
    lines = [line.split() for line in outcome.stdout.splitlines()]
    assert ["wrong", "0.5000", "baseline"] in lines
    assert ["right", "1.0000", "+0.5000", "5", "0", "0", "0.0625", "<0.0001"] in lines
    assert "Fisher" in outcome.stderr


def test_rankers_and_scores_mix(rankwell: Command, files: Path) -> None:
    outcome = rankwell("compare", "test.txt", "model.rank", "scores.txt", "--metrics", "ndcg@3", "--json")
    report = json.loads(outcome.stdout)
    assert report["comparisons"][0]["difference"] == 0.0
    assert report["comparisons"][0]["ties"] == report["comparisons"][0]["n_queries"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("judged.txt", "right"), 2, "compare needs two runs or more"),
        (("judged.txt", "right", "absent"), 1, "there is no file absent"),
        (("judged.txt", "right", "scores.txt"), 1, "scores.txt has 48 scores, the data has 10 rows"),
        (("judged.txt", "right", "model.rank", "--metrics", "x"), 2, "--metrics must be one of"),
    ],
)
def test_mistakes_are_one_line(
    rankwell: Command, runs: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = rankwell("compare", *arguments)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""
