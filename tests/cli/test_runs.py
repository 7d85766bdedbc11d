"""What commands measure: rankers beside the first pass, features as runs, TREC's runs and judgments."""

import json

import numpy as np
import pytest

from rankwell.data.dataset import RankingDataset
from rankwell.data.files import write


@pytest.fixture
def judged(tmp_path):
    """Data in which bm25.whole is the perfect ranking, and a scores file of the worst."""
    labels = np.tile([0.0, 1.0, 2.0, 3.0], 5)
    data = RankingDataset(
        np.stack([labels, -labels], axis=1),
        labels,
        qid=np.repeat(np.arange(5), 4),
        comments=[f"d{row}" for row in range(20)],
        feature_names=["bm25.whole", "other"],
    )
    write(data, tmp_path / "data.txt")
    (tmp_path / "worst.txt").write_text("".join(f"{-label}\n" for label in labels))
    return tmp_path


def test_train_and_evaluate_show_the_first_pass_beside_a_ranker(rankwell, judged):
    data, model = str(judged / "data.txt"), str(judged / "m.rank")
    outcome = rankwell("train", "least-squares", data, "--vali", data, "--out", model)
    header, figures = [
        next(line for line in outcome.stdout.splitlines() if start in line) for start in ("metric", "ndcg@10")
    ]
    columns = ["train", "train: bm25.whole", "validation", "validation: bm25.whole"]
    assert " ".join(header.split()) == " ".join(["metric", "convention", *columns])
    assert figures.split() == ["ndcg@10", "burges", *["1.0000"] * 4]
    assert "worse" not in outcome.stderr
    report = json.loads(rankwell("train", "least-squares", data, "--out", model, "--json").stdout)
    assert report["first_pass"]["train"]["feature"] == "bm25.whole"
    assert report["first_pass"]["train"]["metrics"]["ndcg@10"] == 1.0

    measured = rankwell("evaluate", data, str(judged / "worst.txt"), "--metrics", "ndcg@1")
    assert measured.stdout.split()[-7:] == ["ndcg@1", "burges", "0.0000", "1.0000", "5", "of", "5"]
    assert "bm25.whole" in measured.stdout
    assert "note: ndcg@1 0.0000 on" in measured.stderr
    assert "is worse than that of bm25.whole alone, 1.0000" in measured.stderr


def test_compare_takes_a_feature_as_the_baseline(rankwell, judged):
    data, worst = str(judged / "data.txt"), str(judged / "worst.txt")
    report = json.loads(rankwell("compare", data, worst, "--baseline", "bm25.whole", "--json").stdout)
    assert [run["run"] for run in report["runs"]] == ["bm25.whole", worst]
    assert report["runs"][0]["metrics"]["ndcg@10"] == 1.0
    assert report["comparisons"][0]["baseline"] == "bm25.whole"
    refused = rankwell("compare", data, worst, "--baseline", "bm25.title")
    assert refused.exit_code == 1
    assert "has no feature 'bm25.title'. Its features are: bm25.whole, other." in refused.stderr
    assert rankwell("compare", data, worst).exit_code == 2


def test_judged_documents_that_the_data_lacks_are_counted_with_their_judgments(rankwell, judged):
    data, scores = str(judged / "data.txt"), judged / "scores.txt"
    scores.write_text("".join(f"{n}\n" for n in [0, 1, 2, 3] * 5))
    lines = [f"{query} 0 d{4 * query + n} {n}\n" for query in range(5) for n in range(4)]
    (judged / "qrels").write_text("".join(lines) + "0 0 missed 1\n0 0 absent 2\n9 0 d 1\n")
    command = ("evaluate", data, str(scores), "--metrics", "map", "--convention", "trec", "--json")
    without, with_qrels = rankwell(*command), rankwell(*command, "--qrels", str(judged / "qrels"))
    assert "note: trec_eval also counts judged documents that the data lacks: --qrels" in without.stderr
    assert json.loads(without.stdout)["metrics"]["map"]["mean"] == 1.0
    assert json.loads(with_qrels.stdout)["metrics"]["map"]["mean"] == pytest.approx((3 / 5 + 4) / 5)
    assert "2 judged documents are not in the data and count as missed" in with_qrels.stderr


def test_runs_are_measured_with_judgments(rankwell, tmp_path):
    qrels, run, other = tmp_path / "qrels", tmp_path / "run", tmp_path / "other"
    qrels.write_text("1 0 a 1\n1 0 b 1\n2 0 c 1\n3 0 d 1\n")
    run.write_text("1 Q0 a 1 2.0 t\n1 Q0 x 2 1.0 t\n2 Q0 y 1 2.0 t\n2 Q0 c 2 1.0 t\n8 Q0 c 1 1.0 t\n")
    other.write_text("1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0 t\n")
    measured = rankwell("evaluate", str(qrels), str(run), "--metrics", "map", "--convention", "trec", "--json")
    assert json.loads(measured.stdout)["metrics"]["map"]["mean"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert "lacks 1 of 3 judged queries: they count as 0" in measured.stderr
    assert "1 of 3 queries of" in measured.stderr
    options = ("--metrics", "map", "--convention", "trec", "--json")
    compared = rankwell("compare", str(qrels), str(run), str(other), *options)
    means = [one["metrics"]["map"] for one in json.loads(compared.stdout)["runs"]]
    assert means == pytest.approx([1 / 3, 1 / 3])
    refused = rankwell("evaluate", str(qrels), str(qrels))
    assert "must be: query Q0 document rank score tag" in refused.stderr
    assert rankwell("evaluate", str(qrels), str(run), "--qrels", str(qrels)).exit_code == 2


def test_runs_are_measured_with_data_that_names_documents(rankwell, tmp_path):
    """By the data's labels; a document that the run lacks is missed, and one that the data lacks is not relevant."""
    data, run, scores = tmp_path / "data.txt", tmp_path / "run", tmp_path / "scores"
    data.write_text("1 qid:1 1:2 #a\n1 qid:1 1:3 #b\n0 qid:1 1:1 #c\n1 qid:2 1:1 #a\n0 qid:2 1:2 #b\n")
    run.write_text("1 Q0 x 1 3.0 t\n1 Q0 a 2 2.0 t\n2 Q0 a 1 1.0 t\n9 Q0 a 1 1.0 t\n")
    options = ("--metrics", "map", "--convention", "trec", "--json")
    measured = rankwell("evaluate", str(data), str(run), *options)
    assert json.loads(measured.stdout)["metrics"]["map"]["mean"] == pytest.approx((1 / 2 / 2 + 1) / 2)
    assert "documents that" in measured.stderr
    scores.write_text("1\n2\n3\n1\n2\n")
    compared = rankwell("compare", str(data), str(run), str(scores), *options)
    means = [one["metrics"]["map"] for one in json.loads(compared.stdout)["runs"]]
    assert means == pytest.approx([(1 / 2 / 2 + 1) / 2, ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 2])
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    refused = rankwell("evaluate", str(data), str(run), "--qrels", str(tmp_path / "qrels"))
    assert "measure it without the data, rankwell evaluate" in refused.stderr
    data.write_text("1 qid:1 1:2\n")
    assert "row 1 has no id" in rankwell("evaluate", str(data), str(run)).stderr


def test_data_as_judgments_and_predictions_as_a_run(rankwell, judged):
    """As many figures as the data itself has, by the files that any tool of TREC's reads."""
    data, model, qrels, run = (str(judged / name) for name in ("data.txt", "m.rank", "data.qrels", "run.txt"))
    rankwell("train", "least-squares", data, "--out", model)
    assert rankwell("convert", data, qrels).exit_code == 0
    assert rankwell("predict", model, data, "--out", run, "--trec").exit_code == 0
    assert (judged / "data.qrels").read_text().splitlines()[:2] == ["0 0 d0 0", "0 0 d1 1"]
    assert [line.split()[:4] for line in (judged / "run.txt").read_text().splitlines()[:2]] == [
        ["0", "Q0", "d3", "1"],
        ["0", "Q0", "d2", "2"],
    ]
    options = ("--metrics", "ndcg@10,map", "--convention", "letor4", "--json")
    of_files = json.loads(rankwell("evaluate", qrels, run, *options).stdout)["metrics"]
    assert of_files == json.loads(rankwell("evaluate", data, model, *options).stdout)["metrics"]
    (judged / "nameless.txt").write_text("1 qid:1 1:2 2:1 # a\n0 qid:1 1:1 2:1\n")
    refused = rankwell("convert", str(judged / "nameless.txt"), qrels)
    assert refused.exit_code == 1
    assert "row 2 has no id" in refused.stderr
