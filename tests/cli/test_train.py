"""`rankwell train`: a ranker file, a table, and what the file remembers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import N_FEATURES, Command, make_part, write_letor

import rankwell as library
from rankwell.data.dataset import RankingDataset
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.least_squares import LeastSquares

TRAIN = ("train", "least-squares", "train.txt", "--vali", "vali.txt", "--out", "new.rank")


def dataset(seed: int) -> RankingDataset:
    features, labels, qid = make_part(seed)
    return RankingDataset(features, labels, qid=qid)


def test_the_file_holds_the_same_ranker_as_python_would_train(rankwell: Command, files: Path) -> None:
    outcome = rankwell(*TRAIN, "--set", "ridge=0.5", "--normalize", "none", "--metrics", "ndcg@3,map")
    assert outcome.exit_code == 0
    expected = LeastSquares(ridge=0.5, normalize="none").fit(dataset(1))
    ranker = library.load(files / "new.rank")
    assert ranker.get_params() == {"ridge": 0.5, "normalize": "none"}
    assert np.array_equal(ranker.predict(dataset(3)), expected.predict(dataset(3)))


def test_metrics_are_printed_with_their_convention_and_kept_in_the_file(rankwell: Command, files: Path) -> None:
    outcome = rankwell(*TRAIN, "--metrics", "ndcg@3,map", "--convention", "letor4")
    ranker = library.load(files / "new.rank")
    expected = {
        part: evaluate(dataset(seed), ranker.predict(dataset(seed)), metrics="ndcg@3,map", convention="letor4").mean
        for part, seed in (("train", 1), ("validation", 2))
    }
    assert ranker.metrics_ == {"convention": "letor4", **expected}
    lines = [line.split() for line in outcome.stdout.splitlines() if line.strip()]
    assert lines[0] == ["metric", "convention", "train", "validation"]
    figures = [f"{expected[part]['ndcg@3']:.4f}" for part in ("train", "validation")]
    assert ["ndcg@3", "letor4", *figures] in lines
    assert "written to new.rank" in outcome.stderr


def test_without_validation_data_only_training_metrics_are_shown(rankwell: Command, files: Path) -> None:
    outcome = rankwell("train", "least-squares", "train.txt", "--out", "new.rank")
    assert outcome.exit_code == 0
    assert "validation" not in outcome.stdout
    assert set(library.load(files / "new.rank").metrics_) == {"convention", "train"}


def test_json_is_all_there_is_on_stdout(rankwell: Command, files: Path) -> None:
    report = json.loads(rankwell(*TRAIN, "--json", "--metrics", "mrr").stdout)
    assert report["ranker"] == "least-squares"
    assert report["parameters"] == {"ridge": 1e-2, "normalize": "auto"}
    assert report["file"] == "new.rank"
    assert report["convention"] == "burges"
    assert report["metrics"] == {
        part: figures for part, figures in library.load("new.rank").metrics_.items() if part != "convention"
    }


def test_quiet_says_nothing_on_stderr(rankwell: Command, files: Path) -> None:
    assert rankwell(*TRAIN, "--quiet").stderr == ""


def test_data_of_different_widths_are_brought_to_the_widest(rankwell: Command, files: Path) -> None:
    features, labels, qid = make_part(2)
    wider = np.column_stack([features, np.arange(len(features))])
    write_letor(files / "vali.txt", wider, labels, qid)
    assert rankwell(*TRAIN).exit_code == 0
    assert library.load(files / "new.rank").n_features_in_ == N_FEATURES + 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("train", "rankbost", "train.txt", "--out", "m"), 2, "there is no ranker called 'rankbost'"),
        ((*TRAIN, "--set", "rige=1"), 2, "least-squares has no such parameter. Did you mean ridge?"),
        ((*TRAIN, "--set", "ridge=much"), 2, "--set ridge must be a number, got 'much'."),
        ((*TRAIN, "--set", "ridge=-1"), 2, "ridge must be a finite number of 0 or more"),
        ((*TRAIN, "--set", "ridge"), 2, "--set takes key=value"),
        ((*TRAIN, "--normalize", "max"), 2, "normalize must be one of"),
        ((*TRAIN, "--normalize", "none", "--set", "normalize=none"), 2, "set the same parameter"),
        ((*TRAIN, "--metrics", "gold"), 2, "--metrics must be one of"),
        ((*TRAIN, "--convention", "mine"), 2, "convention must be one of"),
        (
            ("train", "train.txt", "least-squares", "--out", "m"),
            2,
            "train.txt is a path, not a ranker. The ranker's name",
        ),
        (("train", "least-squares", "scores.txt", "--out", "m", "--quiet"), 1, "there are no features to learn from"),
        (("train", "least-squares", "absent.txt", "--out", "m"), 1, "there is no file absent.txt"),
        (("train", "least-squares", ".", "--out", "m"), 1, "folder"),
        (("train", "least-squares", "train.txt", "--out", "."), 1, "--out . is a folder"),
        (("train", "least-squares", "train.txt", "--out", "train.txt/m"), 1, "is a file, not a folder"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(
    rankwell: Command, files: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    before = sorted(path.name for path in files.iterdir())
    outcome = rankwell(*arguments)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.parametrize("command", [("train", "least-squares", "one.txt", "--out", "m"), ("evaluate", "one.txt", "s")])
def test_rows_without_query_ids_are_one_query_with_a_note(
    rankwell: Command, files: Path, command: tuple[str, ...]
) -> None:
    (files / "one.txt").write_text("1 1:1\n0 1:0\n0 1:3\n")
    (files / "s").write_text("3\n2\n1\n")
    note = "note: all 3 rows of one.txt are one query; rows of several queries need qid:ID"
    assert note in rankwell(*command).stderr
    assert rankwell(*command, "--quiet").stderr == ""


def test_a_narrower_validation_file_is_widened_with_a_note(rankwell: Command, files: Path) -> None:
    (files / "wide.txt").write_text("1 qid:1 1:1 2:5\n0 qid:1 1:0 2:1\n")
    (files / "narrow.txt").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    outcome = rankwell("train", "least-squares", "wide.txt", "--vali", "narrow.txt", "--out", "new.rank")
    assert outcome.exit_code == 0
    note = "note: the validation data has 1 features, the other 2: absent features count as 0"
    assert note in " ".join(outcome.stderr.split())


@pytest.mark.parametrize("name", ["train.txt", "link.txt", "vali.txt"])
def test_a_checkpoint_does_not_replace_the_data(rankwell: Command, files: Path, name: str) -> None:
    (files / "link.txt").symlink_to(files / "train.txt")
    before = (files / name).read_bytes()
    command = ["train", "rankboost", "train.txt", "--vali", "vali.txt", "--out", "model.rank", "--set", "n_rounds=3"]
    outcome = rankwell(*command, "--set", f"checkpoint={name}")
    assert outcome.exit_code == 1
    assert f"--set checkpoint {name} would replace" in outcome.stderr
    assert (files / name).read_bytes() == before


def test_the_c_that_was_chosen_and_its_path(rankwell: Command, files: Path) -> None:
    train = ("train", "ranksvm", "train.txt", "--vali", "vali.txt", "--set", "C=auto", "--out", "svm.rank")
    outcome = rankwell(*train)
    assert "chose C=" in outcome.stderr
    assert "C chosen on the validation data, convention burges" in outcome.stdout
    rows = [line for line in outcome.stdout.splitlines() if " * " in line]
    assert len(rows) == 1
    report = json.loads(rankwell(*train, "--json").stdout)
    assert len(report["path"]) > 3
    assert report["chosen"]["C"] in [point["C"] for point in report["path"]]
    best = max(point["validation"] for point in report["path"])
    shown = rankwell("info", "svm.rank").stdout
    assert f"chosen          C={report['chosen']['C']}" in shown
    assert f"{report['chosen']['C']:.6g}: {best:.4f}" in shown
    assert json.loads(rankwell("info", "svm.rank", "--json").stdout)["path"] == report["path"]


@pytest.mark.parametrize("part", ["train", "validation"])
def test_labels_that_metrics_cannot_read_are_refused_before_training(
    rankwell: Command, files: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "negative.txt").write_text("1 qid:1 1:1\n-1 qid:1 1:0\n0 qid:1 1:2\n")
    train, vali = ("negative.txt", "vali.txt") if part == "train" else ("train.txt", "negative.txt")
    command = ["train", "least-squares", train, "--vali", vali, "--out", "new.rank"]
    with monkeypatch.context() as patched:
        patched.setattr(library.LeastSquares, "fit", None)
        outcome = rankwell(*command)
    assert outcome.exit_code == 1
    said = f"the {part} data cannot be measured: ndcg@1 under burges needs labels of 0 or more: row 1 has label -1."
    assert said in outcome.stderr
    for metrics in (["--convention", "trec"], ["--metrics", "pairwise_accuracy"]):
        assert rankwell(*command, *metrics).exit_code == 0


def test_the_loss_that_was_chosen(rankwell: Command, files: Path) -> None:
    train = ("train", "lambdamart", "train.txt", "--set", "loss=auto", "--set", "n_rounds=5", "--out", "auto.rank")
    alone = rankwell(*train)
    assert alone.exit_code == 0
    assert "loss='auto' is lambdarank without --vali, on which losses would be compared." in alone.stderr
    outcome = rankwell(*train, "--vali", "vali.txt", "--metric", "map", "--json")
    report = json.loads(outcome.stdout)
    chosen = report["chosen"]["loss"]
    found = re.search(
        r"loss='auto' chose (\w+) by map on the validation set: lambdarank ([\d.]+), xendcg ([\d.]+)", outcome.stderr
    )
    assert found is not None
    assert found[1] == chosen
    assert (float(found[2]) >= float(found[3])) == (chosen == "lambdarank")
    assert f"{report['metrics']['validation']['map']:.4f}" == max(found[2], found[3])


def test_memory_trains_from_disk_and_gives_the_same_file(rankwell: Command, files: Path, tmp_path: Path) -> None:
    train = ("train", "rankboost", "train.txt", "--vali", "vali.txt", "--set", "n_rounds=5", "--set", "device=cpu")
    assert rankwell(*train, "--out", "a.rank").exit_code == 0
    limited = rankwell(*train, "--out", "b.rank", "--memory", "8GiB", "--scratch", str(tmp_path))
    assert limited.exit_code == 0, limited.stderr
    assert (files / "a.rank").read_bytes() == (files / "b.rank").read_bytes()


def test_mistakes_with_memory_name_the_options(rankwell: Command, files: Path) -> None:
    train = ("train", "rankboost", "train.txt", "--out", "new.rank")
    assert "--memory must be a size such as 4GiB" in rankwell(*train, "--memory", "much").stderr
    assert "pass --memory too" in rankwell(*train, "--scratch", ".").stderr
    assert "--memory is 1 MiB, and rankboost needs about" in rankwell(*train, "--memory", "1MiB").stderr
    refused = rankwell("train", "least-squares", "train.txt", "--out", "new.rank", "--memory", "4GiB")
    assert "least-squares cannot train on data that is larger than memory" in refused.stderr
    assert "Read the data without --memory" in refused.stderr
