"""What all rankers share: scikit-learn's conventions, the normaliser, prediction, and the ranker file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, FileFormatError, NotFittedError, Parameter, ParameterError
from rankwell.rankers.estimator import Estimator
from rankwell.scoring.description import RankerDescription, default_feature_names
from rankwell.scoring.normaliser import Normaliser, fit_normaliser
from rankwell.scoring.ranker_file import RankerFile, read_ranker_file, write_ranker_file
from rankwell.scoring.scorer import score_description

logger = logging.getLogger("rankwell")

# The history's figure of the training time up to each step.
SECONDS = "seconds"


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

    validation is None if no eval_set was given; init_model is a fitted ranker of the same class to continue from.
    """

    train: RankingDataset
    validation: RankingDataset | None
    normaliser: Normaliser
    callback: Callback
    init_model: Ranker | None = None

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

    Attributes
    ----------
    description_ : RankerDescription
        The learnt model; every prediction evaluates it.
    history_ : dict of str to list
        Figures by training step, lists of equal length. If training is done in steps, `seconds` is among them: how long
        all steps up to this one took. A ranker file leaves it out, so that the same training gives the same file.
    metrics_ : dict
        What was measured on which data, free-form; kept in the ranker file.
    """

    name: ClassVar[str]
    can_continue: ClassVar[bool] = False
    normalize: str

    requested_metadata = ("qid",)

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
        eval_set : RankingDataset or (X, y), optional
            Validation data for early stopping and history; a list of one, as XGBRanker takes it, works too.
        eval_qid, eval_group : array
            The queries of `eval_set`.
        callback : callable, optional
            Called with a `TrainingStep` after each step. If it returns True, training ends after that step, as if all
            steps were done.
        init_model : Ranker or path, optional
            A trained ranker of the same class to continue from, if the class supports it (`can_continue`). Its
            normaliser is kept.
        """
        self._check_parameters()
        train = _weighted(as_dataset(X, y, qid=qid, group=group), sample_weight)
        if not train.has_labels:
            raise DataError("there are no labels to learn from: pass y.")
        if train.n_docs == 0:
            raise DataError("there are no documents to learn from: X has no rows.")
        if train.n_features == 0:
            raise DataError("there are no features to learn from: X has no columns. Check that this is the right data.")
        if not isinstance(X, RankingDataset) and qid is None and group is None:
            logger.warning("without qid or group all %d rows are one query: pass one of them.", train.n_docs)
        validation = validation_set(eval_set, eval_qid, eval_group, train.n_features)
        if validation is not None and validation.n_queries == 1 and train.n_queries > 1:
            logger.warning("eval_set is one query: pass eval_qid or eval_group if its rows belong to several.")
        task = self._training_task(train, validation, callback, init_model)
        self._keep(self._train(task))
        self.metrics_: dict[str, Any] = {}
        return self

    def _training_task(
        self,
        train: RankingDataset,
        validation: RankingDataset | None,
        callback: Callback | None,
        init_model: Ranker | str | os.PathLike[str] | None,
    ) -> TrainingTask:
        """What `_train` gets: both datasets normalised, by the earlier model's normaliser if there is one."""
        earlier = self._earlier_model(init_model, train)
        normaliser = fit_normaliser(self.normalize, train) if earlier is None else earlier.description_.normaliser
        return TrainingTask(
            train=_normalised(train, normaliser),
            validation=None if validation is None else _normalised(validation, normaliser),
            normaliser=normaliser,
            callback=callback or ignore_step,
            init_model=earlier,
        )

    def _check_parameters(self) -> None:
        """Raise ParameterError for a parameter outside what is allowed."""

    def _train(self, task: TrainingTask) -> TrainedModel:
        raise TypeError(f"{type(self).__name__} cannot be trained: it must define _train.")

    def _earlier_model(self, init_model: Ranker | str | os.PathLike[str] | None, train: RankingDataset) -> Self | None:
        """The ranker to continue from, checked: of this class, trained, and on the same features."""
        if init_model is None:
            return None
        if not self.can_continue:
            raise ParameterError(
                f"{type(self).__name__} cannot continue from an earlier model: leave out ", Parameter("init_model"), "."
            )
        earlier = init_model if isinstance(init_model, Ranker) else type(self).from_file(init_model)
        if not isinstance(earlier, type(self)):
            raise ParameterError(f"must be a {self.name} ranker, got a {earlier.name} ranker.", parameter="init_model")
        _check_features(earlier._fitted_description(), train)
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
        dataset = as_dataset(X, None, qid=qid, group=group)
        _check_features(description, dataset)
        if description.normaliser.needs_queries and not isinstance(X, RankingDataset) and qid is None and group is None:
            raise DataError(
                f"this ranker was trained with normalize={description.normaliser.name!r}, which works by query: "
                "pass qid (the query of each row) or group (rows in each query)."
            )
        return dataset.to_user_order(score_description(description, dataset, n_rounds=n_rounds, device=device))

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

        `sample_weight` (n_queries,) says how much each query counts. scikit-learn's Pipeline passes it even if it is
        None, and cannot score a ranker without this parameter.
        """
        from rankwell.metrics.evaluation import evaluate

        dataset = as_dataset(X, y, qid=qid, group=group)
        if sample_weight is not None:
            dataset = dataset.replace(query_weights=sample_weight)
        return float(evaluate(dataset, self.predict(dataset), metrics=("ndcg@10",)).mean["ndcg@10"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker to one file (see `rankwell.load`).

        The same data, parameters and device give the same file, byte for byte; so `history_["seconds"]`, how long
        training took, is not in it.
        """
        write_ranker_file(
            path,
            RankerFile(
                ranker=self.name,
                parameters=_jsonable(self.get_params(deep=False)),
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
            raise FileFormatError(f"{path} holds a {content.ranker} ranker, not a {cls.name} ranker.")
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
            raise NotFittedError(
                f"this {type(self).__name__} is not trained yet: call fit first, or load a ranker file."
            )
        return self.description_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "description_")


def as_dataset(X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> RankingDataset:
    """X as a RankingDataset: X itself if it is one."""
    if not isinstance(X, RankingDataset):
        return RankingDataset(X, y, qid=qid, group=group)
    if y is not None or qid is not None or group is not None:
        raise DataError("a RankingDataset has its own labels and queries: do not pass y, qid or group with it.")
    return X


def _weighted(dataset: RankingDataset, sample_weight: Any) -> RankingDataset:
    """The dataset with weights by query or by row, told apart by their number."""
    if sample_weight is None:
        return dataset
    length = len(np.atleast_1d(sample_weight))
    if length not in (dataset.n_queries, dataset.n_docs):
        raise DataError(
            f"sample_weight must have one weight per query ({dataset.n_queries}) or per row ({dataset.n_docs}), "
            f"got {length}."
        )
    by_query = length == dataset.n_queries
    return dataset.replace(**{"query_weights" if by_query else "document_weights": sample_weight})


def validation_set(eval_set: Any, eval_qid: Any, eval_group: Any, n_features: int) -> RankingDataset | None:
    """The validation data of `fit`, as a dataset with `n_features` features and labels; None for None."""
    if eval_set is None:
        return None
    if isinstance(eval_set, list):
        if len(eval_set) != 1:
            raise DataError(
                f"must be one validation set, got {len(eval_set)}. Pass only the one to watch.", parameter="eval_set"
            )
        eval_set = eval_set[0]
        eval_qid = eval_qid[0] if isinstance(eval_qid, list) and len(eval_qid) == 1 else eval_qid
        eval_group = eval_group[0] if isinstance(eval_group, list) and len(eval_group) == 1 else eval_group
    if isinstance(eval_set, RankingDataset):
        dataset = as_dataset(eval_set, qid=eval_qid, group=eval_group)
    elif isinstance(eval_set, tuple) and len(eval_set) == 2:
        dataset = as_dataset(*eval_set, qid=eval_qid, group=eval_group)
    else:
        raise DataError(
            "must be a RankingDataset or (X, y); its queries go into eval_qid or eval_group.", parameter="eval_set"
        )
    if dataset.n_features != n_features:
        raise DataError(
            f"must have the {n_features} features of the training data, it has {dataset.n_features}.",
            parameter="eval_set",
        )
    if not dataset.has_labels:
        raise DataError("must have labels.", parameter="eval_set")
    return dataset


def _normalised(dataset: RankingDataset, normaliser: Normaliser) -> RankingDataset:
    features = normaliser.apply(dataset)
    return dataset if features is dataset.features else dataset.replace(features=features)


def _check_features(description: RankerDescription, dataset: RankingDataset) -> None:
    if dataset.n_features != description.n_features:
        raise DataError(
            f"this ranker reads {description.n_features} features, the data has {dataset.n_features}. "
            "Absent last columns of a text file can be filled with read(path, n_features=...)."
        )
    names = dataset.feature_names
    if names is None or names == description.feature_names:
        return
    if description.feature_names == default_feature_names(description.n_features):
        return
    place = next(i for i, name in enumerate(names) if name != description.feature_names[i])
    raise DataError(
        f"this ranker reads {description.feature_names[place]!r} as feature {place + 1}, the data has {names[place]!r} "
        "there. Bring the columns into the order of training."
    )


def ignore_step(step: TrainingStep) -> None:
    """The default callback."""


def _jsonable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON values: NumPy numbers become plain ones."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}


def _from_json(value: Any) -> Any:
    """JSON has no tuples; parameters that hold several values are tuples."""
    return tuple(_from_json(item) for item in value) if isinstance(value, list) else value
