"""Cascades: a cheap first pass orders many documents, an expensive second one orders the best of them.

Both passes learn from the same data; `cascade_passes` says which are trained, and on what. Every pair of passes, with
every number of documents kept, is a point: its metric on validation queries, its cost by the table of feature costs and
the measured time of the models. One point is chosen, by a budget or by what the full ranker reaches.

Wang, Lin and Metzler (2011), A cascade ranking model for efficient ranked retrieval, SIGIR.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Self

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.metrics.conventions import DEFAULT, get_convention
from rankwell.metrics.names import parse_metric
from rankwell.parameters import check_number, check_whole_number
from rankwell.rankers.base import Ranker, TrainedModel, TrainingStep, TrainingTask
from rankwell.rankers.cascade_curve import best_points, choose_point
from rankwell.rankers.cascade_passes import Passes, Split
from rankwell.scoring.costs import FeatureCosts

# Second passes are trained on this many features, on all, and on sets that fit the budget.
_SECOND_SIZES = (4, 8, 16, 32, 64)
_KEEPS = (5, 10, 15, 20, 30, 50, 100, 200, 500)
_FIRST_SIZES = (1, 2, 4, 8)
# The parameter of rankers that are the mean of several models.
_SEEDS = "n_seeds"
# Features that a warning lists.
_MOST_NAMED = 5
logger = logging.getLogger("rankwell")


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
        Microseconds a query: the cascade within it that falls least short of the full ranker is chosen. Without a
        budget, the cheapest that is as good as the full ranker (`second` on all features and all documents), up to
        `tolerance`.
    budget_share : float, optional
        The same as a share of what the full ranker costs; at most one of the two.
    tolerance : float
        How much of the metric may be lost, where a loss in one query counts a twentieth more than a gain in another.
    keep : tuple of int
        How many documents the first pass may keep.
    first_sizes : tuple of int
        How many features the first pass may read; those that selection already knows are always tried too.
    second_sizes : tuple of int
        How many the second may read; all of them, and sets that fit the budget, are always tried too.
    n_seeds : int
        The second pass of the cascade that is chosen is the mean of so many models, if its ranker can be but is one as
        it comes, as LambdaMART is: of few documents, that costs little. The full ranker is one model, as are those that
        are compared for the choice; a number in `second_parameters` is for all of them instead.
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
        second: str = "lambdamart",
        first_parameters: dict[str, Any] | None = None,
        second_parameters: dict[str, Any] | None = None,
        budget: float | None = None,
        budget_share: float | None = None,
        tolerance: float = 0.003,
        keep: tuple[int, ...] = _KEEPS,
        first_sizes: tuple[int, ...] = _FIRST_SIZES,
        second_sizes: tuple[int, ...] = _SECOND_SIZES,
        n_seeds: int = 4,
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
        self.n_seeds = n_seeds
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
            if self.budget_share > 1:
                raise ParameterError(
                    f"is a share of the full ranker's cost and must be at most 1, got {self.budget_share}.",
                    parameter="budget_share",
                )
            if self.budget is not None:
                raise ParameterError("give budget or budget_share, not both.")
        check_number("tolerance", self.tolerance, least=0)
        check_whole_number("n_folds", self.n_folds, least=2)
        check_whole_number("n_seeds", self.n_seeds, least=1)
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
        _warn_of_unknown(self._costs, task.feature_names)
        passes = Passes(self, task, self._costs)
        splits = list(self._splits(task))
        trained = []
        for number, split in enumerate(splits):
            trained.append(passes.train(split))
            task.callback(TrainingStep(number + 1, len(splits) + 1, {}))
        final = trained[0] if task.validation is not None else passes.train(Split(task.train, None, None))
        self.points_, self.full_ = passes.points(splits, trained, final)
        self.curve_ = best_points(self.points_)
        budget = self.budget if self.budget_share is None else self.budget_share * self.full_.cost
        self.point_ = choose_point(self.points_, self.full_, budget=budget, tolerance=self.tolerance)
        task.callback(TrainingStep(len(splits) + 1, len(splits) + 1, {}))
        return TrainedModel(passes.description(self.point_, final), state={}, history={})

    def _splits(self, task: TrainingTask) -> Iterator[Split]:
        """The validation data with rows of all of it, or parts of the training queries."""
        if task.validation is not None:
            yield Split(task.train, task.validation, task.validation)
            return
        n_queries = task.train.n_queries
        if n_queries < self.n_folds:
            raise DataError(f"{n_queries} queries cannot be divided into {self.n_folds} parts.", parameter="n_folds")
        part_of = np.random.default_rng(self.random_state).permutation(np.arange(n_queries) % self.n_folds)
        for part in range(self.n_folds):
            yield Split(task.train.subset(part_of != part), task.train.subset(part_of == part), None)

    def _seeds_of_kept(self) -> int:
        """How many models a second pass of kept documents is the mean of."""
        is_one_model = self._make(self.second, None).get_params().get(_SEEDS) == 1
        return self.n_seeds if is_one_model and _SEEDS not in (self.second_parameters or {}) else 1

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


def _warn_of_unknown(costs: FeatureCosts, names: Sequence[str]) -> None:
    """Say which features of a table the data lacks: one that is misspelt has the cost of those that are not listed."""
    unknown = costs.without_effect(names)
    if not unknown:
        return
    unlisted = [name for name in names if name not in costs.features]
    shown = []
    for name in unknown[:_MOST_NAMED]:
        near = get_close_matches(name, unlisted, n=1)
        shown.append(f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name))
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    logger.warning("the costs are also of what the data does not have: %s%s.", ", ".join(shown), more)
