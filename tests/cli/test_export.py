"""`rankwell export`, and what it says about what a format cannot say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import rankwell as library

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


@pytest.mark.parametrize(
    ("to", "beginning"),
    [
        ("ranklib", b"## Linear Regression\n"),
        ("opensearch", b'{\n "model": {\n  "name": "rankwell"'),
        ("vespa", b"# Written by Rankwell: put it into a schema.\nrank-profile rankwell inherits default {\n"),
        ("c", b"/* rankwell: scores of documents, the higher the better."),
    ],
)
def test_formats(rankwell: Command, files: Path, to: str, beginning: bytes) -> None:
    outcome = rankwell("export", "model.rank", "--to", to, "--out", "exported")
    assert outcome.exit_code == 0
    assert f"model.rank written as {to} to exported (" in outcome.stderr
    assert Path("exported").read_bytes().startswith(beginning)


def test_onnx(rankwell: Command, files: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    assert rankwell("export", "model.rank", "--to", "onnx", "-o", "model.onnx").exit_code == 0
    session = runtime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    data = library.read("test.txt")
    (scores,) = session.run(None, {"features": data.dense_features()})
    np.testing.assert_allclose(scores, library.load("model.rank").predict(data), rtol=1e-9)


@pytest.mark.parametrize("to", ["onnx", "c"])
def test_that_a_call_must_be_one_query_is_told(rankwell: Command, files: Path, to: str) -> None:
    pytest.importorskip("onnx")
    told = "the rows of one call must be all documents of one query, and no others"
    data = library.read("test.txt")
    for normalize, expected in (("query-minmax", True), ("letor", True), ("standard", False)):
        library.LeastSquares(normalize=normalize).fit(data).save("trained.rank")
        outcome = rankwell("export", "trained.rank", "--to", to, "--out", "exported")
        assert (told in outcome.stderr) == expected
    assert told not in rankwell("export", "trained.rank", "--to", to, "--out", "exported", "--quiet").stderr


def test_models_of_other_libraries_go_through(rankwell: Command, files: Path) -> None:
    """From XGBoost's file to LightGBM's."""
    outcome = rankwell("export", str(GOLDEN / "xgboost.json"), "--to", "lightgbm", "--out", "model.txt")
    assert outcome.exit_code == 0
    features = library.read("test.txt").dense_features()
    scores = [
        library.ImportedRanker.from_model(path).predict(features) for path in (GOLDEN / "xgboost.json", "model.txt")
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-13)


def test_stdout_and_names(rankwell: Command, files: Path) -> None:
    outcome = rankwell("export", "model.rank", "--to", "opensearch", "--name", "mine", "--out", "-")
    assert json.loads(outcome.stdout)["model"]["name"] == "mine"


def test_vespa_features(rankwell: Command, files: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    names = ["length.title", "bm25.body(b=0.4)"]
    data = library.RankingDataset(rows, np.arange(8) % 3, group=[8], feature_names=names)
    library.LeastSquares(normalize="none").fit(data).save("named.rank")
    outcome = rankwell("export", "named.rank", "--to", "vespa", "--out", "-")
    assert outcome.exit_code == 2
    assert (
        "no rank feature that is length.title, bm25.body(b=0.4): give an expression for each (--feature)"
        in outcome.stderr
    )
    given = ["--feature", "length.title=fieldLength(title)", "--feature", "bm25.body(b=0.4)=bm25(body)"]
    outcome = rankwell("export", "named.rank", "--to", "vespa", *given, "--out", "-")
    assert outcome.exit_code == 0
    assert "expression: fieldLength(title)" in outcome.stdout
    assert "expression: bm25(body)" in outcome.stdout


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--to", "lightgbm"], "LightGBM's text cannot say linear inputs: it holds decision trees. ONNX and C can"),
        (["--to", "pmml"], "--to must be one of onnx, ranklib, opensearch"),
        (["--to", "c", "--name", "two words"], "--name must be a word of letters, digits and _"),
        (["--to", "c", "--pass", "first"], "--pass is for rankers in two passes"),
        (["--to", "c", "--feature", "f1=x"], "--feature is for vespa alone"),
        (["--to", "vespa", "--feature", "nonsense"], "--feature must be a feature of the ranker, ="),
    ],
)
def test_wrong_usage(rankwell: Command, files: Path, options: list[str], complaint: str) -> None:
    outcome = rankwell("export", "model.rank", *options, "--out", "exported")
    assert outcome.exit_code == 2
    assert complaint in outcome.stderr
    assert not Path("exported").exists()


def test_files_that_are_read_are_not_replaced(rankwell: Command, files: Path) -> None:
    outcome = rankwell("export", "model.rank", "--to", "c", "--out", "model.rank")
    assert outcome.exit_code == 1
    assert "would replace model.rank, which this command reads" in outcome.stderr
