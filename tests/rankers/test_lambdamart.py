"""LambdaMART as a ranker: what it learns, keeps and says."""

from __future__ import annotations

import numpy as np
import pytest

import rankwell
from rankwell import DataError, FileFormatError, LambdaMART, ParameterError, RankingDataset
from rankwell.data.synthetic import make_ranking
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.rankers import lambdamart, tree_rounds
from rankwell.scoring.explanation import explain_rows
from rankwell.scoring.reference_scores import reference_scores


@pytest.fixture(scope="module")
def collection():
    whole = make_ranking(n_docs=2400, n_queries=60, n_features=8, random_state=6)
    return whole.subset(range(40)), whole.subset(range(40, 60))


def small(**parameters) -> LambdaMART:
    return LambdaMART(**({"n_rounds": 12, "n_leaves": 6, "min_docs_leaf": 5} | parameters))


def ndcg(ranker, data) -> float:
    return rankwell.evaluate(data, ranker.predict(data), metrics=("ndcg@10",)).mean["ndcg@10"]


def interaction(n_queries=60, seed=0) -> RankingDataset:
    """The label is whether two features have the same sign: no sum of functions of one feature tells."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(20 * n_queries, 4)).astype(np.float32)
    return RankingDataset(X, (X[:, 0] * X[:, 1] > 0).astype(float), group=[20] * n_queries)


def test_it_learns_what_linear_rankers_and_stumps_cannot():
    train, test = interaction(), interaction(seed=1)
    assert ndcg(small(n_rounds=30).fit(train), test) > 0.95
    assert ndcg(rankwell.RankBoost(n_rounds=50, device="cpu").fit(train), test) < 0.75


@pytest.mark.parametrize("loss", ["lambdarank", "lambdaloss", "pairwise", "map", "mrr", "xendcg"])
def test_every_loss_learns(loss, collection):
    train, test = collection
    untrained = rankwell.evaluate(test, np.zeros(test.n_docs), metrics=("ndcg@10",)).mean["ndcg@10"]
    assert ndcg(small(loss=loss).fit(train), test) > untrained + 0.1


def squares(labels, scores, query_ptr):
    """Least squares, as a user would write it."""
    return scores - labels, np.ones(len(labels))


def test_a_loss_of_the_user(collection, tmp_path, caplog):
    train, test = collection
    ranker = small(loss=squares, n_rounds=1, n_leaves=2, learning_rate=1.0).fit(train)
    # The mean label of each leaf.
    scores = ranker.predict(train)
    for value in np.unique(scores):
        assert value == pytest.approx(train.labels[scores == value].mean(), rel=1e-5)
    ranker.save(tmp_path / "own.rank")
    assert "loss is a function" in caplog.text
    np.testing.assert_array_equal(rankwell.load(tmp_path / "own.rank").predict(test), ranker.predict(test))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda labels, scores, query_ptr: scores, "must return two arrays"),
        (lambda labels, scores, query_ptr: (scores[1:], scores), r"gradient must have one number per row"),
        (lambda labels, scores, query_ptr: (scores + np.nan, scores), "gradient has values that are not finite"),
        (lambda labels, scores, query_ptr: (labels, labels - 9), "Hessian has values below 0"),
        (lambda labels, scores, query_ptr: [labels, labels], r"as a tuple; got list\."),
        (lambda labels, scores, query_ptr: ("a", "b"), r"the loss's gradient must be an array of numbers, got 'a'\."),
    ],
)
def test_a_wrong_loss_of_the_user(loss, said, collection):
    with pytest.raises(DataError, match=said):
        small(loss=loss).fit(collection[0])


def test_a_loss_of_two_arguments_is_refused(collection):
    with pytest.raises(ParameterError, match=r"loss must be a function of three arguments, .* got one of \(y, pred\)"):
        small(loss=lambda y, pred: (pred - y, np.ones(len(y)))).fit(collection[0])


@pytest.mark.parametrize("changed", ["labels", "scores", "query_ptr"])
def test_a_loss_of_the_user_cannot_change_what_it_reads(changed, collection):
    train = collection[0]

    def loss(labels, scores, query_ptr):
        given = {"labels": labels, "scores": scores, "query_ptr": query_ptr}
        given[changed] -= 1
        return scores - labels, np.ones(len(labels))

    before = train.labels.copy(), train.query_ptr.copy()
    with pytest.raises(ValueError, match="read-only"):
        small(loss=loss).fit(train)
    np.testing.assert_array_equal(train.labels, before[0])
    np.testing.assert_array_equal(train.query_ptr, before[1])


@pytest.mark.parametrize("name", ["loss", "eval_metric"])
def test_a_checkpoint_of_another_function_is_refused(name, collection, tmp_path):
    train, test = collection
    functions = {
        "loss": [
            lambda labels, scores, ptr: (scores - labels, labels + 1),
            lambda labels, scores, ptr: (-labels, labels),
        ],
        "eval_metric": [lambda labels, scores: 1.0, lambda labels, scores: 2.0],
    }[name]

    class KilledError(Exception):
        pass

    def fit(function, callback=None):
        options = {"n_rounds": 3, "checkpoint": tmp_path / "run", "checkpoint_every": 1, name: function}
        small(**options).fit(train, eval_set=test, callback=callback)

    # The checkpoint is written after a step's callback.
    steps = iter([None, KilledError])

    def kill_second(step):
        if next(steps) is KilledError:
            raise KilledError

    with pytest.raises(KilledError):
        fit(functions[0], kill_second)
    with pytest.raises(ParameterError, match="belongs to another run"):
        fit(functions[1])
    fit(functions[0])


def test_weights_multiply_the_gradients_of_a_users_loss(collection):
    train, _ = collection
    weights = np.random.default_rng(0).random(train.n_docs)
    one = small(loss=squares, n_rounds=3).fit(train.replace(document_weights=weights))

    def weighted(labels, scores, query_ptr):
        return weights * (scores - labels), weights

    np.testing.assert_array_equal(one.predict(train), small(loss=weighted, n_rounds=3).fit(train).predict(train))


def test_the_loss_is_chosen_on_validation_data(collection, tmp_path):
    train, test = collection
    chosen = small(loss="auto").fit(train, eval_set=test)
    figures = {loss: small(loss=loss).fit(train, eval_set=test).best_score_ for loss in ("lambdarank", "xendcg")}
    assert chosen.best_score_ == max(figures.values())
    assert figures[chosen.chosen_["loss"]] == max(figures.values())
    chosen.save(tmp_path / "auto.rank")
    assert rankwell.load(tmp_path / "auto.rank").chosen_ == chosen.chosen_
    assert small().settled([chosen, chosen], 0.5).loss == chosen.chosen_["loss"]
    assert small(loss="auto").fit(train).chosen_ == {"loss": "lambdarank"}


@pytest.mark.parametrize("parameters", [{"noise": 0.3}, {"loss": "xendcg"}])
def test_random_losses_depend_on_the_seed_only(parameters, collection):
    train, test = collection
    first, again, other = (
        small(random_state=seed, n_jobs=n_jobs, **parameters).fit(train).predict(test)
        for seed, n_jobs in ((0, 1), (0, 2), (1, 1))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    "parameters",
    [
        {"query_fraction": 0.5},
        {"document_fraction": 0.5},
        {"feature_fraction": 0.5},
        {"node_feature_fraction": 0.5},
        {"query_fraction": 0.6, "n_seeds": 3},
        {"loss": "xendcg", "n_seeds": 2},
    ],
)
def test_fractions_and_seeds(parameters, collection, tmp_path):
    train, test = collection
    whole = small(**parameters).fit(train, eval_set=test)
    assert ndcg(whole, test) > ndcg(small(n_rounds=1).fit(train), test) - 0.05
    again = small(n_jobs=2, **parameters).fit(train, eval_set=test)
    np.testing.assert_array_equal(again.predict(test), whole.predict(test))
    assert not np.array_equal(small(random_state=1, **parameters).fit(train).predict(test), whole.predict(test))
    whole.save(tmp_path / "model.rank")
    loaded = rankwell.load(tmp_path / "model.rank")
    np.testing.assert_array_equal(loaded.predict(test), whole.predict(test))
    assert loaded.description_.n_rounds == whole.best_iteration_


def test_rounds_are_grown_many_at_a_time(collection, monkeypatch):
    train, test = collection
    asked, grow = [], CpuTreeBooster.boost_rounds

    def boost_rounds(booster, first, n_rounds):
        asked.append((first, n_rounds))
        return grow(booster, first, n_rounds)

    monkeypatch.setattr(CpuTreeBooster, "boost_rounds", boost_rounds)
    small(n_rounds=40, early_stopping_rounds=None, device="cpu").fit(train, eval_set=test)
    assert len(asked) < 40
    assert [number for first, n_rounds in asked for number in range(first, first + n_rounds)] == list(range(40))


@pytest.mark.parametrize("n_seeds", [1, 2])
@pytest.mark.parametrize("metric", ["ndcg@10", lambda labels, scores: float(labels[np.argmax(scores)])])
def test_rounds_measured_together_have_the_figures_of_one_after_another(n_seeds, metric, collection, monkeypatch):
    train, validation = collection

    def figures() -> list[float]:
        ranker = small(n_rounds=20, n_seeds=n_seeds, feature_fraction=0.7, eval_metric=metric)
        history = ranker.fit(train, eval_set=validation).history_
        return next(values for name, values in history.items() if name.startswith("validation"))

    together = figures()
    monkeypatch.setattr(tree_rounds, "_FEW_DOCS", 0)
    assert figures() == together
    assert len(set(together)) > 1


def test_several_seeds_are_the_mean_of_models(collection):
    train, test = collection
    joint = small(loss="xendcg", n_seeds=2, early_stopping_rounds=None).fit(train, eval_set=test)
    seeds = (0, lambdamart._SEED_STEP)
    alone = [small(loss="xendcg", random_state=seed).fit(train).predict(test) for seed in seeds]
    np.testing.assert_allclose(joint.predict(test), np.mean(alone, axis=0), atol=1e-12)
    assert joint.history_["validation ndcg@10"][-1] == pytest.approx(ndcg(joint, test), abs=1e-9)
    stages = list(joint.staged_predict(test))
    assert len(stages) == 12
    np.testing.assert_allclose(stages[4], joint.predict(test, n_rounds=5), atol=1e-12)
    more = small(loss="xendcg", n_seeds=2, n_rounds=2).fit(train, init_model=joint)
    assert len(more.trees_) == 28
    with pytest.raises(ParameterError, match="init_model has 2 trees in a round, and n_seeds is 1"):
        small().fit(train, init_model=joint)


def test_several_seeds_alone_draw_queries(collection, tmp_path, caplog):
    train, test = collection
    with caplog.at_level("INFO", logger="rankwell"):
        ranker = small(n_seeds=2).fit(train)
    said = "n_seeds=2: each tree is grown on 70 % of the queries, so that seeds differ (query_fraction=0.7)."
    assert [record.getMessage() for record in caplog.records].count(said) == 1
    assert ranker.chosen_ == {"query_fraction": 0.7}
    explicit = small(n_seeds=2, query_fraction=0.7).fit(train)
    np.testing.assert_array_equal(ranker.predict(test), explicit.predict(test))
    assert explicit.chosen_ == {}
    ranker.save(tmp_path / "seeds.rank")
    loaded = rankwell.load(tmp_path / "seeds.rank")
    assert loaded.chosen_ == {"query_fraction": 0.7}
    loaded.fit(train).save(tmp_path / "again.rank")
    assert (tmp_path / "again.rank").read_bytes() == (tmp_path / "seeds.rank").read_bytes()


@pytest.mark.parametrize(
    "random",
    [{"n_seeds": 1}, {"feature_fraction": 0.7}, {"noise": 0.3}, {"loss": "xendcg"}, {"query_fraction": 0.5}],
)
def test_queries_are_not_drawn_where_something_else_is_random(random, collection):
    assert small(**{"n_seeds": 2, "n_rounds": 1, **random}).fit(collection[0]).chosen_ == {}


def test_seeds_of_an_automatic_loss_draw_queries(collection):
    """Whichever loss is chosen: training again with it draws as many."""
    train, test = collection
    ranker = small(n_seeds=2, n_rounds=2, loss="auto")
    ranker.fit(train, eval_set=test)
    assert ranker.chosen_["query_fraction"] == 0.7
    settled = ranker.settled([ranker], 1.0)
    assert (settled.query_fraction, settled.loss) == (0.7, ranker.chosen_["loss"])


def test_predictions_are_those_of_the_description_and_of_the_training(collection):
    """The training's own scores, added up on bins, are those of the model on the numbers themselves."""
    train, test = collection
    ranker = small(early_stopping_rounds=None).fit(train, eval_set=test)
    rows = test.features[:50]
    np.testing.assert_allclose(
        ranker.predict(rows, group=[50]), reference_scores(ranker.description_, rows), rtol=1e-12, atol=1e-12
    )
    assert ranker.history_["validation ndcg@10"][-1] == pytest.approx(ndcg(ranker, test), abs=1e-9)


def test_staged_scores_and_first_rounds(collection):
    ranker = small(n_rounds=5).fit(collection[0])
    stages = list(ranker.staged_predict(collection[1]))
    assert len(stages) == 5
    for number, scores in enumerate(stages, start=1):
        np.testing.assert_allclose(scores, ranker.predict(collection[1], n_rounds=number), atol=1e-12)


def test_a_file_holds_everything(collection, tmp_path):
    train, test = collection
    ranker = small().fit(train, eval_set=test)
    ranker.save(tmp_path / "model.rank")
    loaded = rankwell.load(tmp_path / "model.rank")
    assert isinstance(loaded, LambdaMART)
    np.testing.assert_array_equal(loaded.predict(test), ranker.predict(test))
    for kind in ("gain", "split"):
        np.testing.assert_array_equal(loaded.importances(kind), ranker.importances(kind))
    assert loaded.importances("split").sum() == len(loaded.trees_.column)
    assert loaded.get_params() == ranker.get_params()


def test_the_same_bytes_on_any_number_of_threads(collection, tmp_path):
    # Large enough for a team.
    data = make_ranking(n_docs=40_000, n_queries=400, n_features=9, random_state=1)
    for n_jobs in (1, 2):
        LambdaMART(n_rounds=3, n_jobs=n_jobs).fit(data).set_params(n_jobs=None).save(tmp_path / f"{n_jobs}.rank")
    assert (tmp_path / "1.rank").read_bytes() == (tmp_path / "2.rank").read_bytes()


def test_importance_is_of_what_decides():
    ranker = small(n_rounds=20).fit(interaction())
    for kind in ("gain", "split"):
        importances = ranker.importances(kind)
        assert set(np.argsort(-importances)[:2]) == {0, 1}
    np.testing.assert_array_equal(ranker.feature_importances_, ranker.importances("gain"))
    np.testing.assert_array_equal(
        ranker.set_params(importance="split").feature_importances_, ranker.importances("split")
    )


def test_missing_values_go_where_they_help():
    """The relevant documents are those without a value: the others have any."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 2)).astype(np.float32)
    y = (generator.random(600) < 0.3).astype(float)
    X[y == 1, 0] = np.nan
    data = RankingDataset(X, y, group=[20] * 30)
    assert ndcg(small(n_rounds=3).fit(data), data) > 0.999


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_a_missing_value_that_training_had_not_goes_to_the_heavier_side(common):
    """A second feature decides half of the labels, so that most pairs are between documents of the common value."""
    generator = np.random.default_rng(0)
    rare = generator.random(400) < 0.1
    X = np.where(rare, 1.0 - common, common).reshape(-1, 1)
    ranker = small(n_rounds=1, n_leaves=2, loss="pairwise").fit(
        X, generator.random(400) < 0.5 + 0.3 * rare, group=[20] * 20
    )
    assert len(ranker.trees_.column) == 1
    common_row, missing_row = np.array([[common]]), np.array([[np.nan]])
    assert ranker.predict(missing_row, group=[1]) == ranker.predict(common_row, group=[1])


def test_weight_two_is_the_query_twice():
    """With `min_docs_leaf` 1, since two queries have more documents than one of twice the weight."""
    data = make_ranking(n_docs=400, n_queries=20, n_features=5, random_state=2)
    data = data.replace(
        features=np.round(2 * data.features)
    )  # few values: the bins do not depend on how many have them
    weights = np.ones(20)
    weights[:5] = 2.0
    heavy = small(min_docs_leaf=1).fit(data.replace(query_weights=weights))
    twice = small(min_docs_leaf=1).fit(data.joined(data.subset(range(5))))
    np.testing.assert_allclose(heavy.predict(data), twice.predict(data), rtol=1e-4, atol=1e-5)


def test_documents_of_weight_0_have_no_say_in_leaf_values(collection):
    train, _ = collection
    weights = np.ones(train.n_docs)
    weights[train.query_ptr[20] :] = 0.0
    ranker = small().fit(train.replace(document_weights=weights))
    only = small().fit(train.replace(query_weights=(np.arange(40) < 20).astype(float)))
    np.testing.assert_array_equal(ranker.predict(train), only.predict(train))


def test_sparse_data_gives_the_same_model(collection):
    from scipy import sparse

    train, test = collection
    features = np.where(np.abs(train.features) > 0.5, train.features, np.float32(0.0))
    dense = small().fit(features, train.labels, group=train.query_sizes)
    thin = small().fit(sparse.csr_matrix(features), train.labels, group=train.query_sizes)
    np.testing.assert_array_equal(dense.predict(test), thin.predict(test))


def test_training_continues_from_a_model(collection, tmp_path):
    train, test = collection
    first = small(n_rounds=5).fit(train)
    first.save(tmp_path / "first.rank")
    more = small(n_rounds=4).fit(train, eval_set=test, init_model=tmp_path / "first.rank")
    assert len(more.trees_) >= 6
    np.testing.assert_array_equal(more.predict(test, n_rounds=5), first.predict(test))
    whole = small(n_rounds=9, early_stopping_rounds=None).fit(train)
    again = small(n_rounds=4, early_stopping_rounds=None).fit(train, init_model=first)
    np.testing.assert_allclose(again.predict(test), whole.predict(test), rtol=1e-3, atol=1e-3)


def test_what_a_model_that_is_continued_keeps_is_said(collection, caplog):
    train, _ = collection
    first = small(n_rounds=2, normalize="standard", increasing=[0]).fit(train)
    small(n_rounds=1, normalize="auto", increasing=[0]).fit(train, init_model=first)
    assert caplog.text == ""
    small(n_rounds=1, normalize="query-minmax", increasing=[0, 2], decreasing=[1]).fit(train, init_model=first)
    assert "normalize='query-minmax' is not used: the model that training continues from has 'standard'" in caplog.text
    assert "increasing holds for the new trees only: those of init_model were grown without it for f3," in caplog.text
    assert "decreasing holds for the new trees only: those of init_model were grown without it for f2," in caplog.text
    with pytest.raises(ParameterError, match="normalize must be one of"):
        small(n_rounds=1, normalize="centre").fit(train, init_model=first)


@pytest.mark.parametrize("random", [{}, {"loss": "xendcg", "n_seeds": 2}, {"query_fraction": 0.5}])
def test_a_killed_run_continues_to_the_same_bytes(random, collection, tmp_path):
    train, test = collection
    whole = small(n_rounds=20, **random).fit(train, eval_set=test)
    path = str(tmp_path / "run.checkpoint")

    class KilledError(Exception):
        pass

    def kill(step):
        if step.number == 13:
            raise KilledError

    with pytest.raises(KilledError):
        small(n_rounds=20, **random, checkpoint=path, checkpoint_every=5).fit(train, eval_set=test, callback=kill)
    resumed = small(n_rounds=20, **random, checkpoint=path, checkpoint_every=5).fit(train, eval_set=test)
    for ranker in (whole, resumed):
        ranker.set_params(checkpoint=None, checkpoint_every=1).save(tmp_path / f"{ranker is whole}.rank")
    assert (tmp_path / "True.rank").read_bytes() == (tmp_path / "False.rank").read_bytes()


def test_explanations_sum_to_the_score(collection):
    ranker = small().fit(collection[0])
    [explanation] = explain_rows(ranker.description_, collection[1], [3])
    assert explanation.score == pytest.approx(ranker.predict(collection[1])[3])
    assert explanation.feature_base + sum(explanation.features.values()) == pytest.approx(explanation.score)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_leaves": 1}, "n_leaves must be from 2 to"),
        ({"n_rounds": 0}, "n_rounds must be from 1 to 2147483647, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
        ({"l2": -1.0}, "l2 must be a finite number of 0 or more"),
        ({"loss": "ndcg"}, "loss must be one of 'lambdarank'"),
        ({"truncation": 0}, "truncation must be from 1 to"),
        ({"gain": "square"}, "gain must be one of"),
        ({"query_fraction": 1.5}, "query_fraction must be at most 1, got 1.5"),
        ({"feature_fraction": 0.0}, "feature_fraction must be a finite number above 0"),
        ({"query_fraction": "some"}, "query_fraction must be a finite number above 0, got 'some'"),
        (
            {"n_seeds": 4, "query_fraction": 1.0},
            "n_seeds is 4, but all seeds would give the same trees. Leave out query_fraction=1, .* or loss='xendcg'",
        ),
        *(
            ({name: 2**70}, rf"{name} must be from \d to \d+, got 1180591620717411303424\.")
            for name in (
                "n_rounds",
                "min_docs_leaf",
                "truncation",
                "random_state",
                "max_category_set",
                "max_depth",
                "n_seeds",
                "checkpoint_every",
            )
        ),
        *(
            (
                {"growth": "symmetric", "n_leaves": "auto", "max_depth": depth},
                rf"max_depth must be from 0 to 14 with growth='symmetric', .* got {depth}\. Use fewer levels",
            )
            for depth in (15, 24, 40, 60, 64)
        ),
        ({"max_depth": -1}, r"max_depth must be 0 or more, got -1\. 0 is any depth\."),
        ({"n_bins": 2}, "n_bins must be from 3 to 256, got 2"),
        (
            {"categorical_features": 3},
            "categorical_features must be a list of features, by name or by number from 0, got",
        ),
        ({"categorical_features": np.zeros((2, 2), int)}, "categorical_features must be a list of features"),
        ({"checkpoint": 5}, "checkpoint must be the path of a file, or None, got 5"),
        ({"device": "opencl"}, "device must be one of 'auto', 'cpu', 'cuda', got 'opencl'"),
    ],
)
def test_parameters_are_checked(parameters, said, collection):
    with pytest.raises(ParameterError, match=said):
        small(**parameters).fit(collection[0])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"loss": "xendcg", "truncation": 5, "noise": 0.3}, "loss='xendcg' does not use noise=0.3, truncation=5:"),
        ({"loss": "xendcg", "gain": "linear"}, None),
        ({"loss": "pairwise", "gain": "linear", "sigma": 2.0}, "loss='pairwise' does not use gain='linear':"),
        ({"loss": "map", "gain": "exponential"}, "loss='map' does not use gain='exponential':"),
        ({"loss": "lambdarank", "gain": "linear", "truncation": 5, "noise": 0.3}, None),
        ({"loss": "auto", "truncation": 5}, None),
        (
            {"loss": squares, "gain": "linear", "normalize_lambdas": False},
            "a function as loss does not use gain='linear', normalize_lambdas=False: leave that out",
        ),
    ],
)
def test_parameters_that_a_loss_does_not_have(parameters, said, collection, caplog):
    small(n_rounds=1, **parameters).fit(collection[0])
    assert said in caplog.text if said else "does not use" not in caplog.text


def test_seeds_of_a_users_loss_differ(collection, caplog):
    """Noise is not theirs, so that queries are drawn."""
    ranker = small(loss=squares, n_seeds=3, noise=0.3).fit(collection[0])
    assert ranker.chosen_["query_fraction"] == 0.7
    trees = ranker.grown_trees().trees
    assert not np.array_equal(trees[0].leaf_value, trees[1].leaf_value)
    with pytest.raises(ParameterError, match=r"all seeds would give .* something else random: feature_fraction=0\.7\."):
        small(loss=squares, n_seeds=3, noise=0.3, query_fraction=1.0).fit(collection[0])


def test_large_numbers_are_taken(collection):
    """Those at the limits give what smaller ones do."""
    train = collection[0]
    largest = 2**31 - 1
    np.testing.assert_array_equal(
        small(max_depth=largest, truncation=largest, max_category_set=largest).fit(train).predict(train),
        small(truncation=None).fit(train).predict(train),
    )
    assert small(n_rounds=1, min_docs_leaf=largest, query_fraction=0.5).fit(train).grown_trees().n_cuts == 0
    for name in ("l1", "l2", "min_gain", "min_hessian_leaf"):
        for random in ({}, {"query_fraction": 0.5}):
            assert small(n_rounds=1, **{name: 1e308}, **random).fit(train).grown_trees().n_cuts == 0
    seed = 2**63 - 1
    for random in (
        {"noise": 0.3, "n_seeds": 2},
        {"loss": "xendcg", "query_fraction": 0.5},
        {"node_feature_fraction": 0.5},
    ):
        assert small(n_rounds=2, random_state=seed, **random).fit(train).grown_trees().n_cuts > 0


@pytest.mark.parametrize("patience", [0, -1, "soon", 2.5])
def test_patience_is_checked(patience, collection):
    with pytest.raises(ParameterError, match=r"^early_stopping_rounds must be .* 1 or more, got"):
        small(early_stopping_rounds=patience).fit(collection[0], eval_set=collection[1])


def test_a_ranker_of_another_kind_is_not_continued(collection, tmp_path):
    other = rankwell.RankBoost(n_rounds=2).fit(collection[0])
    with pytest.raises(ParameterError, match=r"init_model must be of the same kind, lambdamart, got rankboost\."):
        small().fit(collection[0], init_model=other)
    other.save(tmp_path / "other.rank")
    with pytest.raises(FileFormatError, match=r"other\.rank holds a ranker of the kind rankboost, not lambdamart\."):
        small().fit(collection[0], init_model=tmp_path / "other.rank")


def test_a_checkpoint_may_be_a_path(collection, tmp_path):
    path = tmp_path / "run.checkpoint"
    small(checkpoint=path, checkpoint_every=2).fit(collection[0]).save(tmp_path / "model.rank")
    assert rankwell.load(tmp_path / "model.rank").checkpoint == str(path)


def test_labels_too_large_for_exponential_gains():
    data = make_ranking(n_docs=100, n_queries=5, n_features=3, random_state=0)
    large = RankingDataset(data.features, data.labels * 20, group=data.query_sizes)
    with pytest.raises(DataError, match=r"labels reach .* gain='linear'"):
        small(gain="exponential").fit(large)
    assert len(small(min_docs_leaf=1).fit(large).trees_) > 0


def test_leaves_too_large_give_no_tree_and_a_warning(collection, caplog):
    ranker = small(min_docs_leaf=10_000).fit(collection[0])
    assert (
        "no tree could be grown, and all scores are 0: no cut leaves enough documents (min_docs_leaf=10000)"
        in caplog.text
    )
    np.testing.assert_array_equal(ranker.predict(collection[1]), np.zeros(collection[1].n_docs))


@pytest.mark.parametrize("limit", ["min_hessian_leaf=1000", "l1=1e+06", "min_gain=1e+06"])
def test_what_forbids_every_tree_is_named(limit, collection, caplog):
    name, value = limit.split("=")
    small(**{name: float(value)}).fit(collection[0])
    assert "no tree could be grown" in caplog.text
    assert limit in caplog.text


@pytest.mark.parametrize(
    "weights",
    [np.full(40, -1.0), np.where(np.arange(40) == 3, np.nan, 1.0)],
)
def test_weights_are_called_what_the_caller_calls_them(weights, collection):
    with pytest.raises(DataError, match=r"^sample_weight must be finite and not negative: number \d is"):
        small().fit(collection[0], sample_weight=weights)


def test_a_metric_that_is_no_number_anywhere(collection):
    def nothing(labels, scores):
        return np.nan

    with pytest.raises(DataError, match="the function nothing gives no number for any query of eval_set, only NaN"):
        small(eval_metric=nothing).fit(collection[0], eval_set=collection[1])


@pytest.mark.parametrize("chosen", [np.array([1, 4]), {4, 1}, (1, 4), range(1, 5, 3), ["f2", "f5"]], ids=str)
def test_lists_of_features_may_be_of_any_kind(chosen, collection, tmp_path):
    train, _ = collection
    whole = np.abs(np.nan_to_num(train.features)).astype(int).astype(np.float32)
    data = RankingDataset(whole, train.labels, group=train.query_sizes)
    ranker = small(categorical_features=chosen, increasing={0}, n_rounds=3, checkpoint=tmp_path / "run").fit(data)
    expected = small(categorical_features=[1, 4], increasing=[0], n_rounds=3).fit(data).predict(data)
    np.testing.assert_array_equal(ranker.predict(data), expected)
    ranker.save(tmp_path / "model.rank")
    again = rankwell.load(tmp_path / "model.rank")
    np.testing.assert_array_equal(again.predict(data), expected)
    assert sorted(again.categorical_features) == sorted(chosen)


def test_a_checkpoint_that_cannot_be_written_is_refused_at_once(collection, tmp_path):
    (tmp_path / "file").write_text("")
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "file" / "run", "is a file, not a folder")):
        with pytest.raises(ParameterError, match=f"^checkpoint {path} .*{said}"):
            small(checkpoint=path).fit(collection[0])


def test_only_missing_values_may_differ():
    """A missing value is not 0: documents that differ by nothing else are told apart."""
    X = np.zeros((40, 1), np.float32)
    X[::2] = np.nan
    data = RankingDataset(X, np.tile([1.0, 0.0], 20), group=[10] * 4)
    assert ndcg(small(n_rounds=1).fit(data), data) == 1.0


def test_leaves_by_default(collection):
    """A hundredth of the documents, by their share of the Hessian: leaves of very few documents are rare."""
    train, _ = collection
    assert LambdaMART()._least_docs(train.n_docs) == train.n_docs // 100
    assert LambdaMART()._least_docs(10**6) == 100
    assert LambdaMART()._least_docs(5) == 1
    assert LambdaMART(min_docs_leaf=7)._least_docs(10**6) == 7
    assert [LambdaMART()._most_leaves(n_docs) for n_docs in (49_999, 50_000)] == [10, 31]
    assert LambdaMART(n_leaves=5)._most_leaves(10**6) == 5


def test_rounds_by_default(collection):
    train, test = collection
    assert len(LambdaMART(n_leaves=3).fit(train).trees_) == lambdamart._ROUNDS
    watched = LambdaMART(n_leaves=3).fit(train, eval_set=test)
    assert len(watched.trees_) == watched.best_iteration_ == watched.chosen_["n_rounds"]
