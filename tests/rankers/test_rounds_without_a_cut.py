"""Rounds whose random parts give no cut: a tree of one leaf, and training goes on."""

from __future__ import annotations

import numpy as np
import pytest

import rankwell
from rankwell import LambdaMART, RankingDataset
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.rankers import tree_rounds
from rankwell.scoring.imports.import_choices import ImportChoices
from rankwell.scoring.imports.reader import import_model

N_ROUNDS = 30


def few_judged(seed=0, n_judged=2) -> RankingDataset:
    """Of 30 queries, only `n_judged` have labels that differ."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(600, 5)).astype(np.float32)
    labels = np.clip((X[:, 0] + 0.5 * X[:, 1] * X[:, 2]).round() + 1, 0, 4)
    return RankingDataset(X, np.where(np.arange(600) < 20 * n_judged, labels, 0.0), group=[20] * 30)


def small(**parameters) -> LambdaMART:
    return LambdaMART(**({"n_rounds": N_ROUNDS, "min_docs_leaf": 5, "n_leaves": 5} | parameters))


def squares(labels, scores, query_ptr):
    return scores - labels, np.ones(len(labels))


RANDOM = {
    "queries": {"query_fraction": 0.3},
    "documents": {"document_fraction": 0.02},
    "features by leaf": {"node_feature_fraction": 0.1},
    "features by leaf, levels": {"node_feature_fraction": 0.1, "growth": "symmetric", "n_leaves": 4},
    "noise": {"noise": 0.3, "query_fraction": 0.3},
    "xendcg": {"loss": "xendcg", "document_fraction": 0.02},
    "a loss of one's own": {"loss": squares, "document_fraction": 0.02},
    "seeds": {"n_seeds": 4},
}


@pytest.mark.parametrize("random", RANDOM.values(), ids=RANDOM)
def test_training_goes_on(random, caplog):
    data = few_judged()
    ranker = small(**random).fit(data)
    seeds = random.get("n_seeds", 1)
    sizes = np.diff(ranker.trees_.node_ptr)
    assert len(sizes) == seeds * N_ROUNDS
    empty = np.flatnonzero(sizes == 0)
    assert len(empty) > 0
    # Trees with a cut come after those without.
    assert sizes[empty[0] :].any()
    assert not ranker.trees_.leaf_value[ranker.trees_.leaf_ptr[empty]].any()
    assert len(ranker.history_["leaves"]) == N_ROUNDS
    assert "stopped" not in caplog.text
    assert "no tree" not in caplog.text


@pytest.mark.parametrize("together", [True, False])
def test_what_a_model_is_used_for(together, monkeypatch, tmp_path):
    if not together:
        monkeypatch.setattr(tree_rounds, "_FEW_DOCS", 0)
    train, validation = few_judged(), few_judged(1, n_judged=20)
    ranker = small(n_rounds=60, early_stopping_rounds=20, **RANDOM["features by leaf"]).fit(train, eval_set=validation)
    best = ranker.best_iteration_
    sizes = np.diff(ranker.trees_.node_ptr)
    assert 0 < (sizes == 0).sum() < len(sizes) == best
    assert ranker.best_score_ == ranker.score(validation)
    scores = ranker.predict(validation)
    staged = list(ranker.staged_predict(validation))
    assert len(staged) == best
    np.testing.assert_array_equal(staged[-1], scores)
    np.testing.assert_array_equal(staged[best // 2 - 1], ranker.predict(validation, n_rounds=best // 2))
    np.testing.assert_allclose(ranker.contributions(validation).sum(axis=1), scores, atol=1e-12)
    assert ranker.importances("split").sum() == sizes.sum()
    ranker.save(tmp_path / "model.rank")
    np.testing.assert_array_equal(rankwell.load(tmp_path / "model.rank").predict(validation), scores)


@pytest.mark.parametrize("to", ["lightgbm", "ranklib", "onnx"])
@pytest.mark.parametrize("growth", ["leaf", "symmetric"])
def test_it_is_exported(to, growth, tmp_path):
    if to == "onnx":
        pytest.importorskip("onnx")
    data = few_judged()
    ranker = small(growth=growth, n_leaves=4, **RANDOM["features by leaf"]).fit(data)
    rankwell.export(ranker, tmp_path / "model", to=to)
    again = import_model(tmp_path / "model", ImportChoices(n_features=5))
    np.testing.assert_allclose(
        rankwell.scoring.scorer.score_description(again, data), ranker.predict(data), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("random", [RANDOM["queries"], RANDOM["seeds"]], ids=["queries", "seeds"])
def test_a_killed_run_continues_to_the_same_bytes(random, tmp_path):
    data, path = few_judged(), str(tmp_path / "run.checkpoint")
    whole = small(**random).fit(data)

    class KilledError(Exception):
        pass

    def kill(step):
        if step.number == 23:
            raise KilledError

    with pytest.raises(KilledError):
        small(**random, checkpoint=path, checkpoint_every=5).fit(data, callback=kill)
    resumed = small(**random, checkpoint=path, checkpoint_every=5).fit(data)
    for ranker in (whole, resumed):
        ranker.set_params(checkpoint=None, checkpoint_every=1).save(tmp_path / f"{ranker is whole}.rank")
    assert (tmp_path / "True.rank").read_bytes() == (tmp_path / "False.rank").read_bytes()


def test_rounds_grown_together_are_those_grown_one_by_one(monkeypatch):
    data = few_judged()
    together = small(**RANDOM["features by leaf"]).fit(data)
    monkeypatch.setattr(CpuTreeBooster, "_is_grown_in_rounds", lambda booster: False)
    alone = small(**RANDOM["features by leaf"]).fit(data)
    np.testing.assert_array_equal(together.trees_.node_ptr, alone.trees_.node_ptr)
    np.testing.assert_array_equal(together.predict(data), alone.predict(data))


def test_training_ends_where_nothing_is_random(caplog):
    """Least squares of so few values are met exactly, and then there is nothing to gain."""
    X = np.repeat([[0.0], [1.0]], 20, axis=0).astype(np.float32)
    data = RankingDataset(X, X[:, 0] - 0.5, group=[10, 20, 10])
    ranker = LambdaMART(n_rounds=20, learning_rate=1.0, loss=squares, min_docs_leaf=1).fit(data)
    assert 1 <= len(ranker.trees_) < 20
    assert f"stopped after round {len(ranker.trees_)} of 20: no allowed cut gains anything any more." in caplog.text


def test_a_model_without_any_cut_is_said(caplog):
    ranker = small(min_docs_leaf=10_000, query_fraction=0.5).fit(few_judged())
    assert "no tree could be grown" in caplog.text
    assert not ranker.predict(few_judged()).any()
