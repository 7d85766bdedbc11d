"""`rankwell crossval`: LETOR's fold layout, tuned on validation, reported on test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, make_part, write_letor

from rankwell.data.dataset import RankingDataset
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.least_squares import LeastSquares

N_FOLDS = 3


@pytest.fixture
def folds(files: Path) -> Path:
    """Fold k trains on part k, validates on k + 1 and tests on k + 2."""
    for fold in range(1, N_FOLDS + 1):
        folder = files / "letor" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for offset, part in enumerate(("train", "vali", "test")):
            write_letor(folder / f"{part}.txt", *make_part(fold + offset))
    return files / "letor"


def dataset(seed: int) -> RankingDataset:
    features, labels, qid = make_part(seed)
    return RankingDataset(features, labels, qid=qid)


def test_each_fold_is_tuned_on_its_validation_data(rankwell: Command, folds: Path) -> None:
    outcome = rankwell(
        *("crossval", "least-squares", str(folds), "--grid", "ridge=0.0001,1,100", "--normalize", "none"),
        *("--metric", "map", "--metrics", "ndcg@3,map", "--convention", "letor4", "--json"),
    )
    assert outcome.exit_code == 0
    report = json.loads(outcome.stdout)
    assert (report["ranker"], report["convention"], report["chosen_by"]) == ("least-squares", "letor4", "map")
    assert report["parameters"] == {"normalize": "none"}
    assert [fold["fold"] for fold in report["folds"]] == ["Fold1", "Fold2", "Fold3"]
    for number, fold in enumerate(report["folds"], start=1):
        rankers = {
            ridge: LeastSquares(ridge=ridge, normalize="none").fit(dataset(number)) for ridge in (0.0001, 1.0, 100.0)
        }
        on_validation = {
            ridge: evaluate(
                dataset(number + 1), ranker.predict(dataset(number + 1)), metrics="map", convention="letor4"
            ).mean["map"]
            for ridge, ranker in rankers.items()
        }
        assert [trial["validation"] for trial in fold["trials"]] == list(on_validation.values())
        best = max(on_validation, key=on_validation.__getitem__)
        assert fold["chosen"] == {"ridge": best}
        scores = rankers[best].predict(dataset(number + 2))
        expected = evaluate(dataset(number + 2), scores, metrics="ndcg@3,map", convention="letor4").mean
        assert fold["test"] == expected
    for metric in ("ndcg@3", "map"):
        assert report["mean"][metric] == pytest.approx(np.mean([fold["test"][metric] for fold in report["folds"]]))


def test_the_table_says_what_was_chosen_how_and_in_which_convention(rankwell: Command, folds: Path) -> None:
    outcome = rankwell("crossval", "least-squares", str(folds), "--grid", "ridge=0.5,2", "--metrics", "map")
    lines = [line.split() for line in outcome.stdout.splitlines() if line.strip()]
    assert "convention burges" in outcome.stdout
    assert sum(line[0].startswith("Fold") and line[1].startswith("ridge=") for line in lines) == N_FOLDS
    assert lines[-1][0] == "mean"
    assert "by ndcg@10 (burges) from 2 combinations" in outcome.stderr


def test_without_a_grid_it_says_that_nothing_was_tuned(rankwell: Command, folds: Path) -> None:
    outcome = rankwell("crossval", "least-squares", str(folds), "--set", "ridge=0.5")
    assert outcome.exit_code == 0
    assert "No parameter was chosen from a grid" in outcome.stderr
    assert rankwell("crossval", "least-squares", str(folds), "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("letor", "--grid", "rigde=1,2"), 2, "Did you mean ridge?"),
        (("letor", "--grid", "ridge=1,x"), 2, "--grid ridge must be a number, got 'x'."),
        (("letor", "--grid", "ridge=1,-1"), 2, "ridge must be a finite number of 0 or more, got -1.0."),
        (("letor", "--grid", "ridge=1,2", "--set", "ridge=1"), 2, "ridge is given by both --set and --grid"),
        (("letor", "--grid", "normalize=none,max"), 2, "normalize must be one of"),
        (("letor", "--grid", "normalize=none", "--normalize", "none"), 2, "normalize is given by both"),
        (("letor", "--metric", "gold"), 2, "--metric must be one of"),
        (("absent",), 1, "absent is not a folder"),
        (("train.txt",), 1, "train.txt is a file, not a folder"),
        (("letor/Fold1/..",), 0, ""),
        (("empty",), 1, "empty has no folds"),
        (("half",), 1, "Fold1 has no test data"),
    ],
)
def test_mistakes_are_one_line(
    rankwell: Command, folds: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (folds.parent / "empty").mkdir()
    (folds.parent / "half" / "Fold1").mkdir(parents=True)
    for part in ("train", "vali"):
        (folds.parent / "half" / "Fold1" / f"{part}.txt").write_text("0 qid:1 1:1\n")
    outcome = rankwell("crossval", "least-squares", *arguments)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    if code:
        assert outcome.stderr.count("\n") == 1
        assert outcome.stdout == ""


def test_out_keeps_scores_and_figures_so_that_two_can_be_compared(rankwell: Command, folds: Path) -> None:
    for name, ridge in (("weak", "0.001"), ("strong", "100")):
        outcome = rankwell(
            *("crossval", "least-squares", str(folds), "--set", f"ridge={ridge}", "--normalize", "none"),
            *("--metrics", "ndcg@3,map", "--convention", "letor4", "--out", name),
        )
        assert outcome.exit_code == 0
        assert f"are in {name}" in outcome.stderr
    report = json.loads(Path("weak/crossval.json").read_text())
    lines = Path("weak/per-query.tsv").read_text().splitlines()
    assert lines[0] == "fold\tqid\tndcg@3 (letor4)\tmap (letor4)"
    rows = [line.split("\t") for line in lines[1:]]
    assert len(rows) == sum(dataset(number + 2).n_queries for number in range(1, N_FOLDS + 1))
    for fold in report["folds"]:
        figures = [float(row[3]) for row in rows if row[0] == fold["fold"]]
        assert np.mean(figures) == pytest.approx(fold["test"]["map"])
    compared = rankwell("compare", str(folds), "weak", "strong", "--metrics", "map", "--convention", "letor4", "--json")
    assert compared.exit_code == 0
    found = json.loads(compared.stdout)
    strong = json.loads(Path("strong/crossval.json").read_text())
    assert found["runs"][0]["metrics"]["map"] == pytest.approx(np.mean([float(row[3]) for row in rows]))
    assert found["comparisons"][0]["n_queries"] == len(rows)
    # Every fold has as many queries, so the mean of the folds is the mean of the queries.
    assert found["comparisons"][0]["mean_a"] == pytest.approx(strong["mean"]["map"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["crossval", "least-squares", "letor", "--out", "letor"], 2, "is the folder of the folds"),
        (["crossval", "least-squares", "letor", "--out", "train.txt"], 2, "train.txt is a file, not a folder"),
        (["crossval", "least-squares", "letor", "--inner-folds", "1"], 2, "--inner-folds"),
        (["compare", "letor", "empty", "empty"], 1, "empty has no Fold1.scores. Give a folder that rankwell crossval"),
        (
            ["compare", "letor", "train.txt", "empty"],
            1,
            "train.txt must be a folder that rankwell crossval --out wrote",
        ),
        (["compare", "letor", "empty", "--baseline", "bm25"], 2, "need a file of data"),
    ],
)
def test_mistakes_with_folders(rankwell: Command, folds: Path, arguments: list[str], code: int, message: str) -> None:
    Path("empty").mkdir(exist_ok=True)
    outcome = rankwell(*arguments)
    assert outcome.exit_code == code
    assert message in outcome.stderr.replace("\n", " ")


def test_inner_folds_are_said_and_reported(rankwell: Command, folds: Path) -> None:
    outcome = rankwell("crossval", "least-squares", str(folds), "--inner-folds", "3", "--metrics", "map")
    assert "by 3-fold cross-validation inside each fold's training and validation data" in outcome.stderr
    plain = rankwell("crossval", "least-squares", str(folds), "--metrics", "map")
    assert plain.stdout != outcome.stdout


def test_what_a_ranker_chose_itself_is_shown(rankwell: Command, folds: Path) -> None:
    for options in ([], ["--inner-folds", "2"]):
        command = ("crossval", "rankboost", str(folds), "--set", "n_rounds=30", *options, "--metrics", "map", "--json")
        chosen = [fold["chosen"] for fold in json.loads(rankwell(*command).stdout)["folds"]]
        assert all(set(one) == {"n_rounds"} and 1 <= one["n_rounds"] <= 30 for one in chosen)
    shown = rankwell("crossval", "ranksvm", str(folds), "--inner-folds", "2", "--metrics", "map")
    assert shown.stdout.count("C=") == N_FOLDS
    assert "chose C=" not in shown.stderr
