"""LambdaMART: boosted regression trees whose gradients are λ, what would improve the ranking.

Burges 2010 ("From RankNet to LambdaRank to LambdaMART"), in the form of LightGBM (Ke et al. 2017): in each round a
tree is grown for the gradients and Hessians of the current scores, leaf by leaf, each time the leaf whose cut gains
most; a leaf's value is −learning_rate·Σg / (Σh + l2). The loss is a sum over pairs of documents
(`kernels/trees/losses`); whole numbers decide (`kernels/trees/rules`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from rankwell.data.agreement import ALONE, Agreement
from rankwell.data.binning import MOST_BINS, STRATEGIES, Binner
from rankwell.data.dataset import RankingDataset
from rankwell.errors import FileFormatError, Parameter, ParameterError
from rankwell.kernels.device import load
from rankwell.kernels.trees.contract import BOOSTED_TREES, MOST_LEAVES, TreeBooster, TreeProblem, TreeSettings
from rankwell.kernels.trees.feature_rules import FeatureRules
from rankwell.kernels.trees.losses import LOSSES, RankingLoss, judged_queries
from rankwell.kernels.trees.sampling import Sampling
from rankwell.kernels.trees.slabs import SLAB_BYTES, SLAB_MEMORY
from rankwell.metrics.conventions import DEFAULT
from rankwell.metrics.names import AnyMetric, parse_metric
from rankwell.parameters import check_choice, check_number, check_whole_number
from rankwell.rankers.base import WATCHED, TrainedModel, TrainingTask
from rankwell.rankers.checkpoints import Checkpoints, run_fingerprint
from rankwell.rankers.earlier_trees import warn_of_broken_rules
from rankwell.rankers.feature_choices import FeatureChoices, Features, check_features
from rankwell.rankers.foreign_values import check_named, value_hint
from rankwell.rankers.grown_trees import IMPORTANCES, GrownTrees
from rankwell.rankers.own_loss import OwnLoss, check_signature, checked_loss
from rankwell.rankers.stepwise import StepwiseRanker
from rankwell.rankers.streaming import StreamedSizes
from rankwell.rankers.tree_bins import TreeBins
from rankwell.rankers.tree_data import (
    GAINS,
    RELEVANCE_LOSSES,
    binned_slabs,
    check_pairs,
    check_single_precision,
    document_weights,
    gains_of,
)
from rankwell.rankers.tree_rounds import TreeRounds
from rankwell.rankers.validation import Validation
from rankwell.scoring.description import RankerDescription, Sum, TreeInputs
from rankwell.scoring.scorer import score_description

logger = logging.getLogger("rankwell")

# What n_rounds="auto" means: without early stopping, and at most with it.
_ROUNDS, _WATCHED_ROUNDS = 150, 1000
# What n_leaves="auto" means: for fewer documents than this, and for as many or more.
_FEW_DOCS, _FEW_LEAVES, _LEAVES = 50_000, 10, 31
# The levels of symmetric trees by default, likewise.
_FEW_LEVELS, _LEVELS = 4, 6
GROWTHS = ("leaf", "symmetric")
# What min_docs_leaf="auto" means: this share of the documents, but no more than so many.
_AUTOMATIC_SHARE, _AUTOMATIC_DOCS = 100, 100
# What loss="auto" chooses among, and what the choice is called in the state.
AUTOMATIC_LOSS = "auto"
CANDIDATE_LOSSES = ("lambdarank", "xendcg")
_CHOSEN_LOSS = "chosen_loss"
# Shares of what a tree is grown on besides that of the queries, and what query_fraction="auto" means where only it can
# make seeds differ.
_OTHER_FRACTIONS = ("document_fraction", "feature_fraction", "node_feature_fraction")
_QUERY_FRACTION_OF_SEEDS = 0.7
_CHOSEN_QUERY_FRACTION = "chosen_query_fraction"
# Seeds of the models of one training are so far apart, below 2^63.
_SEED_STEP = 1_000_003
_MOST_SEEDS = 1000
_LARGEST_SEED = 2**63 - 1
# What kernels take as a number of documents, rounds or levels.
_LARGEST = 2**31 - 1
# One for missing values, and two that a cut divides.
_FEWEST_BINS = 3
# Parameters of losses that are sums over pairs.
_OF_PAIR_LOSSES = frozenset({"truncation", "sigma", "normalize_lambdas", "noise"})
# Parameters that do not change the trees of a run.
_WITHOUT_EFFECT = {"n_rounds", "checkpoint", "checkpoint_every", "device", "n_jobs"}


class LambdaMART(StepwiseRanker):
    """Boosted trees for ranking, in O(documents · columns) per level of a tree.

    The same data and parameters give the same model, byte for byte, on any number of threads.

    Parameters
    ----------
    n_rounds : int or "auto"
        Trees at most; with `init_model`, that many more. "auto" is 150, or 1,000 where early stopping chooses among
        them.
    learning_rate : float
        The share of its best value that a leaf gets.
    n_leaves : int or "auto"
        Leaves of a tree at most. "auto" is 31, or 10 for fewer than 50,000 documents.
    max_depth : int
        Cuts at most between the root and a leaf; 0 for any number.
    min_docs_leaf : int or "auto"
        Documents of a leaf at least. They are estimated by the leaf's share of the Hessian, as in LightGBM. "auto" is
        100, or a hundredth of the documents if there are fewer than 10,000.
    min_hessian_leaf : float
        Σ of the Hessian of a leaf at least.
    l1, l2 : float
        Penalties on the size of leaf values.
    min_gain : float
        What a cut must gain at least.
    growth : "leaf" or "symmetric"
        "leaf" cuts the leaf that gains most next. "symmetric" cuts all leaves of a level in the same way: such trees
        have at most 2^depth leaves and score faster. Their depth is `max_depth`, or what `n_leaves` allows; "auto" is
        then 64 leaves, or 16 for fewer than 50,000 documents.
    increasing : sequence, set or array of str or int
        Features that the score must not fall with: by name, or by number from 0. Missing values are outside of this
        order.
    decreasing : sequence, set or array of str or int
        Features that the score must not rise with, likewise.
    interaction_groups : sequence of such
        Groups of features that may interact. The features on a path from the root to a leaf are all in one of them, so
        that a feature in no group is not used. On the command line, groups are separated by commas, and their features
        by plus signs: a+b,b+c.
    categorical_features : sequence, set or array of str or int
        Features whose values are numbers of categories, 0, 1, 2, ..., without an order. A cut has a set of categories
        on one side. The most frequent ones have a bin each, `n_bins` − 2 of them. Missing values are a category of
        their own; categories that training did not have, or that are too rare for a bin, go with those that are not
        in the set.
    category_smoothing, category_l2 : float
        Categories are ordered by Σg / (Σh + smoothing), those of fewer documents are never in the set, and the sides of
        the cut have that much more `l2`: both in documents, that is, times the mean Hessian of the leaf. For
        categorical features of more than 4 categories.
    max_category_set : int
        Categories at most in the set of a cut.
    query_fraction : float or "auto"
        The share of queries whose gradients a tree is grown on, drawn anew for each tree. "auto" is 1, or 0.7 for
        several seeds that nothing else makes different: no other fraction below 1, no noise, no xendcg.
    document_fraction : float
        The share of documents, likewise.
    feature_fraction, node_feature_fraction : float
        The share of features that a tree may cut, drawn for each tree, and of these, that a leaf may be cut by, drawn
        for each leaf.
    n_seeds : int
        Train so many models with different seeds at the same time, and add up their mean. A round has a tree of each,
        and early stopping watches the mean. What is random makes them different: a fraction below 1 (see
        `query_fraction`), noise, or xendcg.
    loss : "lambdarank", "xendcg", "lambdaloss", "pairwise", "map", "mrr", "auto", or a function
        What pairs of documents weigh: the change of NDCG if they were swapped; with "lambdaloss" that and the change by
        their distance (NDCG-Loss2++); with "pairwise" all the same; with "map" or "mrr" the change of average precision
        or of the reciprocal rank, for which a document is relevant if its label is above the lowest of the training
        data. "xendcg" is the
        cross entropy with randomised gains. "auto" trains with lambdarank and xendcg, and keeps what is better on
        `eval_set` (lambdarank without one). A function of labels, scores (n_docs,) and query_ptr (n_queries + 1,),
        which it can only read, returns the gradient and the Hessian, (n_docs,) each.
    truncation : int or None
        Pairs count if the higher ranked document is among so many, and NDCG is that of so many; None counts all.
    sigma : float
        The steepness of the logistic function of a pair.
    normalize_lambdas : bool
        Divide a pair's weight by the distance of its scores, and bring each query's sum of `|λ|` to log2(1 + that sum),
        as LightGBM does.
    noise : float
        Pairs are those of a ranking by scores plus Gumbel noise of this scale, drawn anew in each round, as in
        YetiRank; 0.3 is a good start.
    gain : "auto", "exponential" or "linear"
        The gain of a label in NDCG: 2^label − 1, or the label. "auto" is linear for labels above 30.
    n_bins : int
        Bins per feature, 3 to 256, including the one for missing values.
    binning : "quantile" or "width"
        Bins of about equally many documents, or of equal width.
    early_stopping_rounds : int, "auto" or None
        Stop after this many rounds without a better validation metric, and keep the rounds up to the best. "auto" is
        50 if there is an `eval_set`; None keeps every round.
    eval_metric, eval_convention : str (or a function of a query's labels and scores), str
        The metric on `eval_set` after every round, and its convention.
    importance : "gain" or "split"
        What `feature_importances_` is: the sum of the gains of the cuts by a feature, or their number.
    checkpoint, checkpoint_every : str, int
        A file to which the run's state is written every `checkpoint_every` rounds: after a crash, the same call
        continues from there and gives the same model. It is deleted at the end.
    normalize : "none", "auto", "standard", "query-minmax" or "letor"
        Trees do not depend on a feature's scale; "query-minmax" makes features relative to their query.
    device : "auto", "cpu" or "cuda"
    random_state : int
        The seed of everything random: fractions, noise, xendcg; and of the rows that quantile binning uses if there are
        very many.
    n_jobs : int, optional
        Threads; None or -1 is every core.

    Attributes
    ----------
    trees_ : TreeInputs
        The trees, in the form of every ranker file.
    feature_importances_ : float64 array (n_features,)
        See `importance`; `importances` gives either kind.
    history_ : dict
        By round: `gain` (the sum of the tree's gains), `leaves`, and the validation metric; `seconds` of training so
        far.
    best_iteration_, best_score_
        The round of `history_` that was best on `eval_set`, counted from 1, and its metric.

    Notes
    -----
    A missing value (NaN) goes to the side of a cut where it lowers the loss more, which is learnt cut by cut. Weights
    of queries and documents multiply the gradients.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=600, n_queries=30, n_features=5)
    >>> train, validation = data.subset(range(20)), data.subset(range(20, 30))
    >>> ranker = rankwell.LambdaMART(n_rounds=30, n_leaves=4).fit(train, eval_set=validation)
    >>> ranker.best_iteration_ <= 30, bool(ranker.best_score_ == ranker.score(validation))
    (True, True)
    """

    name = "lambdamart"
    step_name = "round"
    can_continue = True
    can_stream = True
    automatic_patience = 50
    steps_parameter = "n_rounds"
    missing_is_zero = False

    def __init__(
        self,
        n_rounds: int | Literal["auto"] = "auto",
        learning_rate: float = 0.05,
        n_leaves: int | Literal["auto"] = "auto",
        max_depth: int = 0,
        min_docs_leaf: int | Literal["auto"] = "auto",
        min_hessian_leaf: float = 1e-3,
        l1: float = 0.0,
        l2: float = 0.0,
        min_gain: float = 0.0,
        growth: Literal["leaf", "symmetric"] = "leaf",
        increasing: Features | None = None,
        decreasing: Features | None = None,
        interaction_groups: Sequence[Sequence[int | str]] | None = None,
        categorical_features: Features | None = None,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        max_category_set: int = 32,
        query_fraction: float | Literal["auto"] = "auto",
        document_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        node_feature_fraction: float = 1.0,
        n_seeds: int = 1,
        loss: str | OwnLoss = "lambdarank",
        truncation: int | None = 30,
        sigma: float = 1.0,
        normalize_lambdas: bool = True,
        noise: float = 0.0,
        gain: Literal["auto", "exponential", "linear"] = "auto",
        n_bins: int = MOST_BINS,
        binning: Literal["quantile", "width"] = "quantile",
        early_stopping_rounds: int | Literal["auto"] | None = "auto",
        eval_metric: AnyMetric = "ndcg@10",
        eval_convention: str = DEFAULT.name,
        importance: Literal["gain", "split"] = "gain",
        checkpoint: str | None = None,
        checkpoint_every: int = 100,
        normalize: str = "none",
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.max_depth = max_depth
        self.min_docs_leaf = min_docs_leaf
        self.min_hessian_leaf = min_hessian_leaf
        self.l1 = l1
        self.l2 = l2
        self.min_gain = min_gain
        self.growth = growth
        self.increasing = increasing
        self.decreasing = decreasing
        self.interaction_groups = interaction_groups
        self.categorical_features = categorical_features
        self.category_smoothing = category_smoothing
        self.category_l2 = category_l2
        self.max_category_set = max_category_set
        self.query_fraction = query_fraction
        self.document_fraction = document_fraction
        self.feature_fraction = feature_fraction
        self.node_feature_fraction = node_feature_fraction
        self.n_seeds = n_seeds
        self.loss = loss
        self.truncation = truncation
        self.sigma = sigma
        self.normalize_lambdas = normalize_lambdas
        self.noise = noise
        self.gain = gain
        self.n_bins = n_bins
        self.binning = binning
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.eval_convention = eval_convention
        self.importance = importance
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.normalize = normalize
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        if self.n_rounds != "auto":
            check_whole_number("n_rounds", self.n_rounds, least=1, most=_LARGEST)
        if self.n_leaves != "auto":
            check_whole_number("n_leaves", self.n_leaves, least=2, most=MOST_LEAVES)
        if self.max_depth == -1:
            raise ParameterError("must be 0 or more, got -1. 0 is any depth.", parameter="max_depth")
        check_whole_number("max_depth", self.max_depth, least=0, most=_LARGEST)
        check_whole_number("random_state", self.random_state, least=0, most=_LARGEST_SEED)
        if self.min_docs_leaf != "auto":
            check_whole_number("min_docs_leaf", self.min_docs_leaf, least=1, most=_LARGEST)
        for name in ("checkpoint_every", "max_category_set"):
            check_whole_number(name, getattr(self, name), least=1, most=_LARGEST)
        check_whole_number("n_seeds", self.n_seeds, least=1, most=_MOST_SEEDS)
        if self.truncation is not None:
            check_whole_number("truncation", self.truncation, least=1, most=_LARGEST)
        check_whole_number("n_bins", self.n_bins, least=_FEWEST_BINS, most=MOST_BINS)
        for name in ("min_hessian_leaf", "l1", "l2", "min_gain", "noise", "category_smoothing", "category_l2"):
            check_number(name, getattr(self, name), least=0.0)
        for name in ("learning_rate", "sigma"):
            check_number(name, getattr(self, name), above=0.0)
        for name in _OTHER_FRACTIONS if self.query_fraction == "auto" else ("query_fraction", *_OTHER_FRACTIONS):
            check_number(name, getattr(self, name), above=0.0)
            if getattr(self, name) > 1.0:
                raise ParameterError(f"must be at most 1, got {getattr(self, name)!r}.", parameter=name)
        if callable(self.loss):
            check_signature(self.loss)
        else:
            check_named("loss", self.loss, (*LOSSES, AUTOMATIC_LOSS))
        self._check_seeds()
        self._check_growth()
        check_named("gain", self.gain, GAINS)
        check_choice("binning", self.binning, STRATEGIES)
        check_named("importance", self.importance, IMPORTANCES)
        super()._check_parameters()

    def _check_seeds(self) -> None:
        """Refuse seeds of which all are bound to give the same trees."""
        if self.n_seeds > 1 and self._query_fraction() == 1.0 and not self._is_random():
            others = "" if callable(self.loss) else ", noise=0.3 or loss='xendcg'"
            raise ParameterError(
                f"is {self.n_seeds}, but all seeds would give the same trees. Leave out query_fraction=1, or make "
                f"something else random: feature_fraction=0.7{others}.",
                parameter="n_seeds",
            )

    def _warn_of_loss_parameters(self) -> None:
        """Say which parameters were set that the loss does not have."""
        absent = parameters_without_effect(self.loss)
        changed = [f"{name}={value!r}" for name, value in self._changed_params() if name in absent]
        if changed:
            loss = "a function as loss" if callable(self.loss) else f"loss={self.loss!r}"
            logger.warning("%s does not use %s: leave that out, or take another loss.", loss, ", ".join(changed))

    def _check_growth(self) -> None:
        for name in ("increasing", "decreasing", "categorical_features"):
            check_features(name, getattr(self, name))
        check_named("growth", self.growth, GROWTHS)
        if self.growth == "symmetric" and self.n_leaves == "auto" and 2**self.max_depth > MOST_LEAVES:
            raise ParameterError(
                f"must be from 0 to {MOST_LEAVES.bit_length() - 1} with growth='symmetric', whose trees have "
                f"2^max_depth leaves, got {self.max_depth}. Use fewer levels, or growth='leaf'.",
                parameter="max_depth",
            )
        has_categories = self.categorical_features is not None and len(self.categorical_features) > 0
        if has_categories and self.growth == "symmetric":
            raise ParameterError(
                "are cut by sets of categories, which symmetric trees do not have. Use growth='leaf'.",
                parameter="categorical_features",
            )
        if has_categories and self.normalize != "none":
            raise ParameterError(
                f"are numbers of categories, which normalize={self.normalize!r} would change. Use normalize='none'.",
                parameter="categorical_features",
            )

    def _is_random(self) -> bool:
        """Whether trees depend on the seed, without `query_fraction`."""
        has_fraction = any(getattr(self, name) < 1.0 for name in _OTHER_FRACTIONS)
        has_noise = self.noise > 0.0 and "noise" not in parameters_without_effect(self.loss)
        return has_fraction or has_noise or self.loss == "xendcg"

    def _query_fraction(self) -> float:
        if self.query_fraction != "auto":
            return self.query_fraction
        return 1.0 if self.n_seeds == 1 or self._is_random() else _QUERY_FRACTION_OF_SEEDS

    def _chooses_query_fraction(self) -> bool:
        return self.query_fraction == "auto" and self._query_fraction() < 1.0

    def _train(self, task: TrainingTask) -> TrainedModel:
        if isinstance(task.init_model, LambdaMART):
            choices, names = self._feature_choices(task.feature_names), task.feature_names
            warn_of_broken_rules(self, task.init_model, task.init_model.trees_, choices, names)
        return self.with_best_loss(task, lambda loss: self._train_with(loss, task))

    def with_best_loss(self, task: TrainingTask, train: Callable[[str | OwnLoss], TrainedModel]) -> TrainedModel:
        """The model of the ranker's loss; of loss="auto" the one that is best on the validation data."""
        self._warn_of_loss_parameters()
        if self._chooses_query_fraction():
            logger.info(
                "n_seeds=%d: each tree is grown on %g %% of the queries, so that seeds differ (query_fraction=%g).",
                self.n_seeds,
                100.0 * self._query_fraction(),
                self._query_fraction(),
            )
        if self.loss != AUTOMATIC_LOSS:
            return train(self.loss)
        candidates = CANDIDATE_LOSSES if task.validation is not None else CANDIDATE_LOSSES[:1]
        models = [train(loss) for loss in candidates]
        if len(models) == 1:
            number = 0
            logger.info(
                "loss='auto' is %s without %s, on which losses would be compared.", candidates[0], Parameter("eval_set")
            )
        else:
            figures = [_best_figure(model) for model in models]
            number = max(range(len(figures)), key=figures.__getitem__)
            logger.info(
                "loss='auto' chose %s by %s on the validation set: %s",
                candidates[number],
                parse_metric(self.eval_metric).name,
                ", ".join(f"{loss} {figure:.4f}" for loss, figure in zip(candidates, figures, strict=True)),
            )
        models[number].state[_CHOSEN_LOSS] = np.array([number], np.uint8)
        return models[number]

    def _train_with(self, loss: str | OwnLoss, task: TrainingTask) -> TrainedModel:
        validation = self._validation(task)
        rules = self._feature_choices(task.feature_names)
        binner = Binner(self.n_bins, self.binning, random_state=self.random_state).fit(task.train, n_jobs=self.n_jobs)
        bins = TreeBins(binner, task.train, rules.categorical, n_jobs=self.n_jobs)
        earlier = GrownTrees()
        scores = np.zeros((self.n_seeds, task.train.n_docs), np.float32)
        n_validation = 0 if task.validation is None else task.validation.n_docs
        validation_scores = np.zeros(n_validation)
        if isinstance(task.init_model, LambdaMART):
            self._check_rounds(task.init_model)
            earlier, model = task.init_model.grown_trees(), self._description(task, task.init_model.trees_)
            scores[:] = score_description(model, task.train, n_jobs=self.n_jobs)
            if task.validation is not None:
                validation_scores = score_description(model, task.validation, n_jobs=self.n_jobs)
        rounds = TreeRounds(
            lambda begun: self._boosters(loss, task, bins, rules.for_bins(bins), begun),
            bins.values,
            earlier,
            scores,
            validation_scores,
            None if task.validation is None else bins.columns(task.validation),
            checked_loss(loss, task.train) if callable(loss) else None,
            self.n_jobs,
        )
        return self.train_rounds(task, rounds, task.train.n_docs, validation, self._checkpoints(loss, task, earlier))

    def train_rounds(
        self,
        task: TrainingTask,
        rounds: TreeRounds,
        n_docs: int,
        validation: Validation | None,
        checkpoints: Checkpoints | None,
    ) -> TrainedModel:
        """Run the rounds of boosters, wherever they run, on `n_docs` documents."""
        most = self._most_rounds(task)
        run = self._run(rounds, most, task, validation, checkpoints)
        trees = rounds.first(run.n_kept)
        if trees.n_cuts and run.ended_by == "source":
            logger.warning("stopped after round %d of %d: no allowed cut gains anything any more.", run.n_done, most)
        if not trees.n_cuts:
            logger.warning(
                "no tree could be grown, and all scores are 0: no cut leaves enough documents (min_docs_leaf=%d) and "
                "Hessian (min_hessian_leaf=%g) on both sides and gains enough (min_gain=%g, l1=%g). Small weights make "
                "gradients and Hessians small.",
                self._least_docs(n_docs),
                self.min_hessian_leaf,
                self.min_gain,
                self.l1,
            )
        state = trees.statistics()
        if self._chooses_query_fraction():
            state[_CHOSEN_QUERY_FRACTION] = np.array([self._query_fraction()])
        return TrainedModel(self._description(task, trees.inputs(self.n_seeds)), state, run.history)

    def _feature_choices(self, names: tuple[str, ...]) -> FeatureChoices:
        return FeatureChoices.from_parameters(
            names, self.increasing, self.decreasing, self.interaction_groups, self.categorical_features
        )

    def _boosters(
        self, loss: str | OwnLoss, task: TrainingTask, bins: TreeBins, rules: FeatureRules | None, scores: np.ndarray
    ) -> list[TreeBooster]:
        """One run for each seed, with its row of `scores`."""
        problems = self.problems(loss, task.train, task.train.n_docs, bins, rules)
        return [
            load(BOOSTED_TREES, self.device, problem, problem, own, n_jobs=self.n_jobs)
            for problem, own in zip(problems, scores, strict=True)
        ]

    def problems(
        self,
        loss: str | OwnLoss,
        dataset: RankingDataset,
        n_docs: int,
        bins: TreeBins,
        rules: FeatureRules | None,
        agreement: Agreement = ALONE,
    ) -> list[TreeProblem]:
        """What each seed's trees are grown on; they share the bins. `n_docs` are those of all parts of the data."""
        slabs, columns = binned_slabs(dataset, bins, self.n_jobs, agreement)
        whole = TreeProblem(slabs, columns, self._settings(n_docs), query_ptr=dataset.query_ptr, feature_rules=rules)
        seeds = [(self.random_state + number * _SEED_STEP) % (_LARGEST_SEED + 1) for number in range(self.n_seeds)]
        if callable(loss):
            return [replace(whole, sampling=self._sampling(seed)) for seed in seeds]
        weights = document_weights(dataset, agreement)
        gains = gains_of(dataset.labels, self.gain, agreement, from_lowest=loss in RELEVANCE_LOSSES)
        check_single_precision(loss, gains, agreement)
        losses = [self._ranking_loss(loss, n_docs, seed) for seed in seeds]
        # They are the same for every seed.
        queries = judged_queries(losses[0], dataset.query_ptr, gains, weights)
        check_pairs(loss, dataset.labels, queries, agreement)
        return [
            replace(whole, sampling=self._sampling(seed), loss=settled, queries=queries)
            for seed, settled in zip(seeds, losses, strict=True)
        ]

    def _streaming_bytes(self, sizes: StreamedSizes) -> int:
        # Histograms of leaves and of threads; documents of a leaf are anywhere in a slab.
        histograms = 2048 * sizes.n_features * (self._most_leaves(sizes.n_docs) + sizes.n_threads)
        lines = SLAB_MEMORY + sizes.n_threads * min(SLAB_BYTES * sizes.n_docs, 2**28)
        return (56 + 20 * self.n_seeds) * sizes.n_docs + histograms + lines

    def _sampling(self, seed: int) -> Sampling:
        return Sampling(
            self._query_fraction(), self.document_fraction, self.feature_fraction, self.node_feature_fraction, seed
        )

    def _check_rounds(self, earlier: LambdaMART) -> None:
        if len(earlier.trees_) and earlier.trees_.round_size != self.n_seeds:
            raise ParameterError(
                f"has {earlier.trees_.round_size} trees in a round, and n_seeds is {self.n_seeds}: they must be equal.",
                parameter="init_model",
            )

    def _ranking_loss(self, name: str, n_docs: int, seed: int) -> RankingLoss:
        return RankingLoss(
            LOSSES[name],
            truncation=n_docs if self.truncation is None else self.truncation,
            sigma=float(self.sigma),
            normalize=int(self.normalize_lambdas),
            noise=float(self.noise),
            seed=seed,
        )

    def _most_leaves(self, n_docs: int) -> int:
        if self.n_leaves != "auto":
            return self.n_leaves
        return _FEW_LEAVES if n_docs < _FEW_DOCS else _LEAVES

    def _least_docs(self, n_docs: int) -> int:
        if self.min_docs_leaf != "auto":
            return self.min_docs_leaf
        return max(1, min(_AUTOMATIC_DOCS, n_docs // _AUTOMATIC_SHARE))

    def _levels(self, n_docs: int) -> int:
        """The depth of symmetric trees."""
        if self.n_leaves != "auto":
            most = self.n_leaves.bit_length() - 1
            return min(most, self.max_depth) if self.max_depth else most
        return self.max_depth or (_FEW_LEVELS if n_docs < _FEW_DOCS else _LEVELS)

    def _settings(self, n_docs: int) -> TreeSettings:
        is_symmetric = self.growth == "symmetric"
        levels = self._levels(n_docs)
        return TreeSettings(
            n_leaves=2**levels if is_symmetric else self._most_leaves(n_docs),
            max_depth=levels if is_symmetric else self.max_depth,
            is_symmetric=is_symmetric,
            category_smoothing=self.category_smoothing,
            category_l2=self.category_l2,
            max_category_set=self.max_category_set,
            min_docs_leaf=min(self._least_docs(n_docs), n_docs),
            min_hessian_leaf=self.min_hessian_leaf,
            l1=self.l1,
            l2=self.l2,
            min_gain=self.min_gain,
            learning_rate=self.learning_rate,
        )

    def _most_rounds(self, task: TrainingTask) -> int:
        if self.n_rounds != "auto":
            return self.n_rounds
        return _ROUNDS if self._patience(task) is None else _WATCHED_ROUNDS

    def _checkpoints(self, loss: str | OwnLoss, task: TrainingTask, earlier: GrownTrees) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        decisive = {name: value for name, value in self.get_params(deep=False).items() if name not in _WITHOUT_EFFECT}
        decisive["loss"] = loss
        fingerprint = run_fingerprint(decisive, task.train, task.validation, *earlier.to_arrays().values())
        path = f"{self.checkpoint}.{loss}" if self.loss == AUTOMATIC_LOSS else self.checkpoint
        return Checkpoints(path, self.checkpoint_every, fingerprint)

    def _description(self, task: TrainingTask, trees: TreeInputs) -> RankerDescription:
        return RankerDescription(task.feature_names, task.normaliser, inputs=(trees,), layers=(Sum(),))

    def _check_state(self) -> None:
        self.grown_trees()

    @property
    def trees_(self) -> TreeInputs:
        inputs = self._fitted_description().inputs
        if len(inputs) != 1 or not isinstance(inputs[0], TreeInputs):
            raise FileFormatError("a lambdamart ranker consists of trees; this one does not.")
        return inputs[0]

    def grown_trees(self) -> GrownTrees:
        """The trees with what is known of them: gains of nodes, training documents of leaves."""
        return GrownTrees.from_model(self.trees_, self.state_)

    @property
    def chosen_(self) -> dict[str, Any]:
        best = self.best_iteration_
        chosen: dict[str, Any] = {}
        if _CHOSEN_LOSS in self.state_:
            chosen["loss"] = CANDIDATE_LOSSES[int(self.state_[_CHOSEN_LOSS][0])]
        if _CHOSEN_QUERY_FRACTION in self.state_:
            chosen["query_fraction"] = float(self.state_[_CHOSEN_QUERY_FRACTION][0])
        return chosen if best is None or not self._keeps_best() else {**chosen, "n_rounds": best}

    def settled(self, trained: Sequence[Self], share: float) -> Self:
        """As in `StepwiseRanker`; the loss is the one that most of them chose, the share of queries is theirs."""
        ranker = super().settled(trained, share)
        if self._chooses_query_fraction():
            ranker.set_params(query_fraction=self._query_fraction())
        losses = [one.chosen_["loss"] for one in trained if "loss" in one.chosen_]
        return ranker.set_params(loss=max(CANDIDATE_LOSSES, key=losses.count)) if losses else ranker

    @property
    def feature_importances_(self) -> np.ndarray:
        return self.importances(self.importance)

    def importances(self, kind: Literal["gain", "split"] = "gain") -> np.ndarray:
        """How important each feature is: the sum of its cuts' gains, or their number; float64 (n_features,)."""
        check_choice("kind", kind, IMPORTANCES, value_hint("importance", kind, IMPORTANCES))
        return self.grown_trees().importance(kind, self._fitted_description().n_features)

    def staged_predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Iterator[np.ndarray]:
        """The scores after each round, from the first to the last.

        Yields
        ------
        float64 array (n_docs,), in the order of the given rows, a new one each time
        """
        description, trees = self._fitted_description(), self.trees_
        dataset = self._dataset_to_score(X, qid, group)
        scores = np.zeros(dataset.n_docs)
        for first in range(0, len(trees), trees.round_size):
            part = replace(description, inputs=(trees.part(first, first + trees.round_size),))
            scores = scores + score_description(part, dataset)
            yield dataset.to_user_order(scores).copy()


def parameters_without_effect(loss: str | OwnLoss) -> frozenset[str]:
    """The parameters of losses that this one does not have."""
    if callable(loss):
        return _OF_PAIR_LOSSES | {"gain"}
    if loss == "xendcg":
        return _OF_PAIR_LOSSES
    return frozenset({"gain"}) if loss in ("pairwise", *RELEVANCE_LOSSES) else frozenset()


def _best_figure(model: TrainedModel) -> float:
    """The best value of the watched validation figure."""
    figures = next(values for name, values in model.history.items() if name.startswith(WATCHED))
    return max(figures, default=-np.inf)
