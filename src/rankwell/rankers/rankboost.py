"""RankBoost: a sum of threshold weak rankers, each chosen for the pairs that the ones before it got wrong.

Freund, Iyer, Schapire, Singer 2003, in the form of Xu et al. 2009 (FAR, appendices A and B): pairs of documents of one
query, x1 preferred to x0; weak rankers h(d) = 1 where feature f(d) > θ, else 0, also where f(d) is missing. Each round

    π(d)    = Σ_d' (D(d', d) − D(d, d'))                        how much d should rise
    r(f, θ) = Σ_{d: f(d) > θ} π(d);  take the largest |r|       (M3.int: over integral histograms)
    α       = ν·½·ln((1 + r) / (1 − r))                         ν is the learning rate; 1 in the papers
    D(x0, x1) ∝ D(x0, x1)·exp(α·(h(x0) − h(x1)))

and H = Σ α·h is the score. Pairs that labels give are never stored: see `kernels/boosting/cpu/weights.py`.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import numpy as np

from rankwell.data.binning import MOST_BINS, STRATEGIES, Binner
from rankwell.errors import ParameterError
from rankwell.kernels.boosting.contract import Booster, PairList
from rankwell.kernels.boosting.precision import MOST_HALVINGS
from rankwell.kernels.device_report import DEVICE_FIGURES
from rankwell.kernels.disk_arrays import BLOCK_BYTES
from rankwell.kernels.threads import kernel_threads
from rankwell.metrics.conventions import DEFAULT
from rankwell.metrics.names import AnyMetric
from rankwell.parameters import check_choice, check_whole_number, is_number
from rankwell.rankers.base import Callback, Ranker, TrainedModel, TrainingTask
from rankwell.rankers.boosting_rounds import BoostingRounds
from rankwell.rankers.checkpoints import Checkpoints, run_fingerprint
from rankwell.rankers.learnable import check_learnable_pairs
from rankwell.rankers.pair_weights import BY_RANK, PAIR_WEIGHTS, levelled_queries, listed_pairs
from rankwell.rankers.rankboost_devices import WEAK_LEARNERS, boosting_device, make_booster
from rankwell.rankers.stepwise import StepwiseRanker
from rankwell.rankers.streaming import StreamedSizes
from rankwell.rankers.training_data import as_dataset, lacks_queries
from rankwell.rankers.validation import Validation
from rankwell.rankers.weak_rankers import WeakRankers
from rankwell.scoring.description import RankerDescription, Sum
from rankwell.scoring.normaliser import Normaliser

# What n_rounds="auto" means: without early stopping, and at most with it.
_ROUNDS, _WATCHED_ROUNDS = 300, 2000


class RankBoost(StepwiseRanker):
    """A boosted sum of threshold weak rankers, in O(documents · features) per round, for any number of pairs.

    Training ends early when no weak ranker helps any more, or when one orders every pair correctly. The same
    data and parameters give the same model, byte for byte, on any number of threads and on every device.

    Parameters
    ----------
    n_rounds : int or "auto"
        Rounds at most; with `init_model`, that many more. "auto" is 300, or 2,000 where early stopping chooses among
        them.
    learning_rate : float
        What share of α each round takes: a power of two from 1/1024 to 1, so that every device computes the same. The
        papers have 1. Less needs more rounds, and generalises better, most of all where features are many and queries
        few.
    n_bins : int
        Bins per feature, 2 to 256, including the one for missing values: thresholds are the borders between them.
    binning : "width" or "quantile"
        Bins of equal width, as in the papers, or of about equally many documents.
    weak_learner : "m3.int", "m3", "m2.2dint" or "m2"
        How the best weak ranker is searched for. All find the same ones; the others are for comparison (Table I of the
        FAR paper) and run on the CPU only.
    early_stopping_rounds : int, "auto" or None
        Stop after this many rounds without a better validation metric, and keep the rounds up to the best. "auto" is
        200 if there is an `eval_set`; None keeps every round.
    eval_metric, eval_convention : str (or a function of a query's labels and scores), str
        The metric on `eval_set` after every round, and its convention.
    pair_weight : "pairs", "queries", "difference", "gain" or "ndcg"
        The initial weight of a pair: the same for all, the same sum for every query, the difference of its labels, or
        the share of NDCG@10 that it can decide. "ndcg" is the difference of gains, and weighs pairs by the ranks of
        their documents as training goes on, on the CPU (`rankwell.rankers.pair_weights`). Weights of queries and
        documents multiply it.
    checkpoint, checkpoint_every : str, int
        A file to which the run's state is written every `checkpoint_every` rounds: after a crash, the same call
        continues from there and gives the same model. It is deleted at the end.
    normalize : "auto", "none", "standard", "query-minmax" or "letor"
    device : "auto", "cpu", "cuda", "opencl" or "fpga-sim"
        "fpga-sim" searches on a simulated accelerator, the FAR paper's as hardware; `history_` then has the `cycles` of
        each round and the `board_seconds` that they would take.
    random_state : int
        Chooses the rows that quantile binning uses if there are very many.
    n_jobs : int, optional
        Threads; None or -1 is every core.

    Attributes
    ----------
    weak_rankers_ : WeakRankers
        Feature, threshold and r of each round; α too.
    feature_importances_ : float64 array (n_features,)
        Σ|α| by feature.
    history_ : dict
        By round: `loss` (Σ of initial pair weight · e^{H(x0) − H(x1)}, 1 at the start), `alpha`, and the validation
        metric, including rounds after the best one; `seconds` of training so far.
    best_iteration_, best_score_
        The round of `history_` that was best on `eval_set`, counted from 1, and its metric.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> ranker = rankwell.RankBoost(n_rounds=20).fit(data)
    >>> ranker.history_["loss"][-1] < ranker.history_["loss"][0]
    True
    >>> ranker.feature_importances_.shape
    (5,)
    """

    name = "rankboost"
    step_name = "round"
    can_continue = True
    can_stream = True
    missing_is_zero = False
    automatic_patience = 200
    steps_parameter = "n_rounds"

    def __init__(
        self,
        n_rounds: int | Literal["auto"] = "auto",
        learning_rate: float = 0.25,
        n_bins: int = 256,
        binning: Literal["width", "quantile"] = "width",
        weak_learner: Literal["m3.int", "m3", "m2.2dint", "m2"] = "m3.int",
        early_stopping_rounds: int | Literal["auto"] | None = "auto",
        eval_metric: AnyMetric = "ndcg@10",
        eval_convention: str = DEFAULT.name,
        pair_weight: Literal["pairs", "queries", "difference", "gain", "ndcg"] = "queries",
        checkpoint: str | None = None,
        checkpoint_every: int = 100,
        normalize: str = "auto",
        device: Literal["auto", "cpu", "cuda", "opencl", "fpga-sim"] = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.n_bins = n_bins
        self.binning = binning
        self.weak_learner = weak_learner
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.eval_convention = eval_convention
        self.pair_weight = pair_weight
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.normalize = normalize
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        if self.n_rounds != "auto":
            check_whole_number("n_rounds", self.n_rounds, least=1)
        n_halvings_of(self.learning_rate)
        check_whole_number("n_bins", self.n_bins, least=2, most=MOST_BINS)
        check_whole_number("checkpoint_every", self.checkpoint_every, least=1)
        check_whole_number("random_state", self.random_state, least=0)
        check_choice("binning", self.binning, STRATEGIES)
        check_choice("weak_learner", self.weak_learner, WEAK_LEARNERS)
        check_choice("pair_weight", self.pair_weight, PAIR_WEIGHTS)
        if self.pair_weight == BY_RANK and self.weak_learner not in ("m3", "m3.int"):
            raise ParameterError(
                f"must be 'm3.int' or 'm3' if pairs are weighed by rank, got {self.weak_learner!r}.",
                parameter="weak_learner",
            )
        super()._check_parameters()

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        *,
        pair_weights: Any = None,
        qid: Any = None,
        group: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        callback: Callback | None = None,
        init_model: Ranker | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a list of pairs, for example from clicks, instead of labels: O(pairs) more per round, on the CPU.

        Parameters
        ----------
        X, qid, group
            As in `fit`; labels are not read.
        pairs : int array (n_pairs, 2)
            Rows of X: the preferred document, then the other one of the same query. A pair may appear more than
            once, and two pairs may contradict each other.
        pair_weights : array (n_pairs,), optional
            The initial weight of each pair, instead of the parameter `pair_weight`.
        eval_set, eval_qid, eval_group, callback, init_model
            As in `fit`.
        """
        self._check_parameters()
        train = as_dataset(X, None, qid=qid, group=group)
        listed = listed_pairs(train, pairs, pair_weights)
        task = self._training_task(train, (eval_set, eval_qid, eval_group), callback, init_model)
        check_learnable_pairs(task.train.features, listed.higher, listed.lower, missing_is_zero=self.missing_is_zero)
        self._keep(self._train(task, listed))
        self._trained_without_queries = lacks_queries(X, qid, group)
        self.metrics_: dict[str, Any] = {}
        return self

    def _train(self, task: TrainingTask, listed: PairList | None = None) -> TrainedModel:
        validation = self._validation(task)
        dataset = task.train
        with kernel_threads(self.n_jobs):
            source = levelled_queries(dataset, self.pair_weight) if listed is None else listed
        by_rank = self.pair_weight == BY_RANK
        options = {"by_rank": by_rank, "streamed": dataset.is_on_disk}
        device = boosting_device(self.device, self.weak_learner, source, dataset.n_features, **options)
        binner = Binner(self.n_bins, self.binning, random_state=self.random_state).fit(dataset, n_jobs=self.n_jobs)
        n_halvings = n_halvings_of(self.learning_rate)
        earlier = earlier_rounds(task)
        return self.train_rounds(
            task,
            lambda done: make_booster(
                device, self.weak_learner, source, dataset, binner, done, n_halvings, self.n_jobs, by_rank=by_rank
            ),
            binner.threshold_table,
            validation,
            self._checkpoints(task, listed, earlier),
            DEVICE_FIGURES.get(device, ()),
        )

    def train_rounds(
        self,
        task: TrainingTask,
        make_booster: Callable[[WeakRankers], Booster],
        thresholds: np.ndarray,
        validation: Validation | None,
        checkpoints: Checkpoints | None,
        device_figures: tuple[str, ...] = (),
    ) -> TrainedModel:
        """Run the rounds of a booster, wherever it runs; see `BoostingRounds` for the parameters."""
        n_halvings, earlier = n_halvings_of(self.learning_rate), earlier_rounds(task)
        rounds = BoostingRounds(make_booster, thresholds, n_halvings, earlier, task.validation, device_figures)
        run = self._run(rounds, self._most_rounds(task), task, validation, checkpoints)
        rankers = rounds.first(run.n_kept)
        description = _description(rankers, task.feature_names, task.normaliser)
        return TrainedModel(description, rankers.to_arrays(), run.history)

    def _streaming_bytes(self, sizes: StreamedSizes) -> int:
        # While pairs are prepared; later there is less for each document, and histograms of every part of them.
        preparation = 96 * sizes.n_docs
        n_parts = -(-16 * sizes.n_docs // BLOCK_BYTES)
        by_part = sizes.n_features * n_parts * (1024 + 512 + 341)
        return max(preparation, 64 * sizes.n_docs + by_part + 8192 * sizes.n_features)

    def _most_rounds(self, task: TrainingTask) -> int:
        if self.n_rounds != "auto":
            return self.n_rounds
        return _ROUNDS if self._patience(task) is None else _WATCHED_ROUNDS

    def _checkpoints(self, task: TrainingTask, listed: PairList | None, earlier: WeakRankers) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        return Checkpoints(self.checkpoint, self.checkpoint_every, self._fingerprint(task, listed, earlier))

    def _fingerprint(self, task: TrainingTask, listed: PairList | None, earlier: WeakRankers) -> str:
        # Without the number of rounds: a longer run begins like a shorter one.
        decisive = ["learning_rate", "n_bins", "binning", "weak_learner", "pair_weight", "random_state", "normalize"]
        decisive += ["early_stopping_rounds", "eval_metric", "eval_convention"]
        pairs = (None,) * 3 if listed is None else (listed.lower, listed.higher, listed.weight)
        return run_fingerprint(
            {name: getattr(self, name) for name in decisive},
            task.train,
            task.validation,
            *earlier.to_arrays().values(),
            *pairs,
        )

    def _check_state(self) -> None:
        _ = self.weak_rankers_

    @property
    def chosen_(self) -> dict[str, Any]:
        best = self.best_iteration_
        return {} if best is None or not self._keeps_best() else {"n_rounds": best}

    @property
    def weak_rankers_(self) -> WeakRankers:
        return WeakRankers.from_arrays(self.state_, self._fitted_description().n_features)

    @property
    def feature_importances_(self) -> np.ndarray:
        return self.weak_rankers_.importance(self._fitted_description().n_features)

    def predict(
        self, X: Any, *, qid: Any = None, group: Any = None, n_rounds: int | None = None, device: str = "cpu"
    ) -> np.ndarray:
        """Score every row, as `Ranker.predict` does; with `n_rounds`, with only the first rounds."""
        if n_rounds is None:
            return super().predict(X, qid=qid, group=group, device=device)
        check_whole_number("n_rounds", n_rounds, least=0)
        whole = self._fitted_description()
        first = copy.copy(self)
        first.description_ = _description(self.weak_rankers_.first(n_rounds), whole.feature_names, whole.normaliser)
        return first.predict(X, qid=qid, group=group, device=device)

    def staged_predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Iterator[np.ndarray]:
        """The scores after each round, from the first to the last.

        Yields
        ------
        float64 array (n_docs,), in the order of the given rows, a new one each time
        """
        description = self._fitted_description()
        dataset = self._dataset_to_score(X, qid, group)
        prepared = dataset.replace(features=description.normaliser.apply(dataset))
        for scores in self.weak_rankers_.staged_scores(prepared):
            yield dataset.to_user_order(scores).copy()


def earlier_rounds(task: TrainingTask) -> WeakRankers:
    """The rounds of the model that training continues from."""
    return task.init_model.weak_rankers_ if isinstance(task.init_model, RankBoost) else WeakRankers.none()


def n_halvings_of(learning_rate: float) -> int:
    """The k of a learning rate 2^−k, or an error."""
    if is_number(learning_rate) and 0 < learning_rate <= 1:
        mantissa, exponent = math.frexp(learning_rate)
        if mantissa == 0.5 and 1 - exponent <= MOST_HALVINGS:
            return 1 - exponent
    raise ParameterError(
        f"must be a power of two from 1 down to 2^-{MOST_HALVINGS} (1, 0.5, 0.25, 0.125, ...), got {learning_rate!r}.",
        parameter="learning_rate",
    )


def _description(rankers: WeakRankers, feature_names: tuple[str, ...], normaliser: Normaliser) -> RankerDescription:
    return RankerDescription(feature_names, normaliser, inputs=(rankers.inputs(),), layers=(Sum(),))
