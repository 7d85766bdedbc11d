"""What every ranker that is trained step by step offers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rankwell
from rankwell import LambdaMART, LambdaRank, ListNet, RankBoost, RankingDataset, RankSVM
from rankwell.data.synthetic import make_ranking
from rankwell.errors import DataError, NotFittedError

RANKERS = {
    "rankboost": lambda **options: RankBoost(n_rounds=30, device="cpu", **options),
    "lambdamart": lambda **options: LambdaMART(n_rounds=20, n_leaves=6, **options),
    "ranksvm": lambda **options: RankSVM(C=10.0, tol=1e-9, device="cpu", **options),
    "listnet": lambda **options: ListNet(n_epochs=8, device="cpu", **options),
    "lambdarank": lambda **options: LambdaRank(n_epochs=8, device="cpu", **options),
}


@pytest.fixture(scope="module")
def collection():
    whole = make_ranking(n_docs=1200, n_queries=30, n_features=8, random_state=6)
    return whole.subset(range(20)), whole.subset(range(20, 30))


@pytest.fixture(scope="module", params=RANKERS)
def make(request):
    return RANKERS[request.param]


def test_every_figure_has_a_value_for_every_step(make, collection):
    ranker = make().fit(collection[0], eval_set=collection[1])
    lengths = {name: len(values) for name, values in ranker.history_.items()}
    assert {"validation ndcg@10", "seconds"} <= set(lengths)
    assert len(set(lengths.values())) == 1
    seconds = ranker.history_["seconds"]
    assert seconds[0] > 0
    assert all(later > earlier for earlier, later in itertools.pairwise(seconds))


def test_the_best_step_and_its_figure(make, collection, tmp_path):
    ranker = make().fit(collection[0], eval_set=collection[1])
    figures = ranker.history_["validation ndcg@10"]
    assert ranker.best_iteration_ == 1 + int(np.argmax(figures))
    assert ranker.best_score_ == max(figures)
    ranker.save(tmp_path / "model.rank")
    loaded = rankwell.load(tmp_path / "model.rank")
    assert (loaded.best_iteration_, loaded.best_score_) == (ranker.best_iteration_, ranker.best_score_)


def test_with_early_stopping_the_best_step_is_what_is_kept(make, collection):
    train, validation = collection
    ranker = make(early_stopping_rounds=2).fit(train, eval_set=validation)
    assert len(ranker.history_["seconds"]) <= ranker.best_iteration_ + 2
    found = rankwell.evaluate(validation, ranker.predict(validation), metrics=("ndcg@10",)).mean["ndcg@10"]
    assert found == pytest.approx(ranker.best_score_, abs=1e-6)


def test_without_a_validation_set_no_step_is_best(make, collection):
    ranker = make().fit(collection[0])
    assert ranker.best_iteration_ is None
    assert ranker.best_score_ is None


def test_before_training_there_is_nothing_to_know(make):
    for attribute in ("best_iteration_", "best_score_"):
        with pytest.raises(NotFittedError, match="not trained yet"):
            getattr(make(), attribute)


def test_the_file_does_not_hold_the_time_and_is_the_same_every_time(make, collection, tmp_path):
    contents = []
    for name in ("one.rank", "two.rank"):
        make().fit(collection[0], eval_set=collection[1]).save(tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert "seconds" not in rankwell.load(tmp_path / "one.rank").history_


def test_a_callback_that_returns_true_ends_training(make, collection):
    seen = []

    def third(step):
        seen.append(step.number)
        return len(seen) == 3

    ranker = make().fit(collection[0], callback=third)
    assert seen == [1, 2, 3]
    assert {len(values) for values in ranker.history_.values()} == {3}
    assert np.isfinite(ranker.predict(collection[1])).all()


def test_validation_data_without_a_query_that_counts_is_refused(make, collection):
    train = collection[0]
    nothing_relevant = RankingDataset(train.features, np.zeros(train.n_docs), group=train.query_sizes)
    with pytest.raises(DataError, match="no query of eval_set counts for ndcg@10"):
        make().fit(train, eval_set=nothing_relevant)


def test_the_plot_has_no_panel_of_seconds_and_marks_the_best_step(make, collection):
    pytest.importorskip("matplotlib")
    ranker = make().fit(collection[0], eval_set=collection[1])
    panels = ranker.plot_history().axes
    labels = [panel.get_ylabel() for panel in panels]
    assert "validation ndcg@10" in labels
    assert not {"seconds", "bits", "learning rate"} & set(labels)
    assert panels[-1].get_xlabel() == f"{ranker.step_name} (best: {ranker.best_iteration_})"


def test_of_several_validation_sets_all_are_measured_and_the_last_is_watched(make, collection):
    train, validation = collection
    alone = make(early_stopping_rounds=2).fit(train, eval_set=validation)
    parts = [train.subset(range(5)), validation.subset(range(3)), validation]
    several = make(early_stopping_rounds=2).fit(train, eval_set=parts)
    assert several.history_["validation ndcg@10"] == pytest.approx(alone.history_["validation ndcg@10"], abs=1e-12)
    assert (several.best_iteration_, several.best_score_) == (alone.best_iteration_, pytest.approx(alone.best_score_))
    np.testing.assert_allclose(several.predict(validation), alone.predict(validation), atol=1e-12)
    for name, part in zip(("eval_set 1 ndcg@10", "eval_set 2 ndcg@10"), parts, strict=False):
        found = make().fit(train, eval_set=part).history_["validation ndcg@10"][: len(several.history_[name])]
        assert several.history_[name] == pytest.approx(found, abs=1e-12)


def test_several_validation_sets_as_arrays(make, collection):
    train, validation = collection
    arrays = [(part.features, part.labels) for part in (train, validation)]
    qids = [part.qid_of_rows() for part in (train, validation)]
    sizes = [part.query_sizes for part in (train, validation)]
    expected = make().fit(train, eval_set=[train, validation]).history_
    for queries in ({"eval_qid": qids}, {"eval_group": sizes}):
        history = make().fit(train, eval_set=arrays, **queries).history_
        assert history["eval_set 1 ndcg@10"] == expected["eval_set 1 ndcg@10"]
        assert history["validation ndcg@10"] == expected["validation ndcg@10"]


def first_is_relevant(labels, scores):
    return float(labels[scores.argmax()] > 0) if (labels > 0).any() else np.nan


def test_a_function_is_a_metric(make, collection, tmp_path, caplog):
    train, validation = collection
    ranker = make(eval_metric=first_is_relevant, early_stopping_rounds=3).fit(train, eval_set=validation)
    assert ranker.best_score_ == max(ranker.history_["validation first_is_relevant"])
    named = make(eval_metric="p@1", eval_convention="burges").fit(train, eval_set=validation)
    length = len(ranker.history_["seconds"])
    assert ranker.history_["validation first_is_relevant"] == pytest.approx(
        named.history_["validation p@1"][:length], abs=1e-12
    )
    ranker.save(tmp_path / "model.rank")
    assert "eval_metric is a function, which a ranker file cannot hold" in caplog.text
    loaded = rankwell.load(tmp_path / "model.rank")
    assert loaded.eval_metric == "ndcg@10"
    assert loaded.best_score_ == ranker.best_score_
    np.testing.assert_array_equal(loaded.predict(validation), ranker.predict(validation))
