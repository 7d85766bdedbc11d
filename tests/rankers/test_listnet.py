"""ListNet and similar rankers as estimators."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from sklearn.base import clone
from tests.tolerances import TOLERANCES

import rankwell
from rankwell import LambdaRank, ListMLE, ListNet, RankingDataset, RankNet
from rankwell.errors import DataError, DeviceError, ParameterError
from rankwell.kernels.device_report import report_device
from rankwell.rankers.registry import ranker_class


def learnable(n_queries=30, n_docs=12, n_features=5, seed=0):
    """Queries whose labels follow a linear function of the features."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_queries * n_docs, n_features)).astype(np.float32)
    worth = features @ np.array([2.0, -1.0, 0.5, 0.0, 1.0][:n_features])
    labels = np.digitize(worth, [-1.0, 1.5])
    return RankingDataset(features, labels, group=[n_docs] * n_queries)


TRAIN, VALIDATION, TEST = learnable(seed=1), learnable(15, seed=2), learnable(15, seed=3)
QUICK = {"n_epochs": 40, "learning_rate": 0.5, "device": "cpu"}

RANKERS = [
    ListNet(k=1, **QUICK),
    ListNet(k=2, **QUICK),
    ListNet(k=3, **QUICK),
    ListNet(k=2, sampling="stochastic", sample_size=20, **QUICK),
    ListNet(k=4, sampling="stochastic", sample_distribution="uniform", **QUICK),
    ListNet(k=3, sampling="position-aware", sample_factors=(1.0, 0.5, 0.2), **QUICK),
    RankNet(**QUICK),
    LambdaRank(**QUICK),
    ListMLE(**QUICK),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: str(ranker).replace("\n", ""))
def test_learns_what_there_is_to_learn(ranker):
    fitted = clone(ranker).fit(TRAIN)
    assert fitted.score(TEST) > 0.9
    assert fitted.history_["loss"][-1] < fitted.history_["loss"][0]


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden": ()},
        {"hidden": (8, 4)},
        {"activation": "relu", "learning_rate": 0.02},
        {"activation": "linear", "learning_rate": 0.05},
        {"batch_queries": 8},
        {"momentum": 0.9, "learning_rate": 0.05},
        {"optimizer": "adam", "learning_rate": 0.02},
        {"dropout": 0.2},
        {"precision": "fixed16"},
    ],
    ids=str,
)
def test_every_setting_learns(settings):
    assert ListNet(**{**QUICK, **settings}).fit(TRAIN).score(TEST) > 0.88


def test_prediction_is_the_network_of_equation_2_5():
    ranker = ListNet(hidden=(3,), n_epochs=2, n_seeds=1, normalize="none", device="cpu").fit(TRAIN)
    hidden, output = ranker.description_.layers

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    x = TEST.features[:10].astype(float)
    expected = sigmoid(sigmoid(x @ hidden.weights.T + hidden.bias) @ output.weights.T + output.bias)[:, 0]
    np.testing.assert_allclose(ranker.predict(TEST)[:10], expected, rtol=1e-12)


@pytest.mark.parametrize("cls", [ListNet, RankNet, LambdaRank, ListMLE])
def test_a_saved_ranker_predicts_the_same(cls, tmp_path):
    ranker = cls(n_epochs=2, hidden=(4,), device="cpu").fit(TRAIN)
    ranker.save(tmp_path / "model")
    loaded = rankwell.load(tmp_path / "model")
    assert type(loaded) is cls is ranker_class(cls.name)
    assert loaded.predict(TEST).tobytes() == ranker.predict(TEST).tobytes()
    assert loaded.get_params() == ranker.get_params()


def test_same_seed_same_model_on_any_number_of_threads():
    settings = {**QUICK, "n_epochs": 3, "batch_queries": 4, "k": 3}
    first = ListNet(**settings, n_jobs=1).fit(TRAIN).predict(TEST)
    assert first.tobytes() == ListNet(**settings, n_jobs=2).fit(TRAIN).predict(TEST).tobytes()
    assert first.tobytes() != ListNet(**settings, random_state=1).fit(TRAIN).predict(TEST).tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hidden": (4, 3)},
        {"hidden": ()},
        {"hidden": (), "output_activation": "sigmoid"},
        {"output_activation": "identity"},
    ],
    ids=str,
)
def test_several_seeds_are_the_mean_of_their_networks(settings, tmp_path):
    both = {"n_epochs": 3, "device": "cpu", **settings}
    alone = [ListNet(**both, n_seeds=1, random_state=seed).fit(TRAIN).predict(TEST) for seed in (5, 6, 7)]
    ranker = ListNet(**both, n_seeds=3, random_state=5).fit(TRAIN)
    np.testing.assert_allclose(ranker.predict(TEST), np.mean(alone, axis=0), rtol=1e-6)
    ranker.save(tmp_path / "mean")
    loaded = rankwell.load(tmp_path / "mean")
    assert loaded.predict(TEST).tobytes() == ranker.predict(TEST).tobytes()
    later = [ListNet(**both, n_seeds=3).fit(TRAIN, init_model=model).predict(TEST) for model in (ranker, loaded)]
    assert later[0].tobytes() == later[1].tobytes()


@pytest.mark.parametrize("cls", [ListNet, RankNet, LambdaRank, ListMLE])
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sample_weight": np.zeros(30)}, "every sample_weight is zero"),
        ({"sample_weight": np.zeros(360)}, "every sample_weight is zero"),
        ({"group": [1] * 360}, "there are no pairs to learn from"),
        ({"y": np.ones(360)}, "there are no pairs to learn from"),
        ({"X": np.ones((360, 5))}, "no feature varies within a query"),
        ({"X": np.repeat(np.arange(30.0), 12)[:, None]}, "no feature varies within a query"),
        ({"sample_weight": np.arange(360.0)}, "sample_weight differs within query"),
    ],
    ids=["query weights", "document weights", "one document", "labels", "features", "in a query", "in a list"],
)
def test_nothing_to_learn_from_is_refused(cls, change, complaint):
    data = {"X": TRAIN.features, "y": TRAIN.labels, "group": TRAIN.query_sizes, **change}
    with pytest.raises(DataError, match=complaint):
        cls(n_epochs=1, device="cpu").fit(data.pop("X"), data.pop("y"), **data)


def test_a_dataset_whose_weights_are_zero_is_refused():
    with pytest.raises(DataError, match="there are no pairs to learn from"):
        ListNet(device="cpu").fit(TRAIN.replace(query_weights=np.zeros(30)))


def test_documents_weights_that_are_equal_in_a_query_are_its_weight():
    by_query = np.arange(30.0)
    settings = {"n_epochs": 3, "n_seeds": 1, "device": "cpu"}
    first = ListNet(**settings).fit(TRAIN, sample_weight=by_query)
    second = ListNet(**settings).fit(TRAIN, sample_weight=np.repeat(by_query, 12))
    assert first.predict(TEST).tobytes() == second.predict(TEST).tobytes()


@pytest.mark.parametrize(
    ("cls", "settings", "rate"),
    [
        (ListNet, {}, 0.5),
        (ListNet, {"momentum": 0.9}, 0.05),
        (ListNet, {"hidden": ()}, 0.02),
        (ListNet, {"activation": "tanh"}, 0.1),
        (ListNet, {"optimizer": "adam"}, 0.003),
        (RankNet, {}, 0.1),
        (LambdaRank, {"output_activation": "sigmoid"}, 0.5),
        (ListMLE, {"learning_rate": 0.7}, 0.7),
    ],
)
def test_the_learning_rate_suits_the_network(cls, settings, rate):
    history = cls(n_epochs=2, n_seeds=1, device="cpu", **settings).fit(TRAIN).history_
    assert history["learning rate"] == [pytest.approx(rate), pytest.approx(rate / 1.05)]


def test_best_epoch_is_kept_and_training_stops():
    ranker = ListNet(n_epochs=200, learning_rate=2.0, early_stopping_rounds=3, device="cpu")
    ranker.fit(TRAIN, eval_set=VALIDATION)
    figures = ranker.history_["validation ndcg@10"]
    assert len(figures) < 200
    assert int(np.argmax(figures)) == len(figures) - 1 - 3
    assert ranker.score(VALIDATION) == pytest.approx(max(figures), abs=1e-3)


def without_seconds(history):
    return {name: values for name, values in history.items() if name != "seconds"}


def test_a_killed_run_goes_on_to_the_very_same_model(tmp_path):
    settings = {**QUICK, "n_epochs": 12, "optimizer": "adam", "learning_rate": 0.01, "k": 2}
    whole = ListNet(**settings).fit(TRAIN, eval_set=VALIDATION)
    path = str(tmp_path / "run")

    def stop(step):
        if step.number == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ListNet(**settings, checkpoint=path, checkpoint_every=3).fit(TRAIN, eval_set=VALIDATION, callback=stop)
    epochs = []
    resumed = ListNet(**settings, checkpoint=path, checkpoint_every=3)
    resumed.fit(TRAIN, eval_set=VALIDATION, callback=lambda step: epochs.append(step.number))
    assert epochs == list(range(7, 13))
    assert resumed.predict(TEST).tobytes() == whole.predict(TEST).tobytes()
    assert without_seconds(resumed.history_) == without_seconds(whole.history_)
    assert not (tmp_path / "run").exists()


def test_a_killed_run_with_swaps_goes_on(tmp_path):
    settings = {**QUICK, "n_epochs": 6, "swap": ((2, "fixed8"), (5, "float32"))}
    whole = ListNet(**settings).fit(TRAIN)
    assert whole.history_["bits"] == [32, 8, 8, 8, 32, 32]

    def stop(step):
        if step.number == 3:
            raise KeyboardInterrupt

    path = str(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        ListNet(**settings, checkpoint=path, checkpoint_every=2).fit(TRAIN, callback=stop)
    resumed = ListNet(**settings, checkpoint=path, checkpoint_every=2).fit(TRAIN)
    assert without_seconds(resumed.history_) == without_seconds(whole.history_)
    assert resumed.predict(TEST).tobytes() == whole.predict(TEST).tobytes()


def test_goes_on_from_an_earlier_model():
    earlier = ListNet(**{**QUICK, "n_epochs": 10}).fit(TRAIN)
    later = ListNet(**{**QUICK, "n_epochs": 5}).fit(TRAIN, init_model=earlier)
    assert later.history_["loss"][0] < earlier.history_["loss"][0]
    with pytest.raises(ParameterError, match=r"init_model has hidden=\(15,\)"):
        ListNet(hidden=(3,)).fit(TRAIN, init_model=earlier)
    with pytest.raises(ParameterError, match=r"init_model has n_seeds=3, this ranker 1"):
        ListNet(n_seeds=1).fit(TRAIN, init_model=earlier)
    alone = ListNet(**{**QUICK, "n_epochs": 10, "n_seeds": 1}).fit(TRAIN)
    assert (
        ListNet(**{**QUICK, "n_epochs": 5, "n_seeds": 1}).fit(TRAIN, init_model=alone).history_["loss"][0]
        < (alone.history_["loss"][0])
    )


def test_query_weight_zero_is_the_query_left_out():
    weights = np.ones(TRAIN.n_queries)
    weights[10:] = 0.0
    settings = {**QUICK, "n_epochs": 4, "shuffle": False, "normalize": "none"}
    weighted = ListNet(**settings).fit(TRAIN, sample_weight=weights)
    alone = ListNet(**settings).fit(TRAIN.subset(range(10)))
    np.testing.assert_allclose(weighted.predict(TEST), alone.predict(TEST), rtol=1e-6)


def test_missing_values_count_as_zero_after_normalising():
    features = TRAIN.features.copy()
    features[::7, 2] = np.nan
    filled = np.nan_to_num(features, nan=0.0)
    settings = {**QUICK, "n_epochs": 3, "normalize": "none"}
    group = TRAIN.query_sizes
    first = ListNet(**settings).fit(features, TRAIN.labels, group=group)
    second = ListNet(**settings).fit(filled, TRAIN.labels, group=group)
    assert first.predict(features).tobytes() == second.predict(filled).tobytes()


def test_lists_without_a_choice_are_harmless():
    features = np.arange(8, dtype=np.float32).reshape(4, 2)
    dataset = RankingDataset(features, [1, 0, 2, 2], group=[1, 0, 3])
    for k in (1, 2, 3):
        ranker = ListNet(k=k, n_epochs=3, device="cpu").fit(dataset)
        assert np.isfinite(ranker.predict(dataset)).all()


def test_plot_of_the_history(tmp_path):
    ranker = ListNet(n_epochs=3, device="cpu").fit(TRAIN, eval_set=VALIDATION)
    ranker.plot_history(tmp_path / "history.png")
    assert (tmp_path / "history.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"k": 0}, "k must be 1 or more"),
        ({"k": 4}, "the exact loss goes up to k = 3"),
        ({"sampling": "some"}, "sampling must be one of"),
        ({"k": 2, "sampling": "position-aware"}, "sample_factors must be k = 2 numbers"),
        ({"k": 2, "sampling": "position-aware", "sample_factors": (0.1, 0.5)}, "that do not grow"),
        ({"sampling": "stochastic", "sample_size": 0}, "sample_size must be 1 or more"),
        ({"sampling": "stochastic", "sample_distribution": "normal"}, "sample_distribution must be one of"),
        ({"hidden": (0,)}, "hidden must be whole numbers"),
        ({"activation": "step"}, "activation must be one of"),
        ({"output_activation": "step"}, "output_activation must be one of"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number above 0"),
        ({"dropout": 1.0}, "dropout must be a finite number at least 0 and below 1"),
        ({"batch_queries": 0}, "batch_queries must be 1 or more"),
        ({"n_epochs": 0}, "n_epochs must be 1 or more"),
        ({"n_seeds": 0}, "n_seeds must be 1 or more"),
        ({"precision": "float16"}, "precision must be 'float32' or 'fixedN'"),
        ({"precision": "fixed8", "activation": "relu"}, "fixed point needs hidden outputs"),
        ({"precision": "fixed8", "dropout": 0.5}, "fixed point does not support dropout"),
        ({"precision": "fixed8", "accumulator_bits": 4}, "accumulator_bits must be from"),
        ({"fixed_point": "float"}, "fixed_point must be one of"),
        ({"eval_metric": "accuracy"}, "eval_metric must be one of"),
        ({"swap": ((0, "fixed8"),)}, "swap's epochs must be whole numbers"),
        ({"swap": ("gain", 0.1)}, "swap by gain needs a threshold"),
        ({"device": "opencl"}, "device must be one of"),
    ],
)
def test_wrong_parameters_are_refused(settings, complaint):
    with pytest.raises(ParameterError, match=complaint):
        ListNet(**settings).fit(TRAIN)


def test_early_stopping_needs_something_to_watch():
    with pytest.raises(DataError, match="early stopping needs a validation set"):
        ListNet(early_stopping_rounds=3).fit(TRAIN)
    with pytest.raises(ParameterError, match="swap by gain watches the validation figure"):
        ListNet(swap=("gain", 0.1, "fixed8"), device="cpu").fit(TRAIN)


def test_divergence_is_an_error_with_a_remedy():
    with pytest.raises(ParameterError, match="training diverged"):
        ListNet(hidden=(), learning_rate=1e38, normalize="standard", device="cpu").fit(TRAIN)


def test_fixed_point_stays_on_the_cpu():
    with pytest.raises(ParameterError, match="device='cuda' cannot train a network over lists with fixed point"):
        ListNet(precision="fixed8", device="cuda").fit(TRAIN)


@pytest.mark.skipif(report_device("cuda").usable, reason="there is a CUDA device here")
def test_cuda_is_never_replaced_silently():
    with pytest.raises(DeviceError, match="device='cuda' cannot be used"):
        ListNet(device="cuda").fit(TRAIN)


@pytest.mark.gpu
@pytest.mark.skipif(not report_device("cuda").usable, reason="there is no CUDA device here")
@pytest.mark.parametrize("settings", [{"k": 1}, {"k": 3}, {"k": 2, "batch_queries": 8}, {"hidden": ()}], ids=str)
def test_cuda_trains_what_the_cpu_trains(settings):
    both = {**QUICK, "n_epochs": 5, **settings}
    on_cpu = ListNet(**both).fit(TRAIN, eval_set=VALIDATION)
    on_gpu = ListNet(**{**both, "device": "cuda"}).fit(TRAIN, eval_set=VALIDATION)
    np.testing.assert_allclose(on_gpu.history_["loss"], on_cpu.history_["loss"], **TOLERANCES["cuda"]["training loss"])
    tolerance = TOLERANCES["cuda"]["scores of a trained network"]
    np.testing.assert_allclose(on_gpu.predict(TEST), on_cpu.predict(TEST), **tolerance)


def test_ctrl_c_does_not_wait_for_the_end_of_a_long_epoch():
    # An epoch of about ten seconds: 20,000 permutations drawn for each of 600 queries.
    train = learnable(600, 20)
    slow = {"k": 3, "sampling": "stochastic", "device": "cpu", "n_jobs": 1}
    ListNet(**slow, n_epochs=1, sample_size=2).fit(train)  # the kernels are compiled
    before = time.process_time()
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            ListNet(**slow, n_epochs=1, sample_size=20_000).fit(train)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    assert time.process_time() - before < 2.0
