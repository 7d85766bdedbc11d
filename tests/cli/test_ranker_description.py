"""`rankwell ranker show` and `rankwell ranker make`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.cli.conftest import Command

import rankwell as library

BOOST = """
rankers:
  learned: {file: ../model.rank}
inputs:
  - expression: learned + 0.5 * (f2 > 0) + log1p(abs(clicks))
"""


def test_show_and_make_round_trip(rankwell: Command, files: Path) -> None:
    shown = rankwell("ranker", "show", "model.rank")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("features: [f1, f2, f3, f4]\n")
    Path("shown.yaml").write_text(shown.stdout)
    made = rankwell("ranker", "make", "shown.yaml", "--out", "again.rank")
    assert made.exit_code == 0
    assert "4 inputs, 4 features written to again.rank" in made.stderr
    rows = library.read("test.txt")
    np.testing.assert_array_equal(library.load("again.rank").predict(rows), library.load("model.rank").predict(rows))


def test_a_shown_file_refers_to_the_ranker_from_its_own_folder(rankwell: Command, files: Path) -> None:
    golden = Path(__file__).resolve().parent.parent / "golden"
    Path("trees.rank").write_bytes((golden / "version1-trees.rank").read_bytes())
    Path("written").mkdir()
    assert rankwell("ranker", "show", "trees.rank", "--out", "written/trees.yaml").exit_code == 0
    assert "file: ../trees.rank" in Path("written/trees.yaml").read_text()
    assert rankwell("ranker", "make", "written/trees.yaml", "--out", "again.rank").exit_code == 0
    rows = np.random.default_rng(0).normal(size=(9, 7))
    np.testing.assert_array_equal(library.load("again.rank").predict(rows), library.load("trees.rank").predict(rows))


def test_a_boost_over_a_learned_score_is_predicted_explained_and_described(rankwell: Command, files: Path) -> None:
    Path("boost").mkdir()
    Path("boost/boost.yaml").write_text(BOOST)
    made = rankwell("ranker", "make", "boost/boost.yaml", "--out", "boosted.rank")
    assert "1 input, 1 ranker, 5 features written to boosted.rank; its own inputs read f2, clicks" in made.stderr
    Path("data.csv").write_text("label,qid,f1,f2,f3,f4,clicks\n1,1,0.5,1,0,0,7\n0,1,0.5,-1,0,0,0\n")
    assert rankwell("predict", "boosted.rank", "data.csv", "--out", "scores.txt").exit_code == 0
    learned = library.load("model.rank").predict([[0.5, 1, 0, 0], [0.5, -1, 0, 0]]).astype(np.float32)
    np.testing.assert_allclose(np.loadtxt("scores.txt"), learned + np.array([0.5 + np.log1p(7), 0]), rtol=1e-6)
    explained = rankwell("explain", "boosted.rank", "data.csv", "--row", "1")
    assert explained.exit_code == 0
    assert "learned" in explained.stdout
    info = rankwell("info", "boosted.rank")
    assert "made" in info.stdout


def test_a_mistake_is_one_line_with_its_place(rankwell: Command, files: Path) -> None:
    Path("wrong.yaml").write_text("inputs:\n  - linear: {feature: f1, scael: 2}\n")
    outcome = rankwell("ranker", "make", "wrong.yaml", "--out", "wrong.rank")
    assert outcome.exit_code == 1
    message = " ".join(outcome.stderr.split())
    assert "wrong.yaml, line 2, column 27: linear has no 'scael' (did you mean 'scale'?)" in message
    assert not Path("wrong.rank").exists()


def test_the_group_alone_is_help(rankwell: Command) -> None:
    outcome = rankwell("ranker")
    assert outcome.exit_code == 0
    assert "make" in outcome.stdout


def test_what_is_no_model_is_not_called_damaged(rankwell: Command, files: Path) -> None:
    Path("docs.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    outcome = rankwell("ranker", "show", "docs.jsonl")
    assert outcome.exit_code == 1
    assert "docs.jsonl: this is not a model, which is one JSON object" in outcome.stderr
