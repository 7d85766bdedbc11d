"""The command line on LETOR's own files: the same numbers as the library gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import rankwell as library


def test_scores_of_any_tool_are_measured_on_a_compressed_file(
    rankwell: Command, shared_data: Path, tmp_path: Path
) -> None:
    data = shared_data / "letor" / "MQ2008" / "S5.txt.gz"
    dataset = library.read(data)
    scores = dataset.to_user_order(dataset.features[:, 24].astype(np.float64))
    np.savetxt(tmp_path / "scores.txt", scores, fmt="%.9g")
    outcome = rankwell(
        *("evaluate", str(data), str(tmp_path / "scores.txt"), "--json"),
        *("--metrics", "mean_ndcg,ndcg@10,map,p@10", "--convention", "letor4"),
    )
    report = json.loads(outcome.stdout)
    expected = library.evaluate(dataset, scores, metrics="mean_ndcg,ndcg@10,map,p@10", convention="letor4")
    assert {name: figure["mean"] for name, figure in report["metrics"].items()} == expected.mean
    assert report["n_queries"] == dataset.n_queries


def test_folds_of_parts_as_letor_makes_them(rankwell: Command, shared_data: Path, tmp_path: Path) -> None:
    parts = shared_data / "letor" / "MQ2008"
    for fold in (1, 2):
        folder = tmp_path / f"Fold{fold}"
        folder.mkdir()
        for offset, part in enumerate(("train", "vali", "test")):
            (folder / f"{part}.txt.gz").symlink_to(parts / f"S{(fold - 1 + offset) % 5 + 1}.txt.gz")
    outcome = rankwell(
        *("crossval", "least-squares", str(tmp_path), "--grid", "ridge=1e-4,1e-1", "--normalize", "none"),
        *("--metric", "map", "--metrics", "map,mean_ndcg", "--convention", "letor4", "--json"),
    )
    report = json.loads(outcome.stdout)
    assert len(report["folds"]) == 2
    # RankSVM-Struct has .5284 and .4950 on these two parts in the published tables, from three times the training data.
    assert report["mean"]["map"] == pytest.approx((0.5284 + 0.4950) / 2, abs=0.02)
