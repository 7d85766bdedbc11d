"""The passes of a cascade: which features they read, what they are trained on, and what each pair of them reaches.

First passes are trained on the first few features by worth per cost (`feature_orders`), and on those that selection
already knows, which cost next to nothing. Second passes are trained on

- the first features by worth per cost, and where documents are kept by worth alone too: of few documents an expensive
  feature may be the best one;
- for each number of documents kept, the features that a ranker of these documents relies on most, as long as they fit
  a share of the full ranker's cost: a feature that does not fit is left out, and one that shares its work with a
  taken one costs next to nothing;
- all features.

A second pass learns from all documents. One that normalises by query is trained a second time, from the documents that
a first pass keeps: those are what it will rank, and they have other values than among all documents; but they are few.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.metrics.evaluation import evaluate
from rankwell.rankers.base import Ranker, TrainingTask
from rankwell.rankers.cascade_curve import CascadePoint
from rankwell.rankers.feature_order import feature_orders
from rankwell.scoring.composition import FirstPass, RankerPart, best_rows, rank_below, rows_of
from rankwell.scoring.costs import Cost, FeatureCosts, measure_model
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.feature_use import over_features, read_features
from rankwell.scoring.importance import feature_importances
from rankwell.scoring.normaliser import fit_normaliser
from rankwell.scoring.scorer import score_description

if TYPE_CHECKING:
    from rankwell.rankers.cascade import Cascade

FIRST = "first"
# Shares of the full ranker's cost for which second passes are made to fit, besides a given budget.
_SHARES = (0.125, 0.25, 0.5)
# So many features are ordered by the last ranker that is trained for that.
_FEWEST_ORDERED = 12
# Rows that are enough to measure a model's time on.
_TIMED_ROWS = 1000

Columns = tuple[int, ...]
"""Features by their numbers, ascending."""


class Second(NamedTuple):
    """A second pass: how many documents it ranks, None for all, the features that it was given, what it learnt from."""

    keep: int | None
    columns: Columns
    from_kept: bool = False


@dataclass(frozen=True, eq=False)
class Split:
    """Queries to train on and to validate on; `watched` is what a ranker may stop early by."""

    train: RankingDataset
    validation: RankingDataset | None
    watched: RankingDataset | None


@dataclass(frozen=True, eq=False)
class TrainedPasses:
    """The passes of one split, over all features."""

    first: dict[Columns, RankerDescription]
    second: dict[Second, RankerDescription]

    def description(self, point: CascadePoint, names: tuple[str, ...]) -> RankerDescription:
        """The cascade of a point."""
        second = self.second[Second(point.keep, point.second_columns, point.from_kept)]
        if point.keep is None:
            return second
        part = RankerPart(FIRST, tuple(range(len(names))), self.first[point.first_columns])
        return replace(second, parts=(part,), first_pass=FirstPass(0, point.keep))


class Passes:
    """Trains and measures first and second passes."""

    def __init__(self, cascade: Cascade, task: TrainingTask, costs: FeatureCosts) -> None:
        self._cascade, self._costs, self.names = cascade, costs, task.feature_names
        data = task.validation or task.train
        self._sizes = data.query_sizes if cascade.n_candidates is None else np.array([cascade.n_candidates])
        self._mean_cost = self._costs.of(self.names, self._mean_kept(None)) / len(self.names)
        self._longest = max(*cascade.first_sizes, *cascade.second_sizes)
        by_worth, by_gain = feature_orders(
            task.train, self._added_cost, lambda taken, feature: 1.0, random_state=cascade.random_state
        )
        selected = tuple(column for column, name in enumerate(self.names) if name in costs.selected)
        firsts = _prefixes([by_worth], cascade.first_sizes)
        self._firsts = list(dict.fromkeys([*firsts, selected] if selected else firsts))
        # Which documents second passes learn from: first passes differ little in what they keep.
        self._keeper = self._firsts[-1]
        self._everything = tuple(range(len(self.names)))
        of_all = _prefixes([by_worth], cascade.second_sizes)
        of_kept = _prefixes([by_worth, by_gain], cascade.second_sizes)
        second = cascade._make(cascade.second, cascade.second_parameters)
        by_query = fit_normaliser(second.normalize, task.train).needs_queries
        self._ways_to_learn = (False, True) if by_query else (False,)
        most = int(self._sizes.max(initial=1))
        keeps = [keep for keep in sorted(cascade.keep) if keep < most]
        fitting = self._fitting(Split(task.train, None, task.validation), keeps, by_gain)
        one_pass = [Second(None, columns) for columns in (*of_all, self._everything)]
        two_passes = [
            Second(keep, columns, from_kept)
            for keep in keeps
            for columns in (*of_kept, self._everything)
            for from_kept in self._ways_to_learn
        ]
        self._seconds = list(dict.fromkeys([*one_pass, *two_passes, *fitting]))

    def train(self, split: Split) -> TrainedPasses:
        first = {columns: self._train_first(columns, split) for columns in self._firsts}
        kept = {keep: _kept_of(split, first[self._keeper], keep) for keep, _, from_kept in self._seconds if from_kept}
        trained: dict[tuple[Split, Columns], RankerDescription] = {}
        second: dict[Second, RankerDescription] = {}
        for one in self._seconds:
            learnt_from = kept[one.keep] if one.from_kept else split
            if (learnt_from, one.columns) not in trained:
                trained[learnt_from, one.columns] = self._train_second(one.columns, learnt_from)
            second[one] = trained[learnt_from, one.columns]
        return TrainedPasses(first, second)

    def points(
        self, splits: Sequence[Split], trained: Sequence[TrainedPasses], final: TrainedPasses
    ) -> tuple[list[CascadePoint], CascadePoint]:
        """Every cascade, and the full ranker, measured on the validation queries of all splits."""
        data = [split.validation for split in splits if split.validation is not None]
        first = {
            columns: [_scores(one.first[columns], part) for one, part in zip(trained, data, strict=True)]
            for columns in self._firsts
        }
        model_costs = {ranker: self._model_cost(ranker, data[0]) for ranker in _rankers(final)}
        points = []
        for second in self._seconds:
            rankers, keep = [one.second[second] for one in trained], second.keep
            for own in [()] if keep is None else self._firsts:
                if keep is None:
                    scores = [_scores(*one) for one in zip(rankers, data, strict=True)]
                else:
                    scores = [_in_two_passes(*one, keep) for one in zip(rankers, data, first[own], strict=True)]
                by_query = np.concatenate([self._by_query(*one) for one in zip(data, scores, strict=True)])
                points.append(self._point(final, model_costs, own, second, by_query))
        full = next(p for p in points if p.keep is None and p.second_columns == self._everything)
        return points, full

    def _train_first(self, columns: Columns, split: Split) -> RankerDescription:
        cascade = self._cascade
        return self._train_one(cascade._make(cascade.first, cascade.first_parameters), columns, split)

    def _train_second(self, columns: Columns, split: Split) -> RankerDescription:
        cascade = self._cascade
        return self._train_one(cascade._make(cascade.second, cascade.second_parameters), columns, split)

    def _train_one(self, ranker: Ranker, columns: Columns, split: Split) -> RankerDescription:
        """A ranker trained on some of the features, as a description over all of them."""
        names = [self.names[column] for column in columns]
        watched = None if split.watched is None else _columns(split.watched, columns, names)
        ranker.fit(_columns(split.train, columns, names), eval_set=watched)
        return over_features(ranker.description_, self.names)

    def _fitting(self, whole: Split, keeps: Sequence[int], by_gain: Sequence[int]) -> list[Second]:
        """For each number of documents kept, what a ranker of them relies on most as long as it fits a budget.

        What a budget leaves depends on the first pass: the one with the fewest features is tried, and the keeper.
        """
        firsts = {columns: self._train_first(columns, whole) for columns in (self._firsts[0], self._keeper)}
        n_docs, keeper = self._mean_kept(None), firsts[self._keeper]
        first_costs = {one: self._one_pass_cost(one, n_docs, whole.train) for one in firsts.values()}
        budgets = self._budgets(self._one_pass_cost(self._train_second(self._everything, whole), n_docs, whole.train))
        found: list[Second] = []
        on_all = None
        for keep, from_kept in itertools.product(keeps, self._ways_to_learn):
            if from_kept:
                order, ranker = self._by_importance(_kept_of(whole, keeper, keep), by_gain)
            else:
                order, ranker = on_all = on_all or self._by_importance(whole, by_gain)
            n_kept = self._mean_kept(keep)
            model_cost = self._model_cost(ranker, whole.train).of(n_kept)
            for budget, (first, first_cost) in itertools.product(budgets, first_costs.items()):
                left = budget - first_cost - model_cost
                columns = self._affordable(order, left, n_kept, read_features(first))
                found += [Second(keep, columns, from_kept)] if columns else []
        return found

    def _by_importance(self, split: Split, by_gain: Sequence[int]) -> tuple[list[int], RankerDescription]:
        """The features, those that a ranker relies on most first; and the ranker of all of them.

        What the ranker of all features relies on less is left to one of the better half of them, and so on: of features
        that say the same, one remains, where the ranker of all had relied a little on each.
        """
        columns, orders, of_all = self._everything, [], None
        while of_all is None or len(columns) > _FEWEST_ORDERED:
            columns = columns if of_all is None else tuple(sorted(orders[-1][: (len(columns) + 1) // 2]))
            ranker = self._train_second(columns, split)
            of_all = of_all or ranker
            importance = feature_importances(ranker)
            order = np.lexsort((np.argsort(by_gain), -importance)).tolist()
            orders.append([column for column in order if column in columns])
        best_first = dict.fromkeys(itertools.chain.from_iterable(reversed(orders)))
        return list(best_first), of_all

    def _affordable(self, order: Sequence[int], budget: float, n_docs: float, fetched: Sequence[str]) -> Columns:
        """The features that fit a budget in this order; those that do not are left out."""
        taken: list[str] = []
        for column in order:
            more = [*taken, self.names[column]]
            if self._costs.of(more, n_docs, fetched=fetched) <= budget:
                taken = more
        return tuple(sorted(self.names.index(name) for name in taken))

    def _budgets(self, full_cost: float) -> list[float]:
        cascade = self._cascade
        given = cascade.budget if cascade.budget_share is None else cascade.budget_share * full_cost
        shares = [share * full_cost for share in _SHARES]
        return shares if given is None or given in shares else [*shares, given]

    def _point(
        self,
        final: TrainedPasses,
        model_costs: Mapping[RankerDescription, Cost],
        first: Columns,
        second: Second,
        by_query: np.ndarray,
    ) -> CascadePoint:
        keep, columns, from_kept = second
        n_docs, n_kept = self._mean_kept(None), self._mean_kept(keep)
        ranker, sorter = final.second[second], final.first.get(first)
        read = read_features(ranker)
        fetched = () if sorter is None else read_features(sorter)
        first_cost = 0.0 if sorter is None else self._costs.of(fetched, n_docs) + model_costs[sorter].of(n_docs)
        second_cost = self._costs.of(read, n_kept, fetched=fetched) + model_costs[ranker].of(n_kept)
        metric = float(np.nanmean(by_query)) if (~np.isnan(by_query)).any() else float("nan")
        return CascadePoint(
            first=fetched,
            second=read,
            first_size=len(first),
            second_size=len(columns),
            keep=keep,
            from_kept=from_kept,
            first_cost=first_cost,
            second_cost=second_cost,
            metric=metric,
            by_query=by_query,
            first_columns=first,
            second_columns=columns,
        )

    def _by_query(self, dataset: RankingDataset, scores: np.ndarray) -> np.ndarray:
        cascade = self._cascade
        in_order = dataset.to_user_order(scores)
        found = evaluate(dataset, in_order, metrics=cascade.eval_metric, convention=cascade.eval_convention)
        return next(iter(found.per_query.values()))

    def _one_pass_cost(self, ranker: RankerDescription, n_docs: float, data: RankingDataset) -> float:
        """What a ranker costs for documents of which nothing is known yet."""
        return self._costs.of(read_features(ranker), n_docs) + self._model_cost(ranker, data).of(n_docs)

    def _model_cost(self, ranker: RankerDescription, data: RankingDataset) -> Cost:
        """What a ranker takes for rows of the features that it reads: serving extracts no others."""
        names = read_features(ranker) or self.names[:1]
        columns = [self.names.index(name) for name in names]
        rows = data.dense_features()[:_TIMED_ROWS]
        return measure_model(over_features(ranker, names), np.ascontiguousarray(rows[:, columns]))

    def _added_cost(self, taken: list[int], feature: int) -> float:
        """A feature's own part of the cost; at least a small share of the mean, since no feature is free.

        The same for all once more features are taken than any pass tries by this order.
        """
        if len(taken) >= self._longest:
            return 1.0
        n_docs = self._mean_kept(None)
        before = [self.names[j] for j in taken]
        added = self._costs.of([*before, self.names[feature]], n_docs) - self._costs.of(before, n_docs)
        return max(added, 0.2 * self._mean_cost)

    def _mean_kept(self, keep: int | None) -> float:
        """The documents of a query, of which at most `keep` are kept, in the mean."""
        return float(np.mean(self._sizes if keep is None else np.minimum(self._sizes, keep)))


def _rankers(passes: TrainedPasses) -> list[RankerDescription]:
    return [*passes.first.values(), *passes.second.values()]


def _prefixes(orders: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[Columns]:
    """The first features of each order, ascending: by their number, up to all."""
    return [tuple(sorted(order[:size])) for size in sorted(set(sizes)) for order in orders]


def _columns(dataset: RankingDataset, columns: Sequence[int], names: list[str]) -> RankingDataset:
    """The dataset with some of its features."""
    is_all = list(columns) == list(range(dataset.n_features))
    part = dataset.replace(features=dataset.features if is_all else dataset.features.take(columns, axis=1))
    part.feature_names = tuple(names)
    return part


def _kept_of(split: Split, first: RankerDescription, keep: int | None) -> Split:
    """The documents that a first pass keeps; the split itself where these do not differ in label."""
    if keep is None:
        return split
    train = _best(first, split.train, keep)
    if not _has_pairs(train):
        return split
    return Split(train, split.validation, None if split.watched is None else _best(first, split.watched, keep))


def _best(first: RankerDescription, dataset: RankingDataset, keep: int) -> RankingDataset:
    return rows_of(dataset, best_rows(_scores(first, dataset), dataset.query_ptr, keep))


def _scores(ranker: RankerDescription, dataset: RankingDataset) -> np.ndarray:
    """A ranker's scores, from the features that it reads: to normalise all others would take longer than to score."""
    names = list(read_features(ranker)) or list(ranker.feature_names[:1])
    columns = [ranker.feature_names.index(name) for name in names]
    return score_description(over_features(ranker, names), _columns(dataset, columns, names))


def _has_pairs(dataset: RankingDataset) -> bool:
    return any(np.ptp(dataset.labels[rows]) > 0 for rows in dataset.queries() if rows.stop > rows.start)


def _in_two_passes(
    second: RankerDescription, dataset: RankingDataset, first_scores: np.ndarray, keep: int
) -> np.ndarray:
    """The scores of a cascade: the second pass sees, and normalises, kept rows only."""
    kept = best_rows(first_scores, dataset.query_ptr, keep)
    scores = np.full(dataset.n_docs, np.nan)
    scores[kept] = _scores(second, rows_of(dataset, kept))
    return rank_below(scores, first_scores, dataset.query_ptr)
