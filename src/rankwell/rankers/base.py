"""What all rankers share: scikit-learn's conventions, the normaliser, prediction, and the ranker file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, FileFormatError, Parameter, ParameterError
from rankwell.parameters import as_bytes, check_choice
from rankwell.rankers.early_stopping import EarlyStopping
from rankwell.rankers.estimator import Estimator, not_fitted_error
from rankwell.rankers.feature_columns import in_order_of
from rankwell.rankers.learnable import check_learnable, warn_of_empty_features
from rankwell.rankers.streaming import StreamedSizes, check_streaming
from rankwell.rankers.training_data import (
    as_dataset,
    evaluation_sets,
    lacks_queries,
    stacked,
    warn_of_categories,
    weighted,
)
from rankwell.scoring.contributions import feature_contributions
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.importance import feature_importances
from rankwell.scoring.linear_form import linear_form
from rankwell.scoring.normaliser import AUTO, CHOICES, Normaliser, fit_normaliser
from rankwell.scoring.ranker_file import RankerFile, read_ranker_file, write_ranker_file
from rankwell.scoring.scorer import score_description

logger = logging.getLogger("rankwell")

# The history's figure of the training time up to each step, and what the watched validation figure begins with.
SECONDS = "seconds"
WATCHED = "validation "


@dataclass(frozen=True)
class TrainingStep:
    """One step of a training run (a round, an iteration, an epoch), as a callback sees it.

    number counts from 1; total is how many there will be at most; values are the step's figures by name, as `history_`
    holds them.
    """

    number: int
    total: int
    values: dict[str, float]


# A true return value ends the training after this step.
Callback = Callable[[TrainingStep], bool | None]


@dataclass(frozen=True)
class TrainingTask:
    """What a ranker's `_train` gets: normalised data, checked once.

    validation has the queries of all `eval_sets`, one after another; it is None if no eval_set was given. eval_sets
    are as the user gave them, to be measured one by one; the last one is watched. init_model is a fitted ranker of the
    same class to continue from.
    """

    train: RankingDataset
    validation: RankingDataset | None
    normaliser: Normaliser
    callback: Callback
    init_model: Ranker | None = None
    eval_sets: tuple[RankingDataset, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.train.feature_names or default_feature_names(self.train.n_features)


@dataclass(frozen=True)
class TrainedModel:
    """What a ranker's `_train` returns.

    description : the learnt model
    state : further arrays the class keeps in the ranker file
    history : values by training step, lists of equal length
    """

    description: RankerDescription
    state: dict[str, np.ndarray]
    history: dict[str, list[Any]]


class Ranker(Estimator):
    """A ranking function that can be trained.

    A subclass has a `name` (used by the command line and in ranker files), a constructor that only stores its
    parameters, a `normalize` parameter, and `_train`. It also checks its parameters in `_check_parameters`.

    Parameters
    ----------
    normalize : "auto", "none", "standard", "query-minmax" or "letor"
        How features are scaled before the model reads them: not at all; by their mean and standard deviation in the
        training data; to [0, 1] within each query; or the same, with missing values as the query's minimum. "auto" is
        "query-minmax" for several queries, "standard" for one, "none" for a sparse matrix.
    device : str
        Where training runs, if there is a choice. "auto" is a GPU if it can train this, otherwise the CPU.

    Attributes
    ----------
    description_ : RankerDescription
        The learnt model; every prediction evaluates it.
    history_ : dict of str to list
        Figures by training step, lists of equal length. If training is done in steps, `seconds` is among them: how long
        all steps up to this one took. A ranker file leaves it out, so that the same training gives the same file.
    metrics_ : dict
        What was measured on which data, free-form; kept in the ranker file.
    n_features_in_ : int
    feature_names_in_ : array of str (n_features,)
        The names of the columns in training; not there if they had none.
    feature_importances_ : float64 array (n_features,)
        How much each feature moves the score: see `rankwell.scoring.importance`.
    coef_, intercept_ : float64 array (n_features,), float
        Of a linear ranker: see `rankwell.scoring.linear_form`. Other rankers do not have them.
    chosen_ : dict
        The values that training chose for parameters that were left to it ("auto"), by name.
    cluster_ : ClusterReport
        After `fit_cluster`: of each worker its documents, speed, time lost waiting, and bytes sent.
    best_iteration_, best_score_ : int or None, float or None
        The step of `history_` with the best figure on the validation set, counted from 1, the first of equals, and that
        figure; None without a validation set, or without steps.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> rankers = [rankwell.LeastSquares(), rankwell.RankSVM()]
    >>> all(isinstance(ranker, rankwell.Ranker) for ranker in rankers)
    True
    >>> [len(ranker.fit(data).predict(data)) for ranker in rankers]
    [300, 300]
    """

    name: ClassVar[str]
    can_continue: ClassVar[bool] = False
    # Whether it trains on features on disk, block by block.
    can_stream: ClassVar[bool] = False
    # Whether training takes missing values for 0, after normalisation.
    missing_is_zero: ClassVar[bool] = True
    normalize: str

    requested_metadata = ("qid", "eval_set", "eval_qid", "eval_group", "callback")

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        callback: Callback | None = None,
        init_model: Ranker | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on judged queries.

        Parameters
        ----------
        X : RankingDataset; or array, sparse matrix, frame of shape (n_docs, n_features)
        y : array of shape (n_docs,)
            Labels, the larger the better. Not to be passed with a RankingDataset, which has its own.
        qid, group : array
            The query of each row, or the number of rows of each query: see `RankingDataset`.
        sample_weight : array of shape (n_queries,) or (n_docs,), optional
            How much each query counts (as in XGBRanker), or each row.
        eval_set : RankingDataset or (X, y), or a list of them, optional
            Validation data for history and early stopping. Of several, all are measured after each step (in `history_`
            as "eval_set 1 ndcg@10" and so on) and the last one is watched (as "validation ndcg@10").
        eval_qid, eval_group : array, or a list of arrays
            The queries of `eval_set`.
        callback : callable, optional
            Called with a `TrainingStep` after each step. If it returns True, training ends after that step, as if all
            steps were done.
        init_model : Ranker or path, optional
            A trained ranker of the same class to continue from, if the class supports it (`can_continue`). Its
            normaliser is kept.
        """
        self._check_parameters()
        train = weighted(as_dataset(X, y, qid=qid, group=group), sample_weight)
        self._check_training_data(train)
        if train.candidates is not None:
            train.candidates.warn_of_training()
        without_queries = lacks_queries(X, qid, group)
        if without_queries:
            logger.warning("without qid or group all %d rows are one query: pass one of them.", train.n_docs)
        task = self._training_task(train, (eval_set, eval_qid, eval_group), callback, init_model)
        warn_of_categories(task.train, type(self).__name__, self.get_params(deep=False))
        check_learnable(task.train, missing_is_zero=self.missing_is_zero)
        self._keep(self._train(task))
        self._trained_without_queries = without_queries
        self.metrics_: dict[str, Any] = {}
        return self

    def fit_cluster(
        self,
        parts: Any,
        *,
        cluster: str = "local",
        workers: int | None = None,
        gpus_per_worker: float = 0,
        division: str = "auto",
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        callback: Callback | None = None,
        init_model: Ranker | str | os.PathLike[str] | None = None,
        label: str = "label",
        qid: str = "qid",
        on_bad_line: str = "error",
        memory: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        dashboard: bool = False,
    ) -> Self:
        """Train on files that the workers of a cluster read themselves (needs the extra `cluster`).

        See the guide, `docs/guide/cluster.md`. What training took is in `cluster_` afterwards, worker by worker.

        Parameters
        ----------
        parts : str or path, or a list of them
            Data files as `rankwell.read` takes them, patterns such as `part-*.parquet`, or folders of such files;
            every worker must be able to open them. A query must be whole, and in one file.
        cluster : "local", "auto" or an address
            "local" starts Ray on this machine, on its loopback interface, and stops it afterwards; "auto" takes the Ray
            that runs here already, if there is one; an address such as "10.0.0.1:6379" is that of a running Ray.
        workers : int, optional
            Processes; by default one for each CPU of the cluster. Each runs `n_jobs` threads if the ranker has that
            parameter, else its share of the CPUs.
        gpus_per_worker : float
            GPUs that each worker takes, for rankers whose workers can use one.
        division : "auto", "documents" or "features"
            RankBoost: whether a worker has all features of some queries, or some features of all documents. The model
            does not depend on it.
        eval_set, eval_qid, eval_group, callback, init_model
            As in `fit`; validation data are this process's.
        label, qid, on_bad_line
            As in `rankwell.read`.
        memory, scratch
            As in `rankwell.read`: what each worker may use, and the folder of its temporary files.
        dashboard : bool
            Whether a Ray that is started here has its dashboard.
        """
        from importlib import import_module

        # Named, not imported: the cluster is built on rankers, not rankers on the cluster.
        training = import_module("rankwell.cluster.training")
        reading = import_module("rankwell.cluster.part_reading").Reading(
            label,
            qid,
            on_bad_line,
            memory=None if memory is None else as_bytes("memory", memory),
            scratch=None if scratch is None else os.fspath(scratch),
        )
        training.fit_on_cluster(
            self,
            parts,
            cluster=cluster,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            division=division,
            evaluation=(eval_set, eval_qid, eval_group),
            callback=callback,
            init_model=init_model,
            reading=reading,
            dashboard=dashboard,
        )
        return self

    def _check_training_data(self, train: RankingDataset) -> None:
        if not train.has_labels:
            raise DataError(
                f"there are no labels to learn from: {type(self).__name__} requires y to be passed, but the target y "
                "is None."
            )
        if train.n_docs == 0:
            raise DataError("there are no documents to learn from: X has no rows.")
        if train.n_docs == 1:
            raise DataError("there is nothing to rank: X has 1 sample. A ranker learns from rows of different labels.")
        if train.n_features == 0:
            raise DataError(
                f"there are no features to learn from: X has 0 feature(s) (shape=({train.n_docs}, 0)) while a minimum "
                "of 1 is required. Check that this is the right data."
            )

    def _training_task(
        self,
        train: RankingDataset,
        evaluation: tuple[Any, Any, Any],
        callback: Callback | None,
        init_model: Ranker | str | os.PathLike[str] | None,
    ) -> TrainingTask:
        """What `_train` gets, from the arguments of `fit`; `evaluation` is eval_set, eval_qid and eval_group.

        An earlier model gives the order of the columns, and the normaliser.
        """
        earlier = self._earlier_model(init_model)
        if earlier is None:
            normaliser = fit_normaliser(self.normalize, train)
        else:
            train = in_order_of(earlier._fitted_description(), train, "init_model")
            normaliser = earlier.description_.normaliser
            check_choice("normalize", self.normalize, CHOICES)
            if self.normalize not in (AUTO, normaliser.name):
                logger.warning(
                    "normalize=%r is not used: the model that training continues from has %r, which it keeps.",
                    self.normalize,
                    normaliser.name,
                )
        eval_sets = evaluation_sets(*evaluation, train)
        if train.n_queries > 1 and any(part.n_queries == 1 for part in eval_sets):
            logger.warning("eval_set is one query: pass eval_qid or eval_group if its rows belong to several.")
        check_streaming(self, train, eval_sets)
        warn_of_empty_features(train)
        return TrainingTask(
            train=self._prepared(train, normaliser),
            validation=self._prepared(stacked(eval_sets), normaliser) if eval_sets else None,
            normaliser=normaliser,
            callback=callback or ignore_step,
            init_model=earlier,
            eval_sets=eval_sets,
        )

    def _prepared(self, dataset: RankingDataset, normaliser: Normaliser) -> RankingDataset:
        """The dataset as `_train` reads it: normalised."""
        features = normaliser.apply(dataset)
        return dataset if features is dataset.features else dataset.replace(features=features)

    def settled(self, trained: Sequence[Self], share: float) -> Self:
        """An untrained ranker with what `trained` chose by their validation data as parameters.

        For training on all of the data, without validation data, after cross-validation.

        Parameters
        ----------
        trained : rankers with this ranker's parameters, each fitted to a part of the data, the rest its eval_set
        share : the share of the data that each of them learnt from
        """
        return self.untrained()

    def _check_parameters(self) -> None:
        """Raise ParameterError for a parameter outside what is allowed."""

    def _streaming_bytes(self, sizes: StreamedSizes) -> int:
        """About how much memory training on features on disk takes, besides what the process has now."""
        raise TypeError(f"{type(self).__name__} cannot stream: it must define _streaming_bytes.")

    def _train(self, task: TrainingTask) -> TrainedModel:
        raise TypeError(f"{type(self).__name__} cannot be trained: it must define _train.")

    def _earlier_model(self, init_model: Ranker | str | os.PathLike[str] | None) -> Self | None:
        """The ranker to continue from, checked: of this class, and trained."""
        if init_model is None:
            return None
        if not self.can_continue:
            raise ParameterError(
                f"{type(self).__name__} cannot continue from an earlier model: leave out ", Parameter("init_model"), "."
            )
        earlier = init_model if isinstance(init_model, Ranker) else type(self).from_file(init_model)
        if not isinstance(earlier, type(self)):
            raise ParameterError(f"must be of the same kind, {self.name}, got {earlier.name}.", parameter="init_model")
        earlier._fitted_description()
        return earlier

    def _keep(self, model: TrainedModel) -> None:
        self.description_ = model.description
        self.state_ = model.state
        self.history_ = model.history
        self.n_features_in_ = model.description.n_features

    def predict(
        self, X: Any, *, qid: Any = None, group: Any = None, n_rounds: int | None = None, device: str = "cpu"
    ) -> np.ndarray:
        """Score every row; the larger, the better. Scores compare within a query.

        Parameters
        ----------
        X : RankingDataset; or array, sparse matrix, frame of shape (n_docs, n_features)
        qid, group : array, optional
            Needed if the normaliser works by query.
        n_rounds : int, optional
            Score with only the first `n_rounds` rounds, if the model is a sum of rounds (boosting).
        device : "cpu", "cuda" or "auto"
            Where rows are scored; the model may have been trained anywhere.

        Returns
        -------
        float64 array (n_docs,), in the order of the given rows
        """
        description = self._fitted_description()
        dataset = self._dataset_to_score(X, qid, group)
        return dataset.to_user_order(score_description(description, dataset, n_rounds=n_rounds, device=device))

    def contributions(self, X: Any, *, qid: Any = None, group: Any = None, n_rounds: int | None = None) -> np.ndarray:
        """What each feature adds to the score of every row: a tree's value is divided by exact Shapley values.

        Of an imported ranking or regression model, the same numbers as LightGBM's `pred_contrib` and XGBoost's
        `pred_contribs`. They differ where the objective transforms the sum of the trees (binary, logistic, Poisson,
        ...): there these sum to the score, which is transformed, and those to the sum before that. Of LightGBM's
        random forests, whose score is a mean of trees, those sum to the trees' sum.

        Rankers that are no sum of trees have them as well, computed row by row: weight · value in a linear one; in a
        network, parts that sum to the score (DeepLIFT's rescale rule). Rankers that read formulas or other rankers'
        scores have none.

        Parameters
        ----------
        X, qid, group, n_rounds
            As in `predict`.

        Returns
        -------
        float64 array (n_docs, n_features + 1), in the order of the given rows
            The last column is what belongs to no feature. Each row sums to its score. Of a cascade, a document that
            the first pass did not keep has the parts of its first score, and the last column has what takes it down to
            its place below those that were kept.

        Examples
        --------
        >>> import rankwell
        >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
        >>> ranker = rankwell.LambdaMART(n_rounds=10).fit(data)
        >>> parts = ranker.contributions(data)
        >>> parts.shape
        (300, 6)
        >>> bool(abs(parts.sum(axis=1) - ranker.predict(data)).max() < 1e-12)
        True
        """
        description = self._fitted_description()
        dataset = self._dataset_to_score(X, qid, group)
        return dataset.to_user_order(feature_contributions(description, dataset, n_rounds=n_rounds))

    def _dataset_to_score(self, X: Any, qid: Any, group: Any) -> RankingDataset:
        """X with the columns in the ranker's order; refused if a query normaliser would have to guess the queries."""
        description = self._fitted_description()
        dataset = in_order_of(description, as_dataset(X, None, qid=qid, group=group), type(self).__name__)
        needs_queries = description.normaliser.needs_queries and not getattr(self, "_trained_without_queries", False)
        if needs_queries and lacks_queries(X, qid, group):
            raise DataError(
                f"this ranker was trained with normalize={description.normaliser.name!r}, which works by query: "
                "pass qid (the query of each row) or group (rows in each query), or train with normalize='standard'."
            )
        return dataset

    def rank(self, X: Any, *, qid: Any = None, group: Any = None) -> list[np.ndarray]:
        """The documents of each query, best first; equal scores keep their order.

        Returns
        -------
        list of int64 arrays, one per query: rows of X (`doc_idx`)
        """
        dataset = as_dataset(X, None, qid=qid, group=group)
        scores = self.predict(dataset)
        rows_of_user = np.arange(dataset.n_docs) if dataset.doc_idx is None else dataset.doc_idx
        rankings = []
        for rows in dataset.queries():
            doc_idx = rows_of_user[rows]
            rankings.append(doc_idx[np.argsort(-scores[doc_idx], kind="stable")])
        return rankings

    def score(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None, sample_weight: Any = None) -> float:
        """The mean NDCG@10 under the default convention, as scikit-learn's model selection expects it.

        Rows without queries are refused, because they would count as one query; a ranker that was trained like that
        is scored with a warning. `sample_weight` (n_queries,) says how much each query counts. scikit-learn's Pipeline
        passes it even if it is None, and cannot score a ranker without this parameter.
        """
        from rankwell.metrics.evaluation import evaluate

        if lacks_queries(X, qid, group):
            self._note_absent_queries(len(y) if hasattr(y, "__len__") else None)
        dataset = as_dataset(X, y, qid=qid, group=group)
        if sample_weight is not None:
            dataset = dataset.replace(query_weights=sample_weight)
        return float(evaluate(dataset, self.predict(dataset), metrics=("ndcg@10",)).mean["ndcg@10"])

    def _note_absent_queries(self, n_rows: int | None) -> None:
        rows = "all rows" if n_rows is None else f"all {n_rows} rows"
        if getattr(self, "_trained_without_queries", True):
            logger.warning("without qid or group %s are scored as one query: pass one of them.", rows)
            return
        raise DataError(
            f"score was given no queries: {rows} would count as one query. Pass qid or group (group=[n_rows] if it is "
            "one query). For scikit-learn's model selection and pipelines, enable metadata routing, which passes qid "
            "on: sklearn.set_config(enable_metadata_routing=True)."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one file (see `rankwell.load`).

        The same data, parameters and device give the same file, byte for byte; so `history_["seconds"]`, how long
        training took, is not in it.
        """
        write_ranker_file(
            path,
            RankerFile(
                ranker=self.name,
                parameters=_jsonable(self.get_params(deep=False), type(self).__name__),
                description=self._fitted_description(),
                state=self.state_,
                history={name: values for name, values in self.history_.items() if name != SECONDS},
                metrics=self.metrics_,
            ),
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """The ranker of this class stored at `path`."""
        return cls.from_content(read_ranker_file(path), path)

    @classmethod
    def from_content(cls, content: RankerFile, path: str | os.PathLike[str]) -> Self:
        """The fitted ranker that `content`, read from `path`, describes."""
        if content.ranker != cls.name:
            raise FileFormatError(f"{path} holds a ranker of the kind {content.ranker}, not {cls.name}.")
        known = cls._get_param_names()
        unknown = sorted(set(content.parameters) - set(known))
        if unknown:
            raise FileFormatError(f"{path} has parameters that {cls.__name__} does not know: {', '.join(unknown)}.")
        ranker = cls(**{name: _from_json(value) for name, value in content.parameters.items()})
        ranker._keep(TrainedModel(content.description, content.state, content.history))
        ranker.metrics_ = content.metrics
        try:
            ranker._check_state()
        except FileFormatError as cause:
            raise FileFormatError(f"{path}: {cause}") from cause
        return ranker

    def _check_state(self) -> None:
        """Raise FileFormatError if `state_`, read from a file, is not what this class keeps there."""

    def _fitted_description(self) -> RankerDescription:
        if not hasattr(self, "description_"):
            raise not_fitted_error(
                f"this {type(self).__name__} is not trained yet: call fit first, or load a ranker file."
            )
        return self.description_

    @property
    def feature_names_in_(self) -> np.ndarray:
        names = self._fitted_description().feature_names
        if names == default_feature_names(len(names)):
            raise AttributeError(f"this {type(self).__name__} was trained on columns without names.")
        return np.array(names, dtype=object)

    @property
    def feature_importances_(self) -> np.ndarray:
        return feature_importances(self._fitted_description())

    @property
    def chosen_(self) -> dict[str, Any]:
        self._fitted_description()
        return {}

    @property
    def coef_(self) -> np.ndarray:
        return linear_form(self._fitted_description()).coef

    @property
    def intercept_(self) -> float:
        return linear_form(self._fitted_description()).intercept

    @property
    def best_iteration_(self) -> int | None:
        return self._watched().best_step or None

    @property
    def best_score_(self) -> float | None:
        return self._watched().best_value

    def _watched(self) -> EarlyStopping:
        self._fitted_description()
        watched = EarlyStopping(None)
        watched.replay(next((values for name, values in self.history_.items() if name.startswith(WATCHED)), ()))
        return watched

    def _takes_sparse(self) -> bool:
        # Any other normaliser would fill a sparse matrix; "auto" takes none for one.
        return self.normalize in ("none", "auto")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "description_")


def ignore_step(step: TrainingStep) -> None:
    """The default callback."""


def _jsonable(parameters: dict[str, Any], owner: str) -> dict[str, Any]:
    """Parameters as JSON values, without NumPy's types. A function cannot be stored, so it is left out."""
    functions = [name for name, value in parameters.items() if callable(value)]
    for name in functions:
        logger.warning("%s: %s is a function, which a ranker file cannot hold: it is left out.", owner, name)
    return {name: _plain(value) for name, value in parameters.items() if name not in functions}


def _plain(value: Any) -> Any:
    """A value, or a list of values, without NumPy's types; a path as text, a set as a list in order."""
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any) -> Any:
    """JSON has no tuples; parameters that hold several values are tuples."""
    return tuple(_from_json(item) for item in value) if isinstance(value, list) else value
