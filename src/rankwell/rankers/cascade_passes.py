"""The passes of a cascade: which features they read, what they are trained on, and what each pair of them reaches.

A pass is made by a *recipe*, which chooses its features from training queries; on every split of the queries it chooses
anew, so that what the validation queries say of a recipe is what queries say that it has not seen.

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
from collections.abc import Callable, Mapping, Sequence
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
# In place of a share: the budget that was given in microseconds.
_GIVEN = -1.0
# So many features are ordered by the last ranker that is trained for that.
_FEWEST_ORDERED = 12
# Rows that are enough to measure a model's time on.
_TIMED_ROWS = 1000

Columns = tuple[int, ...]
"""Features by their numbers, ascending."""


class Recipe(NamedTuple):
    """How the features of a pass are chosen.

    kind : "worth" or "gain", the first `size` of that order; "selected", those that selection knows; "all"; or
        "fit", those that a ranker relies on most as long as they fit `size`, a share of the full ranker's cost
    """

    kind: str
    size: float = 0.0


ALL, SELECTED = Recipe("all"), Recipe("selected")


class Second(NamedTuple):
    """A second pass: how many documents it ranks, None for all, its features, what it learns from."""

    keep: int | None
    features: Recipe
    from_kept: bool = False


FULL = Second(None, ALL)


@dataclass(frozen=True, eq=False)
class Split:
    """Queries to train on and to validate on; `watched` is what a ranker may stop early by."""

    train: RankingDataset
    validation: RankingDataset | None
    watched: RankingDataset | None


@dataclass(frozen=True, eq=False)
class TrainedPasses:
    """The passes of one split, over all features; the features that each was given, what second ones learnt from."""

    first: dict[Recipe, RankerDescription]
    second: dict[Second, RankerDescription]
    first_columns: dict[Recipe, Columns]
    second_columns: dict[Second, Columns]
    learnt_from: dict[Second, Split]


class Passes:
    """Trains and measures first and second passes."""

    def __init__(self, cascade: Cascade, task: TrainingTask, costs: FeatureCosts) -> None:
        self._cascade, self.costs, self.names = cascade, costs, task.feature_names
        self._n_seeds = cascade._seeds_of_kept()
        data = task.validation or task.train
        self._sizes = data.query_sizes if cascade.n_candidates is None else np.array([cascade.n_candidates])
        self._mean_cost = self.costs.of(self.names, self.mean_kept(None)) / len(self.names)
        self._longest = max(*cascade.first_sizes, *cascade.second_sizes)
        self._selected = tuple(column for column, name in enumerate(self.names) if name in costs.selected)
        by_worth = [Recipe("worth", size) for size in sorted(set(cascade.first_sizes))]
        self._firsts = [*by_worth, *([SELECTED] if self._selected else [])]
        # Which documents second passes learn from: first passes differ little in what they keep.
        self._keeper = self._firsts[-1]
        # The first pass for which second passes are made to fit: what selection knows costs next to nothing.
        self._cheapest = SELECTED if self._selected else self._firsts[0]
        self.everything = tuple(range(len(self.names)))
        second = cascade._make(cascade.second, cascade.second_parameters)
        by_query = fit_normaliser(second.normalize, task.train).needs_queries
        self._ways_to_learn = (False, True) if by_query else (False,)
        most = int(self._sizes.max(initial=1))
        self._keeps = [keep for keep in sorted(cascade.keep) if keep < most]
        self._seconds = self._second_passes()

    def _second_passes(self) -> list[Second]:
        cascade = self._cascade
        sizes = sorted(set(cascade.second_sizes))
        shares = (*_SHARES, *([] if cascade.budget_share is None else [cascade.budget_share]))
        one_pass = [Second(None, Recipe("worth", size)) for size in sizes]
        recipes = [
            *(Recipe(kind, size) for size in sizes for kind in ("worth", "gain")),
            *(Recipe("fit", share) for share in dict.fromkeys(shares)),
            *([] if cascade.budget is None else [Recipe("fit", _GIVEN)]),
            ALL,
        ]
        two_passes = itertools.product(self._keeps, recipes, self._ways_to_learn)
        return [*one_pass, FULL, *(Second(*one) for one in two_passes)]

    def train(self, split: Split) -> TrainedPasses:
        by_worth, by_gain = feature_orders(
            split.train, self._added_cost, lambda taken, feature: 1.0, random_state=self._cascade.random_state
        )
        orders = {"worth": by_worth, "gain": by_gain}
        first_columns = {one: self._chosen(one, orders) for one in self._firsts}
        first = {one: self._train_first(columns, split) for one, columns in first_columns.items()}
        keeps = self._keeps if any(self._ways_to_learn) else []
        kept = {keep: _kept_of(split, first[self._keeper], keep) for keep in keeps}
        trained: dict[tuple[Split, Columns], RankerDescription] = {}

        def train_once(columns: Columns, learnt_from: Split) -> RankerDescription:
            if (learnt_from, columns) not in trained:
                trained[learnt_from, columns] = self._train_second(columns, learnt_from)
            return trained[learnt_from, columns]

        fitting = Fitting(self, split, first[self._cheapest], train_once, by_gain)
        second: dict[Second, RankerDescription] = {}
        second_columns: dict[Second, Columns] = {}
        learnt_from_of: dict[Second, Split] = {}
        for one in self._seconds:
            learnt_from = kept[one.keep] if one.from_kept and one.keep is not None else split
            if one.features.kind == "fit":
                columns = fitting.columns(one, learnt_from)
            else:
                columns = self._chosen(one.features, orders)
            if columns:
                second_columns[one], second[one] = columns, train_once(columns, learnt_from)
                learnt_from_of[one] = learnt_from
        return TrainedPasses(first, second, first_columns, second_columns, learnt_from_of)

    def description(self, point: CascadePoint, trained: TrainedPasses) -> RankerDescription:
        """The cascade of a point; its second pass is trained again if it is to be the mean of several models.

        These are given the features that the point reads, and so cost no more than it does.
        """
        chosen = point.second_pass
        second = trained.second[chosen]
        if point.first_pass is None:
            return second
        if self._n_seeds > 1 and point.second:
            columns = tuple(sorted(map(self.names.index, point.second)))
            second = self._train_second(columns, trained.learnt_from[chosen], self._n_seeds)
        part = RankerPart(FIRST, self.everything, trained.first[point.first_pass])
        return replace(second, parts=(part,), first_pass=FirstPass(0, chosen.keep))

    def _chosen(self, recipe: Recipe, orders: Mapping[str, Sequence[int]]) -> Columns:
        if recipe == ALL:
            return self.everything
        return self._selected if recipe == SELECTED else tuple(sorted(orders[recipe.kind][: int(recipe.size)]))

    def points(
        self, splits: Sequence[Split], trained: Sequence[TrainedPasses], final: TrainedPasses
    ) -> tuple[list[CascadePoint], CascadePoint]:
        """Every cascade, and the full ranker, measured on the validation queries of all splits."""
        data = [split.validation for split in splits if split.validation is not None]
        first = {
            recipe: [_scores(one.first[recipe], part) for one, part in zip(trained, data, strict=True)]
            for recipe in self._firsts
        }
        model_costs = {ranker: self.model_cost(ranker, data[0]) for ranker in _rankers(final)}
        points = []
        for second in final.second:
            if not all(second in one.second for one in trained):  # on some queries nothing fitted
                continue
            rankers, keep = [one.second[second] for one in trained], second.keep
            for own in [None] if keep is None else self._firsts:
                if own is None or keep is None:
                    scores = [_scores(*one) for one in zip(rankers, data, strict=True)]
                else:
                    scores = [_in_two_passes(*one, keep) for one in zip(rankers, data, first[own], strict=True)]
                by_query = np.concatenate([self._by_query(*one) for one in zip(data, scores, strict=True)])
                points.append(self._point(final, model_costs, own, second, by_query))
        return points, next(point for point in points if point.second_pass == FULL)

    def _train_first(self, columns: Columns, split: Split) -> RankerDescription:
        cascade = self._cascade
        return self._train_one(cascade._make(cascade.first, cascade.first_parameters), columns, split)

    def _train_second(self, columns: Columns, split: Split, n_seeds: int = 1) -> RankerDescription:
        ranker = self._cascade._make(self._cascade.second, self._cascade.second_parameters)
        if n_seeds > 1:
            ranker.set_params(n_seeds=n_seeds)
        return self._train_one(ranker, columns, split)

    def _train_one(self, ranker: Ranker, columns: Columns, split: Split) -> RankerDescription:
        """A ranker trained on some of the features, as a description over all of them."""
        names = [self.names[column] for column in columns]
        watched = None if split.watched is None else _columns(split.watched, columns, names)
        ranker.fit(_columns(split.train, columns, names), eval_set=watched)
        return over_features(ranker.description_, self.names)

    def _point(
        self,
        final: TrainedPasses,
        model_costs: Mapping[RankerDescription, Cost],
        first: Recipe | None,
        second: Second,
        by_query: np.ndarray,
    ) -> CascadePoint:
        n_docs, n_kept = self.mean_kept(None), self.mean_kept(second.keep)
        ranker, sorter = final.second[second], None if first is None else final.first[first]
        read = read_features(ranker)
        fetched = () if sorter is None else read_features(sorter)
        first_cost = 0.0 if sorter is None else self.costs.of(fetched, n_docs) + model_costs[sorter].of(n_docs)
        model_cost = model_costs[ranker] if sorter is None else self.cost_of_seeds(model_costs[ranker])
        second_cost = self.costs.of(read, n_kept, fetched=fetched) + model_cost.of(n_kept)
        metric = float(np.nanmean(by_query)) if (~np.isnan(by_query)).any() else float("nan")
        return CascadePoint(
            first=fetched,
            second=read,
            first_size=0 if first is None else len(final.first_columns[first]),
            second_size=len(final.second_columns[second]),
            keep=second.keep,
            from_kept=second.from_kept,
            first_cost=first_cost,
            second_cost=second_cost,
            metric=metric,
            by_query=by_query,
            first_pass=first,
            second_pass=second,
        )

    def _by_query(self, dataset: RankingDataset, scores: np.ndarray) -> np.ndarray:
        cascade = self._cascade
        in_order = dataset.to_user_order(scores)
        found = evaluate(dataset, in_order, metrics=cascade.eval_metric, convention=cascade.eval_convention)
        return next(iter(found.per_query.values()))

    def given_budget(self, fit: Recipe, full_cost: float) -> float:
        """The microseconds a query that a recipe's features are to fit."""
        return fit.size * full_cost if fit.size != _GIVEN or self._cascade.budget is None else self._cascade.budget

    def one_pass_cost(self, ranker: RankerDescription, n_docs: float, data: RankingDataset) -> float:
        """What a ranker costs for documents of which nothing is known yet."""
        return self.costs.of(read_features(ranker), n_docs) + self.model_cost(ranker, data).of(n_docs)

    def model_cost(self, ranker: RankerDescription, data: RankingDataset) -> Cost:
        """What a ranker takes for rows of the features that it reads: serving extracts no others."""
        names = read_features(ranker) or self.names[:1]
        columns = [self.names.index(name) for name in names]
        rows = data.dense_features()[:_TIMED_ROWS]
        return measure_model(over_features(ranker, names), np.ascontiguousarray(rows[:, columns]))

    def cost_of_seeds(self, one_model: Cost) -> Cost:
        """What the second pass of kept documents takes, by what one model takes."""
        return Cost(one_model.query, one_model.document * self._n_seeds)

    def _added_cost(self, taken: list[int], feature: int) -> float:
        """A feature's own part of the cost; at least a small share of the mean, since no feature is free.

        The same for all once more features are taken than any pass tries by this order.
        """
        if len(taken) >= self._longest:
            return 1.0
        n_docs = self.mean_kept(None)
        before = [self.names[j] for j in taken]
        added = self.costs.of([*before, self.names[feature]], n_docs) - self.costs.of(before, n_docs)
        return max(added, 0.2 * self._mean_cost)

    def mean_kept(self, keep: int | None) -> float:
        """The documents of a query, of which at most `keep` are kept, in the mean."""
        return float(np.mean(self._sizes if keep is None else np.minimum(self._sizes, keep)))


class Fitting:
    """Features that fit what a budget leaves for the second pass, those that a ranker relies on most first.

    Parameters
    ----------
    passes : Passes
    split : Split
        The queries whose full ranker shares of cost are of.
    first : RankerDescription
        The first pass, whose cost is taken off.
    train : callable
        Trains a second pass on some features of a split.
    by_gain : sequence of int
        The order of features that a ranker relies on equally.
    """

    def __init__(
        self,
        passes: Passes,
        split: Split,
        first: RankerDescription,
        train: Callable[[Columns, Split], RankerDescription],
        by_gain: Sequence[int],
    ) -> None:
        self._passes, self._split, self._train = passes, split, train
        self._places = np.argsort(by_gain)
        n_docs = passes.mean_kept(None)
        self._fetched = read_features(first)
        self._first_cost = passes.one_pass_cost(first, n_docs, split.train)
        self._full_cost = passes.one_pass_cost(train(passes.everything, split), n_docs, split.train)
        self._orders: dict[Split, list[int]] = {}
        self._model_costs: dict[Split, Cost] = {}

    def columns(self, second: Second, learnt_from: Split) -> Columns:
        """The features of a second pass; none if the budget is too small."""
        passes, names = self._passes, self._passes.names
        n_kept = passes.mean_kept(second.keep)
        budget = passes.given_budget(second.features, self._full_cost)
        left = budget - self._first_cost - passes.cost_of_seeds(self._model_cost(learnt_from)).of(n_kept)
        taken: list[str] = []
        for column in self._by_importance(learnt_from):
            more = [*taken, names[column]]
            if passes.costs.of(more, n_kept, fetched=self._fetched) <= left:
                taken = more
        return tuple(sorted(names.index(name) for name in taken))

    def _model_cost(self, split: Split) -> Cost:
        """Of the ranker of all features."""
        if split not in self._model_costs:
            ranker = self._train(self._passes.everything, split)
            self._model_costs[split] = self._passes.model_cost(ranker, self._split.train)
        return self._model_costs[split]

    def _by_importance(self, split: Split) -> list[int]:
        """The features, those that a ranker relies on most first.

        What the ranker of all features relies on less is left to one of the better half of them, and so on: of features
        that say the same, one remains, where the ranker of all had relied a little on each.
        """
        if split not in self._orders:
            columns, orders = self._passes.everything, []
            while True:
                importance = feature_importances(self._train(columns, split))
                order = np.lexsort((self._places, -importance)).tolist()
                orders.append([column for column in order if column in columns])
                if len(columns) <= _FEWEST_ORDERED:
                    break
                columns = tuple(sorted(orders[-1][: (len(columns) + 1) // 2]))
            self._orders[split] = list(dict.fromkeys(itertools.chain.from_iterable(reversed(orders))))
        return self._orders[split]


def _rankers(passes: TrainedPasses) -> list[RankerDescription]:
    return [*passes.first.values(), *passes.second.values()]


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
