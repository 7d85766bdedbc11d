"""How rows were chosen, kept by every format that can."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from rankwell import LeastSquares, RankingDataset, read, write
from rankwell.data.candidates import Candidates
from rankwell.data.files import convert

NOTED = Candidates("judged+top", 100, 2, "bm25.whole")


def dataset(n_features: int = 2) -> RankingDataset:
    features = np.arange(3 * n_features, dtype=np.float32).reshape(3, n_features)
    names = [f"feature number {number}" for number in range(n_features)]
    made = RankingDataset(features, [0, 1, 2], qid=[1, 1, 2], feature_names=names)
    made.candidates = NOTED
    return made


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "parquet", "feather"])
@pytest.mark.parametrize("n_features", [2, 3000])
def test_written_read_and_converted(tmp_path, ending, n_features):
    write(dataset(n_features), tmp_path / f"data.{ending}")
    assert read(tmp_path / f"data.{ending}").candidates == NOTED
    again = convert(tmp_path / f"data.{ending}", tmp_path / "again.txt")
    assert again.candidates == NOTED
    assert read(tmp_path / "again.txt").candidates == NOTED


def test_text_without_names_of_features(tmp_path):
    made = dataset()
    made.feature_names = None
    write(made, tmp_path / "data.txt")
    assert (tmp_path / "data.txt").read_text().startswith('# candidates: {"source": "judged+top"')
    assert read(tmp_path / "data.txt").candidates == NOTED


@pytest.mark.parametrize(
    "line",
    [
        "# candidates: {",
        "# candidates: {}",
        '# candidates: {"source": 1, "depth": 1, "outside": 1}',
        '# candidates: {"source": "top", "depth": 1.5, "outside": 0}',
        '# candidates: {"source": "top", "depth": true, "outside": 0}',
        "# candidates: {" + "[" * 5000,
        "# something else",
    ],
)
def test_comments_that_say_nothing_of_it(tmp_path, line):
    (tmp_path / "data.txt").write_text(f"{line}\n1 qid:1 1:2\n")
    assert read(tmp_path / "data.txt").candidates is None


def test_training_on_such_rows_is_warned_of_once(caplog):
    made = dataset()
    made.candidates = Candidates("judged+top", 100, 2)
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        LeastSquares().fit(made)
        LeastSquares().fit(made)
    assert [record.getMessage()[:26] for record in caplog.records] == ["2 rows of the training dat"]


def test_nothing_is_said_where_all_rows_were_found(caplog):
    made = dataset()
    made.candidates = Candidates("top", 100, 0)
    LeastSquares().fit(made)
    assert not caplog.records


def test_a_part_is_not_described_by_the_counts_of_the_whole():
    assert dataset().subset([0]).candidates is None
