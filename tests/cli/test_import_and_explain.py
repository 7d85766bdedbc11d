"""`rankwell import` and `rankwell explain`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import rankwell as library

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def test_an_imported_model_predicts(rankwell: Command, files: Path) -> None:
    outcome = rankwell("import", str(GOLDEN / "xgboost.json"), "imported.rank")
    assert outcome.exit_code == 0
    assert "6 trees over 4 features written to imported.rank" in outcome.stderr
    assert rankwell("predict", "imported.rank", "test.txt", "--out", "out.txt").exit_code == 0
    expected = library.load("imported.rank").predict(library.read("test.txt"))
    assert np.array_equal(np.loadtxt("out.txt"), expected)


def test_a_model_that_does_not_say_how_many_features_there_are(rankwell: Command, files: Path) -> None:
    Path("linear.txt").write_text("## Coordinate Ascent\n1:0.5 2:0.25\n")
    outcome = rankwell("import", "linear.txt", "linear.rank")
    assert outcome.exit_code == 0
    assert "and this one reads 2; for data that has more, import it with --features DATA" in outcome.stderr
    narrow = rankwell("predict", "linear.rank", "test.txt", "--out", "out.txt")
    assert narrow.exit_code == 1
    assert "linear.rank reads 2 features, test.txt has 4" in narrow.stderr
    assert "import the model again with --features test.txt." in narrow.stderr
    outcome = rankwell("import", "linear.txt", "linear.rank", "--features", "test.txt")
    assert "does not say how many" not in outcome.stderr
    assert rankwell("predict", "linear.rank", "test.txt", "--out", "out.txt").exit_code == 0
    rows = library.read("test.txt").features
    assert np.loadtxt("out.txt") == pytest.approx(0.5 * rows[:, 0] + 0.25 * rows[:, 1])
    with pytest.raises(library.DataError, match=r"X has 4 features.*svm_rank.* is imported with n_features=4"):
        library.ImportedRanker.from_model("linear.txt").predict(rows)


def _xgboost_trained_from_text() -> None:
    """XGBoost has an empty column 0 before feature 1 of text."""
    content = json.loads((GOLDEN / "xgboost.json").read_text())
    content["learner"]["learner_model_param"]["num_feature"] = "5"
    content["learner"]["feature_names"] = []
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        tree["split_indices"] = [index + 1 for index in tree["split_indices"]]
    Path("text.json").write_text(json.dumps(content))


def test_a_model_trained_from_text(rankwell: Command, files: Path) -> None:
    _xgboost_trained_from_text()
    expected = library.ImportedRanker.from_model(GOLDEN / "xgboost.json").predict(library.read("test.txt"))
    outcome = rankwell("import", "text.json", "text.rank")
    assert "no tree of this model tests column 0" in outcome.stderr
    assert "import it with --first-index 1" in outcome.stderr
    for command in (
        ("predict", "text.rank", "test.txt", "--out", "off.txt"),
        ("explain", "text.rank", "test.txt", "--row", "1"),
    ):
        off = rankwell(*command)
        assert "warning: test.txt has 4 features, text.rank reads 5: the last 1 count as 0" in off.stderr
        assert "read one column off and the scores are wrong: import it again with --first-index 1" in off.stderr
    assert rankwell("import", "text.json", "text.rank", "--first-index", "1").stderr.count("column") == 0
    outcome = rankwell("predict", "text.rank", "test.txt", "--out", "out.txt")
    assert "count as 0" not in outcome.stderr
    assert np.array_equal(np.loadtxt("out.txt"), expected)


def test_a_first_index_that_a_model_does_not_have(rankwell: Command, files: Path) -> None:
    Path("linear.txt").write_text("## Coordinate Ascent\n1:0.5 2:0.25\n")
    refused = rankwell("import", "linear.txt", "linear.rank", "--first-index", "1")
    assert refused.exit_code == 1
    assert "this is a model of RankLib; only for models of LightGBM and XGBoost" in refused.stderr
    assert "leave out --first-index." in refused.stderr
    _xgboost_trained_from_text()
    refused = rankwell("import", "text.json", "text.rank", "--first-index", "2")
    assert "--first-index must be 0 or 1" in refused.stderr
    refused = rankwell("export", "text.json", "--to", "c", "--out", "model.c", "--first-index", "1")
    assert "--first-index is for lightgbm alone" in refused.stderr


def test_rounds_after_the_best_one(rankwell: Command, files: Path) -> None:
    """The file of a training that early stopping ended has them: XGBoost's estimators leave them out."""
    content = json.loads((GOLDEN / "xgboost.json").read_text())
    content["learner"]["attributes"]["best_iteration"] = "3"
    Path("stopped.json").write_text(json.dumps(content))
    outcome = rankwell("import", "stopped.json", "stopped.rank")
    assert "4 trees over 4 features" in outcome.stderr
    assert "its best 4 of 6 rounds are imported, as XGBRanker predicts" in outcome.stderr
    assert "so does an import with --all-rounds" in outcome.stderr
    outcome = rankwell("import", "stopped.json", "stopped.rank", "--all-rounds")
    assert "6 trees over 4 features" in outcome.stderr
    assert "best" not in outcome.stderr


def test_a_file_that_is_not_a_model_is_one_red_line(rankwell: Command, files: Path) -> None:
    outcome = rankwell("import", "test.txt", "imported.rank")
    assert outcome.exit_code == 1
    assert "test.txt: this is neither a LightGBM model" in outcome.stderr
    assert not Path("imported.rank").exists()


def test_catboosts_binary_format_is_told(rankwell: Command, files: Path) -> None:
    Path("model.cbm").write_bytes(b"CBM10!\x00\x00\x10\x00")
    outcome = rankwell("import", "model.cbm", "imported.rank")
    assert outcome.exit_code == 1
    assert "CatBoost's binary format" in outcome.stderr
    assert "save_model('model.json', format='json')" in outcome.stderr


@pytest.mark.parametrize("model", ["model.rank", str(GOLDEN / "version1-trees.rank")])
def test_parts_sum_to_the_score(rankwell: Command, files: Path, model: str) -> None:
    outcome = rankwell("explain", model, "test.txt", "--row", "3", "--json")
    (part,) = json.loads(outcome.stdout)
    assert part["row"] == 3
    assert part["base"] + sum(item["contribution"] for item in part["inputs"]) == pytest.approx(part["score"])
    assert part["feature_base"] + sum(part["features"].values()) == pytest.approx(part["score"])


def test_a_query_comes_best_first(rankwell: Command, files: Path) -> None:
    dataset = library.read("test.txt")
    outcome = rankwell("explain", "model.rank", "test.txt", "--query", str(dataset.query_ids[1]), "--json")
    explained = json.loads(outcome.stdout)
    scores = library.load("model.rank").predict(dataset)
    assert [item["score"] for item in explained] == pytest.approx(sorted(scores[6:12], reverse=True))
    assert sorted(item["row"] for item in explained) == [7, 8, 9, 10, 11, 12]


def test_the_table_names_features_and_the_score(rankwell: Command, files: Path) -> None:
    outcome = rankwell("explain", "model.rank", "test.txt", "--row", "1", "--top", "2")
    assert "row 1: score" in outcome.stdout
    assert "by feature" in outcome.stdout
    assert "2 others" in outcome.stdout


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "give the documents to explain"),
        (["--row", "1", "--query", "1"], "give the documents to explain"),
        (["--row", "0"], "--row must be between 1 and 48"),
        (["--query", "nothing"], "no such query"),
        (["--row", "1", "--top", "0"], "--top must be 1 or more"),
        (["--row", "1", "--rounds", "2"], "only a sum of trees"),
    ],
)
def test_wrong_usage(rankwell: Command, files: Path, options: list[str], complaint: str) -> None:
    outcome = rankwell("explain", "model.rank", "test.txt", *options)
    assert outcome.exit_code == 2
    assert complaint in outcome.stderr


def test_an_imported_model_gets_the_names_of_the_data(rankwell: Command, files: Path) -> None:
    names = [f"length.s{number}" for number in range(4)]
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    library.write(library.RankingDataset(rows, [0.0, 1.0], group=[2], feature_names=names), "named.txt")
    assert rankwell("import", str(GOLDEN / "xgboost.json"), "named.rank", "--features", "named.txt").exit_code == 0
    assert library.load("named.rank").description_.feature_names == tuple(names)
    outcome = rankwell("import", str(GOLDEN / "xgboost.json"), "other.rank", "--features", "test.txt")
    assert outcome.exit_code != 0
    assert "names" in outcome.stderr
    assert not Path("other.rank").exists()


@pytest.mark.parametrize("model", ["xgboost.json", "xgboost.ubj", "lightgbm.txt", "lightgbm.json"])
def test_a_model_of_another_library_is_to_be_imported_first(rankwell: Command, files: Path, model: str) -> None:
    outcome = rankwell("predict", str(GOLDEN / model), "test.txt", "--out", "out.txt")
    assert outcome.exit_code == 1
    assert f"Import it first: rankwell import {GOLDEN / model} model.rank." in outcome.stderr


def test_columns_in_another_order_are_explained_the_same(rankwell: Command, files: Path) -> None:
    pd = pytest.importorskip("pandas")
    data = library.read("train.txt")
    names = [f"feature{number}" for number in range(data.n_features)]
    frame = pd.DataFrame(data.dense_features(), columns=names)
    library.LeastSquares().fit(frame, data.labels, qid=data.qid_of_rows()).save("named.rank")
    for path, columns in (("straight.csv", names), ("turned.csv", names[::-1])):
        frame[columns].assign(label=data.labels, qid=data.qid_of_rows()).to_csv(path, index=False)
    straight, turned = (
        json.loads(rankwell("explain", "named.rank", path, "--row", "2", "--json").stdout)[0]
        for path in ("straight.csv", "turned.csv")
    )
    assert turned["features"] == pytest.approx(straight["features"])


@pytest.fixture
def served(rankwell: Command, files: Path) -> Path:
    """An index, and a ranker of its features."""
    texts = ["oil prices rise", "gas prices", "wheat and oil", "oil oil prices fall", "the price of gas"]
    Path("documents.jsonl").write_text(
        "".join(json.dumps({"id": f"d{number}", "body": text}) + "\n" for number, text in enumerate(texts))
    )
    Path("queries.tsv").write_text("1\toil prices\n2\tgas prices\n")
    Path("qrels").write_text("1 0 d0 2\n1 0 d2 0\n1 0 d3 1\n2 0 d1 2\n2 0 d0 0\n")
    for command in (
        "index build documents.jsonl --out idx",
        "features idx queries.tsv qrels --out features.txt",
        "train least-squares features.txt --out live.rank",
    ):
        assert rankwell(*command.split()).exit_code == 0
    return files


def test_a_live_search_result(rankwell: Command, served: Path) -> None:
    outcome = rankwell("explain", "live.rank", "idx", "--query", "oil prices", "-k", "2", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    best, second = json.loads(outcome.stdout)
    assert (best["rank"], second["rank"]) == (1, 2)
    assert best["score"] >= second["score"]
    assert best["feature_base"] + sum(best["features"].values()) == pytest.approx(best["score"])
    assert best["values"].keys() == set(library.load("live.rank").feature_names_in_)
    table = rankwell("explain", "live.rank", "idx", "--query", "oil prices", "--document", second["id"]).stdout
    assert f"2. {second['id']}, by BM25 {second['first_score']:.4f}: score {second['score']:.6g}" in table
    assert "by feature" in table


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["idx"], 2, "idx is an index: give --query WORDS"),
        (["idx", "--row", "1"], 2, "idx is an index: give --query WORDS"),
        (["idx", "--query", "oil", "--document", "d1"], 1, "'d1' is not among the"),
        (["idx", "--query", "oil", "--document", "x"], 1, "there is no document 'x'"),
        (
            ["features.txt", "--query", "1", "--document", "d1"],
            2,
            "--document, --candidates, --own and --query-vectors need an index",
        ),
    ],
)
def test_wrong_usage_with_an_index(
    rankwell: Command, served: Path, arguments: list[str], code: int, complaint: str
) -> None:
    outcome = rankwell("explain", "live.rank", *arguments)
    assert outcome.exit_code == code
    assert complaint in outcome.stderr
