"""`rankwell clicks`: judgments, and training data with a feature log."""

import json

import numpy as np
import pytest

from rankwell.clicks import UseLog
from rankwell.data.files import read
from rankwell.features.feature_set import FeatureSet
from rankwell.features.qrels import read_qrels
from rankwell.serving.ranking.feature_log import FeatureLog


@pytest.fixture
def use_log(tmp_path):
    path = tmp_path / "use.jsonl"
    with UseLog(path) as log:
        for order, clicked, times in (("ab", "a", 8), ("ab", "", 2), ("ba", "a", 2), ("ba", "", 3)):
            for _ in range(times):
                shown = log.add_shown("q 1", list(order))
                for document in clicked:
                    log.add_click(shown, document)
    return path


def test_training_data_with_a_feature_log(rankwell, tmp_path, use_log):
    with FeatureLog(tmp_path / "features.log", FeatureSet(["bm25.title", "static.age"])) as log:
        log.append("q 1", ["a", "b"], np.array([[1, 2], [3, 4]], np.float32))
    outcome = rankwell(
        "clicks", str(use_log), "--from-log", str(tmp_path / "features.log"), "--out", str(tmp_path / "train.parquet")
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert "2 documents of 1 queries, from 10 clicks on 15 result pages" in outcome.stderr
    assert [line.split() for line in outcome.stdout.splitlines() if "estimated" in line] == [
        ["1", "1.0000", "estimated"],
        ["2", "0.5000", "estimated"],
    ]
    dataset = read(tmp_path / "train.parquet")
    assert dataset.labels.tolist() == [2.0, 0.0]
    assert dataset.features.tolist() == [[1, 2], [3, 4]]


def test_judgments_need_ids_without_blanks(rankwell, tmp_path, use_log):
    outcome = rankwell("clicks", str(use_log), "--out", str(tmp_path / "qrels.txt"))
    assert outcome.exit_code == 1
    assert "use.jsonl, line 1 has a query that no judgment can name" in outcome.stderr
    assert "the id 'q 1' must not be empty or contain one" in outcome.stderr
    assert "Correct the line, or pass --skip-bad-lines to leave such lines out." in outcome.stderr
    use_log.write_text(use_log.read_text().replace("q 1", "q1"))
    assert rankwell("clicks", str(use_log), "--out", str(tmp_path / "qrels.txt")).exit_code == 0
    assert read_qrels(tmp_path / "qrels.txt") == {"q1": {"a": 2.0, "b": 0.0}}


def test_clicks_without_their_impressions(rankwell, tmp_path, use_log):
    """As after the log was rotated: the first clicks belong to results that an older log has."""
    good = use_log.read_text().replace("q 1", "q1")
    use_log.write_text('{"clicked": "older", "document": "a"}\n' + good + '{"clicked": "older", "document": "b"}\n')
    out = tmp_path / "qrels.txt"
    outcome = rankwell("clicks", str(use_log), "--out", str(out))
    assert outcome.exit_code == 1
    assert "line 1 is a click on 'a', which was not shown in 'older' before" in outcome.stderr
    assert "--skip-bad-lines" in outcome.stderr
    assert not out.exists()
    outcome = rankwell("clicks", str(use_log), "--out", str(out), "--skip-bad-lines")
    assert outcome.exit_code == 0, outcome.stderr
    assert "2 bad lines were left out; the first is" in outcome.stderr
    assert read_qrels(out) == {"q1": {"a": 2.0, "b": 0.0}}


def test_a_known_bias_as_json(rankwell, tmp_path, use_log):
    use_log.write_text(use_log.read_text().replace("q 1", "q1"))
    outcome = rankwell(
        "clicks", str(use_log), "--eta", "1", "--grades", "0", "--json", "--out", str(tmp_path / "qrels")
    )
    assert json.loads(outcome.stdout) == {"examination": [1.0, 0.5], "estimated": [False, False]}
    # a: 10 clicks by 10·1 + 5·½ examinations, and one more at the mean, 10 by 22.5.
    assert read_qrels(tmp_path / "qrels")["q1"]["a"] == pytest.approx((10 + 10 / 22.5) / 13.5, rel=1e-5)


def test_a_log_that_says_nothing_about_positions(rankwell, tmp_path):
    with UseLog(tmp_path / "use.jsonl") as log:
        log.add_click(log.add_shown("q", ["a", "b"]), "a")
    outcome = rankwell("clicks", str(tmp_path / "use.jsonl"), "--out", str(tmp_path / "qrels"))
    assert outcome.exit_code == 1
    assert "position bias cannot be estimated" in outcome.stderr
    assert "results whose neighbours were exchanged at random" in outcome.stderr
    assert "or take a bias that you assume, --eta 1: position p is examined 1/p times" in outcome.stderr
    assert not (tmp_path / "qrels").exists()
