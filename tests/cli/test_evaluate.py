"""`rankwell evaluate`: the numbers are right, named, and a program can read them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.cli.conftest import N_QUERIES, Command

# Two queries. The first is ranked 0, 2, 1 (labels in rank order), the second has nothing relevant.
JUDGED = """\
2 qid:a 1:0
0 qid:a 1:0
1 qid:a 1:0
0 qid:b 1:0
0 qid:b 1:0
"""
SCORES = "0.5\n0.9\n0.1\n1\n2\n"
# letor4: gain 2^label − 1; ranks 1 and 2 undiscounted, 1/log2(3) at rank 3.
NDCG_LETOR4 = (0 + 3 + 1 / math.log2(3)) / (3 + 1)
# burges: 1/log2(rank + 1).
NDCG_BURGES = (3 / math.log2(3) + 1 / 2) / (3 + 1 / math.log2(3))


@pytest.fixture
def judged(files: Path) -> Path:
    (files / "judged.txt").write_text(JUDGED)
    (files / "judged.scores").write_text(SCORES)
    return files


def figures(rankwell: Command, *arguments: str) -> dict[str, float]:
    outcome = rankwell("evaluate", *arguments, "--json")
    assert outcome.exit_code == 0
    return {name: figure["mean"] for name, figure in json.loads(outcome.stdout)["metrics"].items()}


def test_conventions_count_as_they_say(rankwell: Command, judged: Path) -> None:
    run = ("judged.txt", "judged.scores", "--metrics", "ndcg@3,map")
    # The second query has no relevant document: letor4 counts it as 0, gbdt as 1, burges leaves it out.
    assert figures(rankwell, *run, "--convention", "letor4") == {
        "ndcg@3": pytest.approx(NDCG_LETOR4 / 2),
        "map": pytest.approx((1 / 2 + 2 / 3) / 2 / 2),
    }
    assert figures(rankwell, *run, "--convention", "gbdt")["ndcg@3"] == pytest.approx((NDCG_BURGES + 1) / 2)
    assert figures(rankwell, *run)["ndcg@3"] == pytest.approx(NDCG_BURGES)


def test_the_table_names_convention_and_queries(rankwell: Command, judged: Path) -> None:
    outcome = rankwell("evaluate", "judged.txt", "judged.scores", "--metrics", "ndcg@3,map")
    lines = [line.split() for line in outcome.stdout.splitlines()]
    assert ["ndcg@3", "burges", f"{NDCG_BURGES:.4f}", "1", "of", "2"] in lines
    assert outcome.stderr == ""


def test_per_query_is_tab_separated_with_the_means_last(rankwell: Command, judged: Path) -> None:
    outcome = rankwell("evaluate", "judged.txt", "judged.scores", "--metrics", "ndcg@3,mrr", "--per-query")
    assert outcome.stdout.splitlines() == [
        "qid\tndcg@3 (burges)\tmrr (burges)",
        f"a\t{NDCG_BURGES:.4f}\t0.5000",
        "b\t-\t-",
        f"all\t{NDCG_BURGES:.4f}\t0.5000",
    ]


def test_per_query_in_json(rankwell: Command, judged: Path) -> None:
    outcome = rankwell("evaluate", "judged.txt", "judged.scores", "--metrics", "mrr", "--per-query", "--json")
    report = json.loads(outcome.stdout)
    assert report["convention"] == "burges"
    assert report["query_ids"] == ["a", "b"]
    assert report["per_query"] == {"mrr": [0.5, None]}


def test_nothing_that_counts_is_a_dash_and_null(rankwell: Command, judged: Path) -> None:
    (judged / "none.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    (judged / "none.scores").write_text("1\n2\n")
    assert "-" in rankwell("evaluate", "none.txt", "none.scores", "--metrics", "map").stdout.split()
    assert figures(rankwell, "none.txt", "none.scores", "--metrics", "map") == {"map": None}


def test_a_ranker_and_its_scores_give_the_same(rankwell: Command, files: Path) -> None:
    assert figures(rankwell, "test.txt", "model.rank") == figures(rankwell, "test.txt", "scores.txt")


def test_scores_from_stdin(rankwell: Command, files: Path) -> None:
    outcome = rankwell("evaluate", "test.txt", "-", stdin=(files / "scores.txt").read_text())
    assert outcome.stdout == rankwell("evaluate", "test.txt", "scores.txt").stdout
    assert f"of {N_QUERIES}" in outcome.stdout


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("1\n2\n", "judged.scores has 2 scores, the data has 5 rows: it ends after line 2."),
        ("1\n" * 7, "judged.scores has 7 scores, the data has 5 rows: line 6 is the first that is too many."),
        ("1\n2\nnan\n4\n5\n", "judged.scores, line 3: expected one finite number, got 'nan'."),
        ("1\nhello\n3\n4\n5\n", "judged.scores, line 2: expected one finite number, got 'hello'."),
        ("q 1 0.5\n", "line 1: expected one finite number, got 'q 1 0.5'. There are 3 columns"),
        ("\0\1\2", "judged.scores is not a scores file: it contains binary data"),
    ],
)
def test_a_wrong_scores_file_names_the_line(rankwell: Command, judged: Path, scores: str, message: str) -> None:
    (judged / "judged.scores").write_text(scores)
    outcome = rankwell("evaluate", "judged.txt", "judged.scores")
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("absent.txt", "scores.txt"), 1, "there is no file absent.txt"),
        (("test.txt", "absent.txt"), 1, "there is no file absent.txt"),
        (("test.txt", "."), 1, "folder"),
        ((".", "scores.txt"), 1, "folder"),
        (("test.txt", "scores.txt", "--metrics", "ndgc@10"), 2, "--metrics must be one of"),
        (("test.txt", "scores.txt", "--metrics", "ndcg@0"), 2, "1 or more"),
        (("test.txt", "scores.txt", "--metrics", ""), 2, "at least one metric"),
        (("test.txt", "scores.txt", "--convention", "letor5"), 2, "convention must be one of"),
        (("-", "-"), 2, "only one of the files can be stdin"),
        (("bad.txt", "scores.txt"), 1, "bad.txt, line 2"),
    ],
)
def test_mistakes_are_one_line(
    rankwell: Command, files: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (files / "bad.txt").write_text("0 qid:1 1:1\n0 qid:1 1:one\n")
    outcome = rankwell("evaluate", *arguments)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""
