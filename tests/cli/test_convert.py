"""`rankwell convert`: the same data in another format, and bad lines left out where that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import N_QUERIES, QUERY_SIZE, Command, make_part

import rankwell as library


@pytest.mark.parametrize("name", ["new.feather", "new.parquet", "new.csv", "new.txt.gz", "new.txt.zst", "new.svm"])
def test_every_format_holds_the_same(rankwell: Command, files: Path, name: str) -> None:
    outcome = rankwell("convert", "train.txt", name)
    assert outcome.exit_code == 0
    assert outcome.stderr == f"{N_QUERIES * QUERY_SIZE} rows in {N_QUERIES} queries written to {name}\n"
    features, labels, qid = make_part(1)
    dataset = library.read(files / name)
    assert np.array_equal(dataset.features, features.astype(np.float32))
    assert np.array_equal(dataset.labels, labels)
    assert np.array_equal(dataset.qid_of_rows(), qid)
    assert rankwell("evaluate", name, "train.scores").exit_code == 1
    assert rankwell("evaluate", name, "model.rank").stdout == rankwell("evaluate", "train.txt", "model.rank").stdout


def test_a_new_folder_is_made(rankwell: Command, files: Path) -> None:
    assert rankwell("convert", "train.txt", "new/folder/train.feather").exit_code == 0
    assert library.read("new/folder/train.feather").n_queries == N_QUERIES


def test_through_pipes(rankwell: Command, files: Path) -> None:
    outcome = rankwell("convert", "-", "-", stdin=(files / "train.txt").read_bytes())
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    (files / "again.txt").write_text(outcome.stdout)
    assert np.array_equal(library.read("again.txt").features, library.read("train.txt").features)


def test_bad_lines_are_an_error_or_left_out_and_counted(rankwell: Command, files: Path) -> None:
    (files / "bad.txt").write_text("1 qid:1 1:2\nhello\n0 qid:1 1:x\n0 qid:1 1:3\n")
    outcome = rankwell("convert", "bad.txt", "new.feather")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("error: bad.txt, line 2, column 1: expected ")
    assert "--skip-bad-lines" in outcome.stderr
    assert not (files / "new.feather").exists()
    outcome = rankwell("convert", "bad.txt", "new.feather", "--skip-bad-lines", "--quiet")
    assert outcome.exit_code == 0
    assert library.read("new.feather").labels.tolist() == [1.0, 0.0]
    assert "2" in outcome.stderr
    assert "bad.txt" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.txt", "new.feather"), "there is no file absent.txt"),
        (("train.txt", "new.unknown"), "new.unknown does not tell its format"),
        (("absent.txt", "new.unknown"), "new.unknown does not tell its format"),  # before anything is read
        (("train.txt", "."), "DST . is a folder"),
        (("train.txt", "train.txt/new.csv"), "train.txt is a file, not a folder"),
        (("model.rank", "new.feather"), "model.rank"),
    ],
)
def test_mistakes_are_one_line(rankwell: Command, files: Path, arguments: tuple[str, ...], message: str) -> None:
    before = sorted(path.name for path in files.iterdir())
    outcome = rankwell("convert", *arguments)
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert sorted(path.name for path in files.iterdir()) == before


def test_other_names_of_the_label_and_query_columns(rankwell: Command, files: Path) -> None:
    rankwell("convert", "train.txt", "train.csv")
    header, _, rows = (files / "train.csv").read_text().partition("\n")
    assert header.split(",")[:2] == ['"label"', '"qid"']
    renamed = ",".join(["grade", "query", *header.split(",")[2:]])
    (files / "other.csv").write_text(f"{renamed}\n{rows}")
    columns = ("--label", "grade", "--qid", "query")
    expected = rankwell("evaluate", "train.csv", "model.rank").stdout
    assert rankwell("evaluate", "other.csv", "model.rank", *columns).stdout == expected != ""
    trained = rankwell("train", "least-squares", "other.csv", "--out", "other.rank", *columns)
    assert trained.exit_code == 0
    plain = rankwell("train", "least-squares", "train.csv", "--out", "plain.rank")
    assert plain.exit_code == 0
    np.testing.assert_array_equal(
        library.load("other.rank").description_.layers[0].weights,
        library.load("plain.rank").description_.layers[0].weights,
    )
