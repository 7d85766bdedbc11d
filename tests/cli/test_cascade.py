"""`rankwell cascade`, and what `rankwell info` says about costs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import rankwell as library
from rankwell.scoring.composition import FirstPass, RankerPart

FEW = ("--set", "n_rounds=5", "--folds", "2")
WORDS = ("crude", "oil", "prices", "gas", "ships", "steel", "grain", "wheat", "rain", "ports", "money", "trade")


def test_a_document_that_the_first_pass_did_not_keep_is_explained_so(rankwell: Command, files: Path) -> None:
    description = library.load("model.rank").description_
    columns = tuple(range(description.n_features))
    cascade = replace(description, parts=(RankerPart("first", columns, description),), first_pass=FirstPass(0, 2))
    library.MadeRanker.from_description(cascade).save("cascade.rank")
    scores = library.load("cascade.rank").predict(library.read("test.txt"))
    below, best = int(np.argmin(scores)) + 1, int(np.argmax(scores)) + 1
    outcome = rankwell("explain", "cascade.rank", "test.txt", "--row", str(below))
    name = f"row {below}, not kept by the first pass, which explains its place below those that were"
    assert f"{name}: score {scores.min():.6g}\n" in outcome.stdout
    assert "place below those kept" in outcome.stdout
    outcome = rankwell("explain", "cascade.rank", "test.txt", "--row", str(best))
    assert f"row {best}: score {scores.max():.6g}\n" in outcome.stdout
    assert "kept" not in outcome.stdout


def test_a_cascade_is_trained_shown_and_predicts(rankwell: Command, files: Path) -> None:
    outcome = rankwell("cascade", "train.txt", "--vali", "vali.txt", "--out", "cascade.rank", "--set", "n_rounds=5")
    assert outcome.exit_code == 0
    assert "chosen" in outcome.stdout
    assert "full ranker" in outcome.stdout
    assert "every feature costs the same" in outcome.stderr
    assert rankwell("predict", "cascade.rank", "test.txt", "--out", "out.txt").exit_code == 0
    expected = library.load("cascade.rank").predict(library.read("test.txt"))
    assert np.array_equal(np.loadtxt("out.txt"), expected)
    info = rankwell("info", "cascade.rank")
    assert "µs a query; the full ranker" in " ".join(info.stdout.split())
    assert rankwell("ranker", "show", "cascade.rank").exit_code == 0


def test_json_has_the_curve_and_the_costs(rankwell: Command, files: Path) -> None:
    Path("costs.yaml").write_text("default: 200\nfeatures: {f1: 50}\n")
    options = ("--costs", "costs.yaml", "--json", "--budget", "95%")
    outcome = rankwell("cascade", "train.txt", "--out", "c.rank", *FEW, *options)
    report = json.loads(outcome.stdout)
    assert report["full"]["second"] == ["f1", "f2", "f3", "f4"]
    assert report["full"]["cost"] > 6 * 650
    assert report["chosen"]["cost"] <= 0.95 * report["full"]["cost"]
    assert [point["cost"] for point in report["curve"]] == sorted(point["cost"] for point in report["curve"])
    assert report["table"]["features"]["f1"]["document"] == 50


def test_a_misspelt_feature_of_a_table_is_told(rankwell: Command, files: Path) -> None:
    Path("costs.yaml").write_text("features: {ff3: 50, f1: 2, bm25: 1, price: {shared: []}}\nselected: [f2]\n")
    outcome = rankwell("cascade", "train.txt", "--out", "c.rank", *FEW, "--costs", "costs.yaml")
    assert outcome.exit_code == 0
    warned = "the costs are also of what the data does not have: 'ff3' (did you mean 'f3'?), 'bm25', 'price'."
    assert warned in " ".join(outcome.stderr.split())
    Path("costs.yaml").write_text("features: {f3: 50}\n")
    outcome = rankwell("cascade", "train.txt", "--out", "c.rank", *FEW, "--costs", "costs.yaml")
    assert "does not have" not in outcome.stderr


def test_the_curve_is_drawn(rankwell: Command, files: Path) -> None:
    pytest.importorskip("matplotlib")
    outcome = rankwell("cascade", "train.txt", "--out", "c.rank", *FEW, "--plot", "curve.png")
    assert outcome.exit_code == 0
    assert Path("curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("curve.txt", "--plot curve.txt: the ending says how to draw, it must be .png, .svg, .pdf"),
        ("curve", "another format of Matplotlib, it has none"),
        ("./c.svg", "--plot c.svg would replace --out c.svg"),
    ],
)
def test_a_curve_that_cannot_be_drawn_is_refused_before_the_training(
    rankwell: Command, files: Path, path: str, message: str
) -> None:
    pytest.importorskip("matplotlib")
    outcome = rankwell("cascade", "train.txt", "--out", "c.svg", *FEW, "--plot", path)
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.stderr.split())
    assert not Path("c.svg").exists()


def test_a_curve_without_matplotlib_is_refused_before_the_training(
    rankwell: Command, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = rankwell("cascade", "train.txt", "--out", "c.rank", *FEW, "--plot", "curve.png")
    assert outcome.exit_code == 1
    assert "a plot needs Matplotlib" in outcome.stderr
    assert not Path("c.rank").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "cheap"), "--budget must be microseconds, as 500, or a share, as 25%, got 'cheap'"),
        (("--budget", "0.001"), "--budget must be at least"),
        (("--budget", "0%"), "--budget must be a share above 0% and at most 100%, got '0%'"),
        (("--budget", "200%"), "--budget must be a share above 0% and at most 100%, got '200%'"),
        (("--budget", "-5"), "--budget must be a finite number above 0, got -5.0"),
        (("--folds", "1"), "--folds must be 2 or more, got 1"),
        (("--first-set", "foo=1"), "--first-set foo: least-squares has no such parameter"),
        (("--first-set", "ridge=x"), "--first-set ridge must be a number"),
        (("--index", "a", "--costs", "b"), "give --index or --costs, not both"),
        (("--queries", "a"), "which needs --index"),
        (("--second", "boost"), "there is no ranker called 'boost'"),
        (("--out", "train.txt"), "would replace train.txt"),
    ],
)
def test_mistakes_are_told(rankwell: Command, files: Path, options: tuple[str, ...], message: str) -> None:
    outcome = rankwell("cascade", "train.txt", "--out", "c.rank", *FEW, *options)
    assert outcome.exit_code in (1, 2)
    assert message in " ".join(outcome.stderr.split())
    assert not Path("c.rank").exists()


@pytest.fixture
def searched(rankwell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index, and features of its judged queries."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rankwell.features.cost_measurement.cache_folder", lambda: tmp_path / "cache")
    rng = np.random.default_rng(0)
    documents = [
        {"id": f"d{number}", "title": " ".join(rng.choice(WORDS, 3)), "body": " ".join(rng.choice(WORDS, 20))}
        for number in range(150)
    ]
    Path("docs.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    asked = [" ".join(rng.choice(WORDS, 2, replace=False)) for _ in range(12)]
    Path("queries.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(asked)))
    judgments = (f"{q} 0 d{doc} {rng.integers(0, 3)}\n" for q in range(12) for doc in range(150))
    Path("qrels.txt").write_text("".join(judgments))
    assert rankwell("index", "build", "docs.jsonl", "--out", "docs.idx").exit_code == 0
    made = rankwell("features", "docs.idx", "queries.tsv", "qrels.txt", "--candidates", "top", "--out", "train.feather")
    assert made.exit_code == 0
    return tmp_path


def test_from_an_index_to_search_in_one_file(rankwell: Command, searched: Path) -> None:
    options = ("--index", "docs.idx", "--queries", "queries.tsv", "--candidates", "1000", "--budget", "40%")
    outcome = rankwell("cascade", "train.feather", "--out", "c.rank", *FEW, *options)
    assert outcome.exit_code == 0, outcome.stderr
    assert "measured on one core" in outcome.stderr
    found = rankwell("search", "docs.idx", "crude oil", "--ranker", "c.rank", "--json", "-k", "3")
    assert found.exit_code == 0
    ranker = library.load("c.rank")
    expected = library.RankedSearch(library.Index.open("docs.idx"), ranker).search("crude oil", 3)
    assert len(expected.ids) == 3
    assert [row["id"] for row in json.loads(found.stdout)["results"]] == list(expected.ids)


def test_info_of_an_index_shows_and_keeps_what_features_cost(rankwell: Command, searched: Path) -> None:
    shown = rankwell("info", "docs.idx")
    assert shown.exit_code == 0
    assert "bm25.title" in shown.stdout
    assert "known from selection" in shown.stdout
    (kept,) = (searched / "cache" / "feature-costs").iterdir()
    before = kept.read_bytes()
    table = json.loads(rankwell("info", "docs.idx", "--json").stdout)
    assert kept.read_bytes() == before
    assert table["shared"]["hits"]["query"] > 0
    assert set(table["selected"]) == {"bm25.whole", "length.title", "length.body", "length.whole"}
    kept.write_text("{")
    assert rankwell("info", "docs.idx", "--json").exit_code == 0
    assert json.loads(kept.read_bytes())["features"]
