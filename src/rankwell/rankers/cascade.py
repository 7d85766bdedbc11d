"""Cascades: a cheap first pass orders many documents, an expensive second one orders the best of them.

Both passes learn from the same data. Features are put in the order in which they are worth their cost
(`feature_order`); first passes are trained on the first few of them, and on those that selection already knows, which
cost next to nothing; second passes on more, up to all, and on the first ones of the order by what they are worth alone:
of few documents an expensive feature may be the best one. Every pair of passes, with every number of documents kept, is
a point: its metric on validation queries, its cost by the table of feature costs and the measured time of the models.
One point is chosen, by a budget or by what the full ranker reaches.

Wang, Lin and Metzler (2011), A cascade ranking model for efficient ranked retrieval, SIGIR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.metrics.conventions import DEFAULT, get_convention
from rankwell.metrics.evaluation import evaluate
from rankwell.metrics.names import parse_metric
from rankwell.parameters import check_number, check_whole_number
from rankwell.rankers.base import Ranker, TrainedModel, TrainingStep, TrainingTask
from rankwell.rankers.cascade_curve import CascadePoint, best_points, choose_point
from rankwell.rankers.feature_order import feature_order
from rankwell.scoring.composition import FirstPass, RankerPart, best_rows, rank_below, rows_of
from rankwell.scoring.costs import Cost, FeatureCosts, measure_model
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.feature_use import over_features, read_features
from rankwell.scoring.scorer import score_description

FIRST = "first"
# Second passes are trained on this many features, and on all.
_SECOND_SIZES = (4, 8, 16, 32, 64)
_KEEPS = (5, 10, 15, 20, 30, 50, 100, 200, 500)
_FIRST_SIZES = (1, 2, 4, 8)
# Rows that are enough to measure a model's time on.
_TIMED_ROWS = 1000


class Cascade(Ranker):
    """Two rankers in one: the first keeps the best documents of a query, the second orders those.

    Documents that the first pass does not keep rank below, in its order. Which features each pass reads, and how many
    documents are kept, is chosen on validation queries: `eval_set`, or parts of the training queries.

    The same data and costs give the same two rankers; but costs of models are measured, so the choice between two
    points of nearly the same cost can differ from run to run.

    Parameters
    ----------
    first, second : str
        The rankers, by the names of `rankwell train`.
    first_parameters, second_parameters : dict, optional
        Their parameters.
    budget : float, optional
        Microseconds a query: the cascade within it that is most like the full ranker is chosen. Without a budget, the
        cheapest that is as good as the full ranker (`second` on all features and all documents), up to `tolerance`.
    budget_share : float, optional
        The same as a share of what the full ranker costs; at most one of the two.
    tolerance : float
        How much of the metric may be lost, one standard error included.
    keep : tuple of int
        How many documents the first pass may keep.
    first_sizes : tuple of int
        How many features the first pass may read; those that selection already knows are always tried too.
    second_sizes : tuple of int
        How many the second may read; all of them are always tried too.
    n_candidates : int, optional
        Documents a query for which costs are counted; by default, as many as the validation queries have.
    n_folds : int
        Without an `eval_set`, parts of the training queries, each of which validates rankers trained on the others.
    eval_metric, eval_convention : str
    random_state : int
        Draws the parts.

    Attributes
    ----------
    points_ : list of CascadePoint
        Everything that was tried.
    curve_ : list of CascadePoint
        Those that no other one beats, by cost.
    full_ : CascadePoint
        The full ranker.
    point_ : CascadePoint
        What was chosen.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> cascade = rankwell.Cascade(second="ranksvm", keep=(5, 10), first_sizes=(1,), second_sizes=(3,), n_folds=2)
    >>> cascade.fit(data).point_.cost <= cascade.full_.cost
    True
    """

    name = "cascade"
    normalize = "none"

    def __init__(
        self,
        first: str = "least-squares",
        second: str = "rankboost",
        first_parameters: dict[str, Any] | None = None,
        second_parameters: dict[str, Any] | None = None,
        budget: float | None = None,
        budget_share: float | None = None,
        tolerance: float = 0.003,
        keep: tuple[int, ...] = _KEEPS,
        first_sizes: tuple[int, ...] = _FIRST_SIZES,
        second_sizes: tuple[int, ...] = _SECOND_SIZES,
        n_candidates: int | None = None,
        n_folds: int = 5,
        eval_metric: str = "ndcg@10",
        eval_convention: str = DEFAULT.name,
        random_state: int = 0,
    ) -> None:
        self.first = first
        self.second = second
        self.first_parameters = first_parameters
        self.second_parameters = second_parameters
        self.budget = budget
        self.budget_share = budget_share
        self.tolerance = tolerance
        self.keep = keep
        self.first_sizes = first_sizes
        self.second_sizes = second_sizes
        self.n_candidates = n_candidates
        self.n_folds = n_folds
        self.eval_metric = eval_metric
        self.eval_convention = eval_convention
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, costs: FeatureCosts | None = None, **options: Any) -> Self:
        """Train both passes.

        Parameters
        ----------
        costs : FeatureCosts, optional
            What features cost (`rankwell.features.cost_measurement.index_costs`, `rankwell.scoring.costs.read_costs`);
            by default one microsecond per document each.
        **options
            Those of `Ranker.fit`.
        """
        self._costs = FeatureCosts() if costs is None else costs
        super().fit(X, y, **options)
        self.metrics_ = self._report()
        return self

    def _check_parameters(self) -> None:
        if self.budget is not None:
            check_number("budget", self.budget, above=0)
        if self.budget_share is not None:
            check_number("budget_share", self.budget_share, above=0)
            if self.budget is not None:
                raise ParameterError("give budget or budget_share, not both.")
        check_number("tolerance", self.tolerance, least=0)
        check_whole_number("n_folds", self.n_folds, least=2)
        if self.n_candidates is not None:
            check_whole_number("n_candidates", self.n_candidates, least=1)
        for name in ("keep", "first_sizes", "second_sizes"):
            values = getattr(self, name)
            for value in values if isinstance(values, tuple | list) else (values,):
                check_whole_number(name, value, least=1)
        for ranker in (self._make(self.first, self.first_parameters), self._make(self.second, self.second_parameters)):
            ranker._check_parameters()
        parse_metric(self.eval_metric)
        get_convention(self.eval_convention)

    def _train(self, task: TrainingTask) -> TrainedModel:
        if task.train.is_sparse:
            raise DataError("a cascade is trained on dense features: pass an array.")
        passes = _Passes(self, task, self._costs)
        splits = list(self._splits(task))
        trained = []
        for number, split in enumerate(splits):
            trained.append(passes.train(split))
            task.callback(TrainingStep(number + 1, len(splits) + 1, {}))
        final = trained[0] if task.validation is not None else passes.train(_Split(task.train, None, None))
        self.points_, self.full_ = passes.points(splits, trained, final)
        self.curve_ = best_points(self.points_)
        budget = self.budget if self.budget_share is None else self.budget_share * self.full_.cost
        self.point_ = choose_point(self.points_, self.full_, budget=budget, tolerance=self.tolerance)
        task.callback(TrainingStep(len(splits) + 1, len(splits) + 1, {}))
        return TrainedModel(final.description(self.point_, task.feature_names), state={}, history={})

    def _splits(self, task: TrainingTask) -> Iterator[_Split]:
        """The validation data with rows of all of it, or parts of the training queries."""
        if task.validation is not None:
            yield _Split(task.train, task.validation, task.validation)
            return
        n_queries = task.train.n_queries
        if n_queries < self.n_folds:
            raise DataError(f"{n_queries} queries cannot be divided into {self.n_folds} parts.", parameter="n_folds")
        part_of = np.random.default_rng(self.random_state).permutation(np.arange(n_queries) % self.n_folds)
        for part in range(self.n_folds):
            yield _Split(task.train.subset(part_of != part), task.train.subset(part_of == part), None)

    def _make(self, name: str, parameters: Mapping[str, Any] | None) -> Ranker:
        from rankwell.rankers.registry import ranker_class

        found = ranker_class(name)
        known = found._get_param_names()
        unknown = sorted(set(parameters or {}) - set(known))
        if unknown:
            raise ParameterError(f"{name} has no parameter {unknown[0]!r}. It has {', '.join(known)}.")
        return found(**(parameters or {}))

    def _report(self) -> dict[str, Any]:
        """What a ranker file keeps: the curve, the choice and the costs."""
        return {
            "convention": self.eval_convention,
            "validation": {self.eval_metric: self.point_.metric},
            "cascade": {
                "metric": self.eval_metric,
                "costs": self._costs.source,
                "full": self.full_.to_json(),
                "chosen": self.point_.to_json(),
                "curve": [point.to_json() for point in self.curve_],
            },
        }


@dataclass(frozen=True, eq=False)
class _Split:
    """Queries to train on and to validate on; `watched` is what a ranker may stop early by."""

    train: RankingDataset
    validation: RankingDataset | None
    watched: RankingDataset | None


@dataclass(frozen=True, eq=False)
class _Trained:
    """The passes of one split, over all features.

    first, second : by the columns that they were trained on
    """

    first: dict[tuple[int, ...], RankerDescription]
    second: dict[tuple[int, ...], RankerDescription]

    def description(self, point: CascadePoint, names: tuple[str, ...]) -> RankerDescription:
        """The cascade of a point."""
        second = self.second[point.second_columns]
        if point.keep is None:
            return second
        part = RankerPart(FIRST, tuple(range(len(names))), self.first[point.first_columns])
        return replace(second, parts=(part,), first_pass=FirstPass(0, point.keep))


class _Passes:
    """Trains and measures first and second passes."""

    def __init__(self, cascade: Cascade, task: TrainingTask, costs: FeatureCosts) -> None:
        self._cascade, self._costs, self.names = cascade, costs, task.feature_names
        n_features = len(self.names)
        data = task.validation or task.train
        self._sizes = data.query_sizes if cascade.n_candidates is None else np.array([cascade.n_candidates])
        by_worth = feature_order(task.train, self._added_cost, random_state=cascade.random_state)
        by_gain = feature_order(task.train, lambda taken, feature: 1.0, random_state=cascade.random_state)
        selected = tuple(column for column, name in enumerate(self.names) if name in costs.selected)
        firsts = _prefixes([by_worth], cascade.first_sizes)
        self._firsts = list(dict.fromkeys([*firsts, selected] if selected else firsts))
        self._everything = tuple(range(n_features))
        self._seconds = list(dict.fromkeys([*_prefixes([by_worth, by_gain], cascade.second_sizes), self._everything]))
        most = int(self._sizes.max(initial=1))
        self._keeps = [keep for keep in sorted(cascade.keep) if keep < most]

    def train(self, split: _Split) -> _Trained:
        cascade = self._cascade
        makers = (
            (cascade.first, cascade.first_parameters, self._firsts),
            (cascade.second, cascade.second_parameters, self._seconds),
        )
        first, second = (
            {columns: self._train_one(cascade._make(name, parameters), columns, split) for columns in tried}
            for name, parameters, tried in makers
        )
        return _Trained(first, second)

    def points(
        self, splits: Sequence[_Split], trained: Sequence[_Trained], final: _Trained
    ) -> tuple[list[CascadePoint], CascadePoint]:
        """Every cascade, and the full ranker, measured on the validation queries of all splits."""
        data = [split.validation for split in splits if split.validation is not None]
        first = {
            columns: [score_description(one.first[columns], part) for one, part in zip(trained, data, strict=True)]
            for columns in self._firsts
        }
        costs = self._model_costs(final, data[0])
        points = []
        for second in self._seconds:
            rankers = [one.second[second] for one in trained]
            scores = [score_description(one, part) for one, part in zip(rankers, data, strict=True)]
            points.append(self._point(final, costs, (), second, None, data, scores))
            for columns in self._firsts:
                for keep in self._keeps:
                    scored = zip(rankers, data, first[columns], scores, strict=True)
                    passed = [_in_two_passes(one, part, own, full, keep) for one, part, own, full in scored]
                    points.append(self._point(final, costs, columns, second, keep, data, passed))
        full = next(p for p in points if p.keep is None and p.second_columns == self._everything)
        # The full ranker extracts every feature, as ranked search did before it knew what a ranker reads.
        everything = self._costs.of(self.names, self._mean_kept(None))
        model = costs["second", self._everything].of(self._mean_kept(None))
        return points, replace(full, second=self.names, second_cost=everything + model)

    def _train_one(self, ranker: Ranker, columns: Sequence[int], split: _Split) -> RankerDescription:
        """A ranker trained on some of the features, as a description over all of them."""
        names = [self.names[column] for column in columns]
        ranker.fit(_columns(split.train, columns, names), **self._watched(split, columns, names))
        return over_features(ranker.description_, self.names)

    def _watched(self, split: _Split, columns: Sequence[int], names: list[str]) -> dict[str, Any]:
        return {} if split.watched is None else {"eval_set": _columns(split.watched, columns, names)}

    def _point(
        self,
        final: _Trained,
        costs: Mapping[tuple[str, tuple[int, ...]], Cost],
        first: tuple[int, ...],
        second: tuple[int, ...],
        keep: int | None,
        data: Sequence[RankingDataset],
        scores: Sequence[np.ndarray],
    ) -> CascadePoint:
        by_query = np.concatenate([self._by_query(*one) for one in zip(data, scores, strict=True)])
        names = read_features(final.first[first]) if first else (), read_features(final.second[second])
        n_docs, n_kept = self._mean_kept(None), self._mean_kept(keep)
        first_cost = self._costs.of(names[0], n_docs) + costs["first", first].of(n_docs) if first else 0.0
        second_cost = self._costs.of(names[1], n_kept, fetched=names[0]) + costs["second", second].of(n_kept)
        metric = float(np.nanmean(by_query)) if (~np.isnan(by_query)).any() else float("nan")
        return CascadePoint(
            *names, len(first), len(second), keep, first_cost, second_cost, metric, by_query, first, second
        )

    def _by_query(self, dataset: RankingDataset, scores: np.ndarray) -> np.ndarray:
        cascade = self._cascade
        in_order = dataset.to_user_order(scores)
        found = evaluate(dataset, in_order, metrics=cascade.eval_metric, convention=cascade.eval_convention)
        return next(iter(found.per_query.values()))

    def _model_costs(self, trained: _Trained, data: RankingDataset) -> dict[tuple[str, tuple[int, ...]], Cost]:
        """By the pass, and by what it was trained on."""
        rows = data.dense_features()[:_TIMED_ROWS]
        return {
            (name, columns): self._model_cost(ranker, rows)
            for name, rankers in (("first", trained.first), ("second", trained.second))
            for columns, ranker in rankers.items()
        }

    def _model_cost(self, ranker: RankerDescription, rows: np.ndarray) -> Cost:
        """What a ranker takes for rows of the features that it reads: serving extracts no others."""
        names = read_features(ranker) or self.names[:1]
        columns = [self.names.index(name) for name in names]
        return measure_model(over_features(ranker, names), np.ascontiguousarray(rows[:, columns]))

    def _added_cost(self, taken: list[int], feature: int) -> float:
        """A feature's own part of the cost; at least a small share of the mean, since no feature is free."""
        n_docs = self._mean_kept(None)
        before = [self.names[j] for j in taken]
        added = self._costs.of([*before, self.names[feature]], n_docs) - self._costs.of(before, n_docs)
        return max(added, 0.2 * self._mean_cost)

    @property
    def _mean_cost(self) -> float:
        return self._costs.of(self.names, self._mean_kept(None)) / len(self.names)

    def _mean_kept(self, keep: int | None) -> float:
        """The documents of a query, of which at most `keep` are kept, in the mean."""
        return float(np.mean(self._sizes if keep is None else np.minimum(self._sizes, keep)))


def _prefixes(orders: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The first features of each order, ascending: by their number, up to all."""
    return [tuple(sorted(order[:size])) for size in sorted(set(sizes)) for order in orders]


def _columns(dataset: RankingDataset, columns: Sequence[int], names: list[str]) -> RankingDataset:
    """The dataset with some of its features."""
    part = dataset.replace(features=np.ascontiguousarray(dataset.features[:, list(columns)]))
    part.feature_names = tuple(names)
    return part


def _in_two_passes(
    second: RankerDescription, dataset: RankingDataset, first_scores: np.ndarray, scores: np.ndarray, keep: int
) -> np.ndarray:
    """The scores of a cascade from those of its passes; a second pass that normalises by query sees kept rows only."""
    kept = best_rows(first_scores, dataset.query_ptr, keep)
    passed = np.full(dataset.n_docs, np.nan)
    needs_queries = second.normaliser.needs_queries
    passed[kept] = score_description(second, rows_of(dataset, kept)) if needs_queries else scores[kept]
    return rank_below(passed, first_scores, dataset.query_ptr)
