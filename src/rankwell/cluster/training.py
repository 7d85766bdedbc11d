"""Training a ranker on a cluster: `Ranker.fit_cluster`."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rankwell.cluster.cluster_run import ClusterRun
from rankwell.cluster.division import DIVISIONS
from rankwell.cluster.learner import LearnerPlan
from rankwell.cluster.part_reading import Reading
from rankwell.cluster.parts import PartsLike, divide, find_files
from rankwell.cluster.session import LOCAL, Session, cluster_session
from rankwell.cluster.worker_group import WorkerGroup
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.parameters import check_choice, check_number, check_whole_number
from rankwell.rankers.base import Callback, Ranker, TrainingTask, ignore_step
from rankwell.rankers.training_data import evaluation_sets, stacked
from rankwell.scoring.normaliser import Normaliser

logger = logging.getLogger("rankwell")

# By the ranker's name: "module:name" of the check of its parameters, and of the driver's part of its training.
TRAINERS = {
    "least-squares": (
        "rankwell.cluster.least_squares:check_least_squares",
        "rankwell.cluster.least_squares:train_least_squares",
    ),
    "lambdamart": ("rankwell.cluster.lambdamart:check_lambdamart", "rankwell.cluster.lambdamart:train_lambdamart"),
    "rankboost": ("rankwell.cluster.rankboost:check_rankboost", "rankwell.cluster.rankboost:train_rankboost"),
    "ranksvm": ("rankwell.cluster.ranksvm:check_ranksvm", "rankwell.cluster.ranksvm:train_ranksvm"),
    **dict.fromkeys(
        ("listnet", "ranknet", "lambdarank", "listmle"),
        ("rankwell.cluster.networks:check_network", "rankwell.cluster.networks:train_network"),
    ),
}
# Rankers whose workers can use a GPU.
_ON_GPUS = ("ranksvm",)
# Parameters that only the driver needs, and that may be functions.
_OF_THE_DRIVER = frozenset(
    {"eval_metric", "eval_convention", "checkpoint", "early_stopping_rounds", "n_jobs", "device"}
)


def fit_on_cluster(
    ranker: Ranker,
    parts: PartsLike,
    *,
    cluster: str = LOCAL,
    workers: int | None = None,
    gpus_per_worker: float = 0,
    division: str = "auto",
    evaluation: tuple[Any, Any, Any] = (None, None, None),
    callback: Callback | None = None,
    init_model: Ranker | str | os.PathLike[str] | None = None,
    reading: Reading | None = None,
    dashboard: bool = False,
) -> None:
    """Train `ranker`; see `Ranker.fit_cluster` for the parameters. `evaluation` is eval_set, eval_qid, eval_group."""
    ranker._check_parameters()
    check_choice("division", division, DIVISIONS)
    if workers is not None:
        check_whole_number("workers", workers, least=1)
    check_number("gpus_per_worker", gpus_per_worker, least=0)
    if gpus_per_worker and ranker.name not in _ON_GPUS:
        raise ParameterError(
            f"must be 0: the workers of {type(ranker).__name__} train on CPUs. Those of {', '.join(_ON_GPUS)} can use "
            "a GPU.",
            parameter="gpus_per_worker",
        )
    if ranker.name not in TRAINERS:
        raise ParameterError(f"{type(ranker).__name__} cannot be trained on a cluster: use fit.")
    if reading is not None and reading.memory is not None:
        division = _streamed_division(ranker, division, gpus_per_worker)
    check, train = (_imported(target) for target in TRAINERS[ranker.name])
    check(ranker)
    earlier = ranker._earlier_model(init_model)
    files = find_files(parts)
    reading = replace(reading or Reading(), least_features=_least_features(evaluation[0]))
    n_cpus = (workers or 1) * max(1, getattr(ranker, "n_jobs", None) or 1)
    with cluster_session(cluster, n_cpus=n_cpus, dashboard=dashboard) as session:
        n_workers = workers or max(1, session.n_cpus)
        n_threads = _threads_per_worker(ranker, session, n_workers)
        session.check_room(n_workers, cpus_per_worker=n_threads, gpus_per_worker=gpus_per_worker)
        plan = _plan(ranker, earlier, device="cuda" if gpus_per_worker else "cpu")
        divided = divide(files, n_workers)
        group = WorkerGroup(session, divided, reading, plan, n_threads=n_threads, gpus_per_worker=gpus_per_worker)
        ranker.cluster_ = group.report  # type: ignore[attr-defined]
        try:
            run = ClusterRun(group, group.prepare(), files, division)
            _check_data(run)
            task = _training_task(ranker, run, evaluation, callback, earlier)
            ranker._keep(train(ranker, task, run))
        finally:
            group.close()
    ranker._trained_without_queries = False
    ranker.metrics_ = {}


def _streamed_division(ranker: Ranker, division: str, gpus_per_worker: float) -> str:
    """The division of data that workers have on disk: documents."""
    if not ranker.can_stream:
        raise ParameterError(
            f"{ranker.name} cannot train on data that is larger than memory: rankboost, ranksvm and lambdamart can.",
        )
    if gpus_per_worker or division == "features":
        raise ParameterError("with a limit of memory workers have documents each, and no GPUs.")
    return "documents"


def _least_features(eval_set: Any) -> int:
    """The features of a validation set whose columns have no names: text leaves out zeros, so it may be the wider."""
    is_text = isinstance(eval_set, RankingDataset) and eval_set.feature_names is None
    return int(eval_set.n_features) if is_text else 0


def _threads_per_worker(ranker: Ranker, session: Session, n_workers: int) -> int:
    wanted = getattr(ranker, "n_jobs", None)
    if wanted is not None and wanted > 0:
        return int(wanted)
    return max(1, session.n_cpus // n_workers)


def _plan(ranker: Ranker, earlier: Ranker | None, device: str) -> LearnerPlan:
    parameters = {name: value for name, value in ranker.get_params(deep=False).items() if name not in _OF_THE_DRIVER}
    functions = [name for name, value in parameters.items() if callable(value)]
    if functions:
        raise ParameterError(
            "is a function, which is not sent to workers: use one of the names it takes, or train on one machine.",
            parameter=functions[0],
        )
    if earlier is None:
        return LearnerPlan(ranker.name, parameters, device=device)
    description = earlier._fitted_description()
    return LearnerPlan(
        ranker.name,
        parameters,
        feature_names=list(description.feature_names),
        normaliser=description.normaliser.name,
        normaliser_arrays=dict(description.normaliser.arrays),
        arrays=dict(earlier.state_),
        device=device,
    )


def _check_data(run: ClusterRun) -> None:
    if run.n_docs < 2:
        raise DataError(f"there is nothing to rank: the parts have {run.n_docs} rows in all.")
    for number, summary in enumerate(run.summaries):
        if summary["n_docs"] == 0:
            logger.warning(
                "worker %d has no documents: there are %d queries for %d workers. Use fewer workers.",
                *(number, run.n_queries, run.group.n_workers),
            )


def _training_task(
    ranker: Ranker,
    run: ClusterRun,
    evaluation: tuple[Any, Any, Any],
    callback: Callback | None,
    earlier: Ranker | None,
) -> TrainingTask:
    """What a ranker's training gets. Its training data has columns, but no rows: those are the workers'."""
    summary = run.summaries[0]
    names = summary["feature_names"] if earlier is None else earlier._fitted_description().feature_names
    columns = RankingDataset(
        np.zeros((0, summary["n_features"]), dtype=np.float32),
        np.zeros(0),
        group=[],
        feature_names=None if earlier is None and names is None else tuple(names),
    )
    normaliser = Normaliser(summary["normaliser"], dict(summary["normaliser_arrays"]))
    eval_set, eval_qid, eval_group = evaluation
    if isinstance(eval_set, RankingDataset):
        eval_set = eval_set.widened(columns.n_features)
    eval_sets = evaluation_sets(eval_set, eval_qid, eval_group, columns)
    return TrainingTask(
        train=columns,
        validation=ranker._prepared(stacked(eval_sets), normaliser) if eval_sets else None,
        normaliser=normaliser,
        callback=callback or ignore_step,
        init_model=earlier,
        eval_sets=eval_sets,
    )


def _imported(target: str) -> Callable[..., Any]:
    module, name = target.split(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
