"""Training on a local Ray: every ranker, faults, checkpoints, and what a user is told."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from tests.cluster.cluster_data import make_queries, write_parts
from typer.testing import CliRunner

from rankwell.cli.app import app
from rankwell.data.files import read, write
from rankwell.errors import ClusterError, DataError, ParameterError
from rankwell.rankers.rankboost import RankBoost
from rankwell.rankers.registry import RANKERS, load, ranker_class

pytestmark = pytest.mark.usefixtures("session")

QUICK = {
    "least-squares": {},
    "rankboost": {"n_rounds": 15},
    "ranksvm": {},
    "lambdamart": {"n_rounds": 5, "n_leaves": 6},
    **{name: {"n_epochs": 3, "batch_queries": 8} for name in ("listnet", "ranknet", "lambdarank", "listmle")},
}


@pytest.fixture(scope="module")
def dataset():
    return make_queries(60, 20, missing=0.02)


@pytest.fixture(scope="module")
def validation():
    return make_queries(15, 20, seed=5, missing=0.02)


@pytest.fixture(scope="module")
def folder(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    write_parts(dataset, folder, 5)
    return folder


def content(ranker, path):
    ranker.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_trains_with_two_workers(name, folder, dataset, validation):
    ranker = ranker_class(name)(**QUICK[name])
    ranker.fit_cluster(folder, cluster="local", workers=2, eval_set=validation)
    alone = ranker_class(name)(**QUICK[name]).fit(dataset, eval_set=validation)
    assert abs(ranker.score(validation) - alone.score(validation)) < 0.02
    assert [worker.n_docs for worker in ranker.cluster_.workers] != [0, 0]
    assert sum(worker.n_docs for worker in ranker.cluster_.workers) == dataset.n_docs


@pytest.mark.parametrize("name", ["rankboost", "ranksvm", "lambdamart"])
def test_workers_with_their_data_on_disk_give_the_same_model(name, folder, tmp_path):
    models = []
    for options in ({}, {"memory": "8GiB", "scratch": tmp_path}):
        ranker = ranker_class(name)(**QUICK[name]).fit_cluster(folder, workers=2, division="auto", **options)
        models.append(content(ranker, tmp_path / "model.rank"))
    assert models[0] == models[1]
    assert os.listdir(tmp_path) == ["model.rank"]


def test_a_limit_of_memory_is_each_workers(folder):
    with pytest.raises(DataError, match="memory is 10 MiB, and rankboost needs about"):
        RankBoost(n_rounds=2).fit_cluster(folder, workers=2, memory="10MiB")
    with pytest.raises(ParameterError, match="workers have documents each"):
        RankBoost(n_rounds=2).fit_cluster(folder, workers=2, memory="8GiB", division="features")
    with pytest.raises(ParameterError, match="listnet cannot train on data that is larger than memory"):
        ranker_class("listnet")(**QUICK["listnet"]).fit_cluster(folder, workers=2, memory="8GiB")


@pytest.mark.parametrize(("division", "suffix"), [("documents", ".txt"), ("features", ".parquet")])
def test_rankboost_is_the_model_of_one_machine(division, suffix, tmp_path):
    write(make_queries(60, 40, missing=0.0), tmp_path / f"all{suffix}")
    whole = read(tmp_path / f"all{suffix}")
    options = {"n_rounds": 40, "early_stopping_rounds": 10}
    watched = make_queries(15, 40, seed=5, missing=0.0)
    watched.feature_names = whole.feature_names
    alone = RankBoost(**options).fit(whole, eval_set=watched)
    together = RankBoost(**options)
    together.fit_cluster(tmp_path / f"all{suffix}", workers=2, division=division, eval_set=watched)
    assert content(together, tmp_path / "b.rank") == content(alone, tmp_path / "a.rank")
    assert together.cluster_.division == division
    assert all(worker.bytes_sent > 0 and worker.n_docs > 0 for worker in together.cluster_.workers)


def test_rankboost_continues_from_a_model(folder, dataset, tmp_path):
    first = RankBoost(n_rounds=10).fit(dataset)
    alone = RankBoost(n_rounds=10).fit(dataset, init_model=first)
    together = RankBoost(n_rounds=10)
    together.fit_cluster(folder, workers=2, init_model=first)
    assert content(together, tmp_path / "b.rank") == content(alone, tmp_path / "a.rank")


class KillOnce:
    """A callback that kills a worker's process after some round."""

    def __init__(self, ranker, worker, after):
        self.ranker, self.worker, self.after = ranker, worker, after

    def __call__(self, step):
        if step.number == self.after:
            os.kill(self.ranker.cluster_.workers[self.worker].process, signal.SIGKILL)


@pytest.mark.parametrize("division", ["documents", "features"])
def test_a_killed_worker_changes_nothing(division, tmp_path):
    dataset = make_queries(60, 40, missing=0.02)
    write_parts(dataset, tmp_path, 4)
    alone = RankBoost(n_rounds=120).fit(dataset)
    together = RankBoost(n_rounds=120)
    together.fit_cluster(
        str(tmp_path / "*.parquet"), workers=2, division=division, callback=KillOnce(together, 1, after=50)
    )
    assert content(together, tmp_path / "b.rank") == content(alone, tmp_path / "a.rank")
    assert [worker.n_restarts for worker in together.cluster_.workers] == [0, 1]


@pytest.mark.parametrize("name", ["ranksvm", "lambdamart"])
def test_a_killed_worker_changes_nothing_for_others(name, folder, tmp_path):
    models = []
    for killed in (False, True):
        ranker = ranker_class(name)(**QUICK[name])
        callback = KillOnce(ranker, 0, after=2) if killed else None
        ranker.fit_cluster(folder, workers=2, callback=callback)
        models.append(content(ranker, tmp_path / "model.rank"))
        assert ranker.cluster_.workers[0].n_restarts == int(killed)
    assert models[0] == models[1]


def test_a_lost_driver_resumes_from_its_checkpoint(folder, dataset, tmp_path):
    class LostError(Exception):
        pass

    def lose(step):
        if step.number == 25:
            raise LostError

    options = {"n_rounds": 40, "checkpoint": str(tmp_path / "run.checkpoint"), "checkpoint_every": 10}
    with pytest.raises(LostError):
        RankBoost(**options).fit_cluster(folder, workers=2, callback=lose)
    assert (tmp_path / "run.checkpoint").exists()
    numbers = []
    resumed = RankBoost(**options)
    resumed.fit_cluster(folder, workers=3, callback=lambda step: numbers.append(step.number))
    assert min(numbers) in (11, 21)
    alone = RankBoost(**options).fit(dataset)
    assert content(resumed, tmp_path / "b.rank") == content(alone, tmp_path / "a.rank")


def test_a_part_that_cannot_be_read_is_named(folder, tmp_path):
    paths = [str(path) for path in sorted(folder.glob("*.parquet"))]
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes((folder / "part-0.parquet").read_bytes()[:-100] + b"PAR1")
    with pytest.raises(DataError, match=r"damaged\.parquet"):
        RankBoost(n_rounds=3).fit_cluster([*paths[1:], str(damaged)], workers=2)


def test_ranksvm_has_the_same_objective_for_any_number_of_workers(folder, dataset):
    objectives = []
    for workers in (1, 3):
        ranker = ranker_class("ranksvm")(C=0.01, tol=1e-8)
        ranker.fit_cluster(folder, workers=workers)
        objectives.append(ranker.history_["objective"][-1])
    objectives.append(ranker_class("ranksvm")(C=0.01, tol=1e-8).fit(dataset).history_["objective"][-1])
    assert np.ptp(objectives) <= 1e-12 * objectives[0]


def test_what_a_cluster_cannot_do_is_refused(folder):
    with pytest.raises(ParameterError, match="batch_queries is 1"):
        ranker_class("listnet")().fit_cluster(folder, workers=2)
    with pytest.raises(ParameterError, match=r"weak_learner must be 'm3\.int' on a cluster"):
        RankBoost(weak_learner="m2").fit_cluster(folder, workers=2)
    with pytest.raises(ParameterError, match="can be divided among 2 workers"):
        RankBoost().fit_cluster(folder, workers=3, division="features")
    with pytest.raises(ParameterError, match="gpus_per_worker must be 0: the workers of RankBoost train on CPUs"):
        RankBoost().fit_cluster(folder, workers=2, gpus_per_worker=1)
    with pytest.raises(ClusterError, match="900 workers need 900 CPUs"):
        RankBoost().fit_cluster(folder, workers=900)
    with pytest.raises(ParameterError, match="cluster must be 'local', 'auto' or the address"):
        RankBoost().fit_cluster(folder, cluster="remote")


def test_the_command_trains_on_several_files(folder, validation, tmp_path):
    write(validation, tmp_path / "vali.parquet")
    files = [str(path) for path in sorted(folder.glob("*.parquet"))]
    options = ["--cluster", "local", "--workers", "2", "--set", "n_rounds=5", "--out", str(tmp_path / "model.rank")]
    result = CliRunner().invoke(
        app, ["train", "rankboost", *files, *options, "--vali", str(tmp_path / "vali.parquet"), "--json"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [worker["worker"] for worker in report["workers"]] == [0, 1]
    assert all(worker["documents_per_second"] > 0 for worker in report["workers"])
    assert set(report["metrics"]) == {"validation"}
    assert load(tmp_path / "model.rank").n_features_in_ == 20


def test_the_command_refuses_several_files_without_a_cluster(folder, tmp_path):
    files = [str(path) for path in sorted(folder.glob("*.parquet"))]
    result = CliRunner().invoke(app, ["train", "rankboost", *files, "--out", str(tmp_path / "model.rank")])
    assert result.exit_code == 2
    assert "without --cluster it must be one" in result.stderr
