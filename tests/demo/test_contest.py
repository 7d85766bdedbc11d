"""The contest on synthetic data: what is kept, and that another process can prepare it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rankwell
from rankwell.data.dataset import RankingDataset
from rankwell.data.scores import read_scores
from rankwell.demo import contest, lightgbm_model, preparation
from rankwell.demo.candidates import missed_grades
from rankwell.demo.contest import Part, first_pass_entry, lightgbm_entry, ranker_entry


@pytest.fixture(scope="module")
def part() -> Part:
    return preparation._made_up_part()


def test_the_first_pass(part: Part, tmp_path: Path) -> None:
    entry = first_pass_entry(part, tmp_path)
    assert entry.seconds is None
    np.testing.assert_array_equal(read_scores(tmp_path / "bm25.scores"), part.first_scores)
    same = entry.against(entry)
    assert (same.difference, same.fisher_p) == (0.0, 1.0)


def test_a_ranker_is_kept_and_better(part: Part, tmp_path: Path) -> None:
    shuffled = Part(part.candidates, np.random.default_rng(1).random(part.candidates.n_docs), part.missed)
    chance = first_pass_entry(shuffled, tmp_path)
    entry = ranker_entry("least-squares", {"train": part, "vali": part, "test": part}, tmp_path)
    assert entry.seconds is not None
    assert entry.against(chance).fisher_p < 0.01
    again = rankwell.load(tmp_path / "least-squares.rank")
    kept = part.evaluate(again.predict(part.candidates))
    for metric in contest.METRICS:
        assert kept[metric].mean[metric] == entry.evaluations[metric].mean[metric] == again.metrics_["test"][metric]


@pytest.mark.skipif(not lightgbm_model.IS_INSTALLED, reason="LightGBM is not installed (the extra `rivals`)")
def test_lightgbm_is_served_by_us(part: Part, tmp_path: Path) -> None:
    import lightgbm

    lightgbm_entry({"train": part, "vali": part, "test": part}, tmp_path)
    theirs = lightgbm.Booster(model_file=tmp_path / "lightgbm.txt").predict(part.candidates.features)
    ours = rankwell.load(tmp_path / "lightgbm.rank").predict(part.candidates)
    assert np.ptp(ours) > 0
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_grades_that_were_missed() -> None:
    candidates = RankingDataset(np.zeros((3, 1)), [2, 0, 0], qid=[4, 4, 6], comments=["a", "b", "a"])
    judgments = {"4": {"a": 2.0, "c": 1.0}, "6": {"b": 2.0}, "8": {"a": 2.0}}
    assert missed_grades(candidates, judgments) == {4: [1.0], 6: [2.0], 8: [2.0]}


def test_preparation_holds_the_contest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "IS_INSTALLED", False)
    held = []
    monkeypatch.setattr(
        preparation, "ranker_entry", lambda name, *more: held.append(name) or first_pass_entry(*_of(more))
    )
    preparation.prepare()
    assert held == list(contest.SETTINGS)


def _of(arguments: tuple[dict[str, Part], Path]) -> tuple[Part, Path]:
    parts, folder = arguments
    return parts["test"], folder
