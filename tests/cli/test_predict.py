"""`rankwell predict`: one score per line, the same float64 when read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import N_FEATURES, Command, make_part, write_letor

import rankwell as library


def test_scores_read_back_as_the_same_numbers(rankwell: Command, files: Path) -> None:
    outcome = rankwell("predict", "model.rank", "test.txt", "--out", "out.txt")
    assert outcome.exit_code == 0
    expected = library.load("model.rank").predict(make_part(3)[0])
    assert np.array_equal(np.loadtxt("out.txt"), expected)
    assert f"{len(expected)} scores written to out.txt" in outcome.stderr
    assert outcome.stdout == ""


def test_a_dash_writes_to_stdout_and_nothing_else(rankwell: Command, files: Path) -> None:
    outcome = rankwell("predict", "model.rank", "test.txt", "--out", "-")
    assert outcome.stdout == (files / "scores.txt").read_text()
    assert outcome.stderr == ""


def test_a_dash_reads_from_stdin(rankwell: Command, files: Path) -> None:
    text = (files / "test.txt").read_bytes()
    outcome = rankwell("predict", "model.rank", "-", "--out", "-", stdin=text)
    assert outcome.stdout == (files / "scores.txt").read_text()


def test_scores_come_in_the_order_of_the_rows_whatever_the_order_of_queries(rankwell: Command, files: Path) -> None:
    features, labels, qid = make_part(3)
    mixed = np.random.default_rng(0).permutation(len(qid))
    write_letor(files / "mixed.txt", features[mixed], labels[mixed], qid[mixed])
    rankwell("predict", "model.rank", "mixed.txt", "--out", "mixed.scores")
    assert np.array_equal(np.loadtxt("mixed.scores"), np.loadtxt("scores.txt")[mixed])


def test_a_file_without_the_last_features_is_scored_with_zeros(rankwell: Command, files: Path) -> None:
    features, labels, qid = make_part(3)
    features[:, -1] = 0.0
    write_letor(files / "zeros.txt", features, labels, qid)
    write_letor(files / "narrow.txt", features[:, :-1], labels, qid)
    zeros = rankwell("predict", "model.rank", "zeros.txt", "--out", "-")
    narrow = rankwell("predict", "model.rank", "narrow.txt", "--out", "-")
    assert narrow.exit_code == 0
    assert narrow.stdout == zeros.stdout
    assert narrow.stderr == "note: narrow.txt has 3 features, model.rank reads 4: the last 1 count as 0\n"


def test_a_link_is_written_through(rankwell: Command, files: Path) -> None:
    (files / "link").symlink_to("target")
    rankwell("predict", "model.rank", "test.txt", "--out", "link")
    assert (files / "link").is_symlink()
    assert (files / "target").read_text() == (files / "scores.txt").read_text()


def test_a_new_folder_is_made(rankwell: Command, files: Path) -> None:
    assert rankwell("predict", "model.rank", "test.txt", "--out", "a/b/scores").exit_code == 0
    assert (files / "a/b/scores").read_text() == (files / "scores.txt").read_text()


def test_a_truncated_ranker_file_is_refused(rankwell: Command, files: Path) -> None:
    content = (files / "model.rank").read_bytes()
    for length in (0, 4, 100, len(content) // 2, len(content) - 1):
        (files / "cut.rank").write_bytes(content[:length])
        outcome = rankwell("predict", "cut.rank", "test.txt", "--out", "out.txt")
        assert outcome.exit_code == 1
        assert "error: cut.rank is not a ranker file, or it was cut short" in outcome.stderr
        assert outcome.stderr.count("\n") == 1
    assert not (files / "out.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.rank", "test.txt"), "there is no file absent.rank"),
        (("model.rank", "absent.txt"), "there is no file absent.txt"),
        ((".", "test.txt"), "folder"),
        (("model.rank", "model.rank"), "model.rank is a ranker file, but a data file is needed here."),
        (("test.txt", "model.rank"), "test.txt is not a ranker file, or it was cut short. The ranker file comes first"),
        (("model.rank", "wide.txt"), "model.rank reads 4 features, wide.txt has 8: they do not fit together."),
    ],
)
def test_mistakes_are_one_line(rankwell: Command, files: Path, arguments: tuple[str, ...], message: str) -> None:
    features, labels, qid = make_part(3)
    write_letor(files / "wide.txt", np.column_stack([features, features]), labels, qid)
    assert features.shape[1] == N_FEATURES
    outcome = rankwell("predict", *arguments, "--out", "out.txt")
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert not (files / "out.txt").exists()


def test_the_first_rounds_alone(rankwell: Command, files: Path) -> None:
    rankwell("train", "rankboost", "train.txt", "--out", "boosted.rank", "--set", "n_rounds=5")
    rankwell("train", "rankboost", "train.txt", "--out", "short.rank", "--set", "n_rounds=2")
    first = rankwell("predict", "boosted.rank", "test.txt", "--out", "-", "--rounds", "2")
    short = rankwell("predict", "short.rank", "test.txt", "--out", "-")
    assert first.stdout == short.stdout != ""
