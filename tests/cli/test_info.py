"""`rankwell info`: data, ranker files, rankers, this machine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import N_FEATURES, N_QUERIES, QUERY_SIZE, Command, make_part

from rankwell.cli.setting_texts import setting_texts
from rankwell.rankers.registry import RANKERS, load, ranker_class


def test_a_data_file(rankwell: Command, files: Path) -> None:
    report = json.loads(rankwell("info", "train.txt", "--json").stdout)
    assert report["kind"] == "data"
    assert (report["n_docs"], report["n_queries"]) == (N_QUERIES * QUERY_SIZE, N_QUERIES)
    assert report["n_features"] == N_FEATURES
    assert report["query_sizes"] == {"least": QUERY_SIZE, "median": QUERY_SIZE, "most": QUERY_SIZE}
    levels, counts = np.unique(make_part(1)[1], return_counts=True)
    assert report["labels"]["counts"] == dict(zip(map("{:g}".format, levels), counts.tolist(), strict=True))
    assert report["missing_values"] == 0
    assert report["comments"] is True


def test_a_data_file_as_text(rankwell: Command, files: Path) -> None:
    (files / "three.txt").write_text("0 qid:1 1:1\n1 qid:1 1:2\n0 qid:2 1:3\n")
    lines = [line.split(maxsplit=1) for line in rankwell("info", "three.txt").stdout.splitlines()]
    text = {name: value.strip() for name, value in lines}
    assert text["documents"] == "3"
    assert text["queries"] == "2, 1 to 2 documents each (median 1.5)"
    assert text["labels"] == "2 of 0, 1 of 1"


def test_many_label_levels_are_summarised_by_their_range(rankwell: Command, files: Path) -> None:
    (files / "listwise.txt").write_text("".join(f"{label} qid:1 1:1\n" for label in range(12)))
    report = json.loads(rankwell("info", "listwise.txt", "--json").stdout)
    assert report["labels"] == {"n_levels": 12, "least": 0, "median": 5.5, "most": 11}
    assert "12 levels, 0 to 11 (median 5.5)" in rankwell("info", "listwise.txt").stdout


def test_a_ranker_file(rankwell: Command, files: Path) -> None:
    rankwell("train", "least-squares", "train.txt", "--out", "new.rank", "--convention", "letor4", "--metrics", "map")
    report = json.loads(rankwell("info", "new.rank", "--json").stdout)
    assert report["kind"] == "ranker"
    assert report["ranker"] == "least-squares"
    assert report["parameters"] == {"ridge": 1e-2, "normalize": "auto"}
    assert report["feature_names"] == ["f1", "f2", "f3", "f4"]
    text = rankwell("info", "new.rank").stdout
    assert f"map {report['metrics']['train']['map']:.4f} (convention letor4)" in text
    assert "ridge=0.01 normalize=auto" in text


def test_a_ranker_by_name(rankwell: Command, files: Path) -> None:
    text = rankwell("info", "least-squares").stdout
    assert "ridge=0.01" in text
    assert "normalize=auto" in text
    assert "Weight of" in text
    report = json.loads(rankwell("info", "least-squares", "--json").stdout)
    assert report["parameters"] == {"ridge": 1e-2, "normalize": "auto"}


def test_this_machine(rankwell: Command) -> None:
    report = json.loads(rankwell("info", "--json").stdout)
    assert set(report["devices"]) == {"cpu", "cuda", "opencl", "fpga-sim"}
    assert report["devices"]["cpu"]["usable"] is True
    assert report["rankers"] == list(RANKERS)
    text = rankwell("info").stdout
    assert all(device["description"] in text for device in report["devices"].values())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent.txt", "there is no file absent.txt"),
        ("lightgbm", "there is no file lightgbm and no ranker of that name. The rankers are least-squares, "),
        (".", "folder"),
        ("bad.txt", "bad.txt, line 1"),
    ],
)
def test_mistakes_are_one_line(rankwell: Command, files: Path, path: str, message: str) -> None:
    (files / "bad.txt").write_text("hello world\n")
    outcome = rankwell("info", path)
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""


def test_the_best_step_on_validation_data(rankwell: Command, files: Path) -> None:
    arguments = ("train", "rankboost", "train.txt", "--vali", "vali.txt", "--out", "b.rank", "--set", "n_rounds=6")
    assert rankwell(*arguments).exit_code == 0
    best = json.loads(rankwell("info", "b.rank", "--json").stdout)["best_step"]
    figures = load("b.rank").history_[best["figure"]]
    assert best["figure"] == "validation ndcg@10"
    assert best["value"] == max(figures) == figures[best["step"] - 1]
    assert f"{best['step']} (validation ndcg@10 {best['value']:.4f})" in rankwell("info", "b.rank").stdout
    assert json.loads(rankwell("info", "model.rank", "--json").stdout)["best_step"] is None


@pytest.mark.parametrize("name", RANKERS)
def test_every_setting_is_explained(rankwell: Command, name: str) -> None:
    report = json.loads(rankwell("info", name, "--json").stdout)
    assert list(report["settings"]) == list(report["parameters"])
    for setting, text in report["settings"].items():
        assert text["values"], f"{name} does not say what {setting} may be"
        assert len(text["meaning"]) > 15, f"{name} does not say what {setting} does"
        assert "See `" not in text["meaning"], f"{setting} of {name} is explained somewhere else"
    shown = " ".join(rankwell("info", name).stdout.split())
    assert all(setting in shown for setting in report["parameters"])


def test_settings_that_a_ranker_inherits_are_explained(rankwell: Command) -> None:
    settings = json.loads(rankwell("info", "lambdarank", "--json").stdout)["settings"]
    assert settings["dropout"]["meaning"].startswith("The share of hidden units left out")
    assert settings["dropout"]["values"] == "float"
    assert "to [0, 1] within each query" in settings["normalize"]["meaning"]
    shown = " ".join(rankwell("info", "listnet").stdout.split())
    assert "dropout=0.0 float. The share of hidden units left out" in shown
    assert settings["checkpoint"]["values"] == "str"
    assert settings["checkpoint_every"]["values"] == "int"


def test_settings_that_share_a_text_have_types_of_their_own() -> None:
    lambdamart = setting_texts(ranker_class("lambdamart"))
    for name in ("increasing", "decreasing", "categorical_features"):
        assert lambdamart[name].kind == "sequence, set or array of str or int"
    assert "must not fall with" in lambdamart["increasing"].meaning
    assert "must not rise with" in lambdamart["decreasing"].meaning
    assert (lambdamart["checkpoint"].kind, lambdamart["checkpoint_every"].kind) == ("str", "int")
    # A type is one word, alternatives of it, or has a remark; a comma within one would look like two types.
    for name in RANKERS:
        for setting, text in setting_texts(ranker_class(name)).items():
            assert text.kind not in ("sequence", "set or array of str or int"), (name, setting)
            assert text.kind.count("(") == text.kind.count(")"), (name, setting)
