"""RankSVM: a linear ranker with a large margin between documents of one query (Jin and Lin 2014; Lee and Lin 2014).

    min_w  ½‖w‖² + C·Σ_{pairs} max(0, 1 − w·(x_a − x_b))²                                                  (equation 1)

over the pairs of one query in which a has the higher label. The number of pairs is quadratic, the work is not: after a
sort by score within each query, value, gradient and Hessian-vector product need one pass over the documents each
(`rankwell.kernels.pair_loss.cpu.product`), and trust-region Newton needs few of them (`rankwell.solvers`).
"""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import ConvergenceWarning, DataError, ParameterError
from rankwell.kernels.device import device_for, load
from rankwell.kernels.pair_loss.contract import PAIR_LOSS, PairData, PairLoss
from rankwell.kernels.pair_loss.method import METHODS
from rankwell.metrics.conventions import DEFAULT
from rankwell.metrics.names import AnyMetric, parse_metric
from rankwell.parameters import check_choice, check_whole_number, is_number
from rankwell.rankers.base import Callback, Ranker, TrainedModel, TrainingTask
from rankwell.rankers.learnable import check_learnable
from rankwell.rankers.newton_iterations import NewtonIterations, loss_gradient_norm_at_zero
from rankwell.rankers.path_plot import plot_path
from rankwell.rankers.ranksvm_data import LinearScores, count_pairs, pair_data
from rankwell.rankers.regularisation_path import (
    RegularisationPath,
    TrainingOutcome,
    check_Cs,
    default_Cs,
    follow_path,
    relative_C,
)
from rankwell.rankers.stepwise import StepwiseRanker
from rankwell.rankers.streaming import StreamedSizes
from rankwell.rankers.validation import Validation
from rankwell.scoring.array_checks import check_array, check_numbers, require
from rankwell.scoring.description import Dense, LinearInputs, RankerDescription
from rankwell.scoring.normaliser import Normaliser

logger = logging.getLogger("rankwell")


class RankSVM(StepwiseRanker):
    """A linear ranker with L2 (squared hinge) loss over pairs.

    Parameters
    ----------
    C : float or "auto"
        Weight of the loss against ½‖w‖²: the larger, the closer to the training data. The loss is a sum over pairs, so
        what a number means depends on how many there are: C = 1 is almost no regularisation of 100,000 pairs. "auto"
        takes that into account. With an `eval_set` it follows the path of `path` with its default values and keeps the
        best C; without one it takes C = 10 / (number of pairs, each counted by its weight).
    tol : float
        Stop when ‖∇f(w)‖ ≤ tol·‖∇f(0)‖ (equation 3).
    max_iter : int
        Outer iterations of the solver at most.
    method : "auto", "direct" or "order-statistic"
        How sums over pairs are computed: by counting level by level, O(documents·levels), or with an order-statistic
        tree, O(documents·log levels). Both give the same numbers; "auto" takes the cheaper one for the data
        (`method_`).
    early_stopping_rounds : int, optional
        Stop after this many outer iterations without a better validation metric, and keep the best weights.
    eval_metric, eval_convention : str (or a function of a query's labels and scores), str
        The metric on `eval_set` after every outer iteration, and its convention.
    normalize : "auto", "none", "standard", "query-minmax" or "letor"
        "standard" costs no copy of the features: means cancel in pairs, and standard deviations go into the weights.
    device : "auto", "cpu" or "cuda"
    random_state : int, optional
        Accepted, as by every ranker, but without effect: nothing is random here.
    n_jobs : int, optional
        Threads; None or -1 is every core. The model does not depend on it.

    Attributes
    ----------
    weights_ : float64 array (n_features,)
        The weights of the normalised features.
    C_ : float
        The C in use, also if "auto" chose it.
    method_, device_ : str
        What "auto" chose. Not known for a ranker from a file.
    converged_ : bool
        Whether the stopping rule was met.
    path_ : RegularisationPath
        After "auto" with an `eval_set`, also in a ranker file; `plot_path` draws it.
    history_ : dict
        By outer iteration: `objective`, `relative_gradient` (‖∇f(w)‖ / ‖∇f(0)‖), `eta` (equation 15, with f(w*)
        estimated from the last step), `products` (Hessian-vector products so far), the validation metric, and `seconds`
        of training so far.
    best_iteration_, best_score_
        The outer iteration that was best on `eval_set`, counted from 1, and its metric. "auto" measures each C at its
        end: then they are None and the best metric of the path.

    Weights of queries multiply the loss of their pairs, weights of documents that of every pair they are in: weight 2
    is the same as the query, or the document, twice. A missing value counts as 0 after normalisation.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> ranker = rankwell.RankSVM(C=0.01, normalize="none").fit(data)
    >>> bool(abs(data.features @ ranker.coef_ + ranker.intercept_ - ranker.predict(data)).max() < 1e-4)
    True
    """

    name = "ranksvm"
    step_name = "outer iteration"
    can_continue = True
    can_stream = True

    def __init__(
        self,
        C: float | Literal["auto"] = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        method: Literal["auto", "direct", "order-statistic"] = "auto",
        early_stopping_rounds: int | None = None,
        eval_metric: AnyMetric = "ndcg@10",
        eval_convention: str = DEFAULT.name,
        normalize: str = "auto",
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.method = method
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.eval_convention = eval_convention
        self.normalize = normalize
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        if self.C != "auto" and not (is_number(self.C) and math.isfinite(self.C) and self.C > 0):
            raise ParameterError(f"must be a finite number above 0, or 'auto', got {self.C!r}.", parameter="C")
        if not (is_number(self.tol) and 0 < self.tol < 1):
            raise ParameterError(f"must be between 0 and 1, got {self.tol!r}.", parameter="tol")
        check_whole_number("max_iter", self.max_iter, least=1)
        check_choice("method", self.method, ("auto", *METHODS))
        super()._check_parameters()

    def settled(self, trained: Sequence[Self], share: float) -> Self:
        """With the geometric mean of the C that "auto" chose, for the pairs of all of the data."""
        if self.C != "auto":
            return self.untrained()
        # C is chosen relative to the pairs, of which all of the data has more.
        C = share * math.exp(sum(math.log(ranker.C_) for ranker in trained) / len(trained))
        return self.untrained().set_params(C=C)

    def path(
        self,
        train: RankingDataset,
        validation: RankingDataset,
        Cs: Sequence[float] | None = None,
        *,
        callback: Callback | None = None,
    ) -> RegularisationPath:
        """Train with each C in growing order, each from the weights of the last, and fit this ranker to the best.

        Parameters
        ----------
        train, validation : RankingDataset
        Cs : sequence of float, optional
            By default powers of two that suit the number of pairs (`default_Cs`), of which the last ones are tried only
            while the figure rises.
        callback : callable, optional
            Called with a `TrainingStep` after each outer iteration. If it returns True, the path ends there.

        Returns
        -------
        RegularisationPath
            Every point, measured by `eval_metric` on `validation`. It also stays in `path_`.
        """
        self._check_parameters()
        task = self._training_task(train, (validation, None, None), callback, None)
        check_learnable(task.train, missing_is_zero=self.missing_is_zero)
        self._keep(self._follow_path(task, *self._loss_of(task), Cs))
        self.metrics_: dict[str, Any] = {}
        return self.path_

    def _check_state(self) -> None:
        layers = self._fitted_description().layers
        require(len(layers) == 1 and isinstance(layers[0], Dense), "a ranksvm ranker is one dense layer")
        check_numbers(self.state_.get("C"), "state.C", (1,))
        check_array(self.state_.get("converged"), "state.converged", ("?",), (1,))

    @property
    def weights_(self) -> np.ndarray:
        layer: Any = self._fitted_description().layers[0]
        return np.asarray(layer.weights[0])

    @property
    def C_(self) -> float:
        self._fitted_description()
        return float(self.state_["C"][0])

    @property
    def converged_(self) -> bool:
        self._fitted_description()
        return bool(self.state_["converged"][0])

    @property
    def chosen_(self) -> dict[str, Any]:
        return {"C": self.C_} if self.C == "auto" else {}

    @property
    def path_(self) -> RegularisationPath:
        self._fitted_description()
        if "path" not in self.state_:
            raise AttributeError("there is no path_: C was not chosen from several values.")
        if hasattr(self, "_path"):
            return self._path
        return RegularisationPath.from_array(
            self.state_["path"], parse_metric(self.eval_metric).name, self.eval_convention
        )

    @property
    def best_score_(self) -> float | None:
        return self.path_.best.validation if hasattr(self, "path_") else super().best_score_

    def plot_path(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the validation metric over C (needs the extra `plot`); saved if a path is given.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plot_path(self.path_, path=path)

    def _prepared(self, dataset: RankingDataset, normaliser: Normaliser) -> RankingDataset:
        """As for every ranker, but under the normaliser `standard` a dataset stays as it is (see `pair_data`)."""
        return dataset if normaliser.name == "standard" else super()._prepared(dataset, normaliser)

    def _train(self, task: TrainingTask) -> TrainedModel:
        return self.train_with(task, *self._loss_of(task))

    def train_with(self, task: TrainingTask, loss: PairLoss, n_pairs: int) -> TrainedModel:
        """Minimise the objective over a pair loss, wherever it is computed."""
        if self.C == "auto" and task.validation is not None:
            return self._follow_path(task, loss, n_pairs, None)
        validation = self._validation(task)
        C = relative_C(loss) if self.C == "auto" else float(self.C)
        scores = None if task.validation is None else LinearScores(task.validation, task.normaliser, self.n_jobs)
        iterations = NewtonIterations(loss, C, self.tol, start=_weights_of(task.init_model), validation=scores)
        return self._model(task, C, self._minimise(task, iterations, validation))

    def _follow_path(
        self, task: TrainingTask, loss: PairLoss, n_pairs: int, Cs: Sequence[float] | None
    ) -> TrainedModel:
        validation = self._validation(task)
        if task.validation is None or validation is None:
            raise DataError("the path chooses C on a validation set: pass one.")
        values = default_Cs(n_pairs) if Cs is None else check_Cs(Cs)
        unit_norm = loss_gradient_norm_at_zero(loss)
        self._path = follow_path(
            # Early stopping by the same metric would give weights that belong to no particular C: the path trains
            # to the tolerance.
            lambda C, start: self._minimise(
                task, NewtonIterations(loss, C, self.tol, start=start, initial_gradient_norm=C * unit_norm), None
            ),
            validation,
            LinearScores(task.validation, task.normaliser, self.n_jobs),
            values,
            start=_weights_of(task.init_model),
            to_the_end=Cs is not None,
        )
        best = self._path.best
        assert best.outcome is not None
        logger.info(
            "C='auto' chose C=%.6g of %d values by %s (%s) on the validation set: %.4f",
            *(best.C, len(self._path.points), self._path.metric, self._path.convention, best.validation),
        )
        model = self._model(task, best.C, best.outcome)
        return replace(model, state={**model.state, "path": self._path.to_array()})

    def _loss_of(self, task: TrainingTask) -> tuple[PairLoss, int]:
        """The loss over the training data, and the number of its pairs."""
        data = pair_data(task.train, task.normaliser, self.n_jobs)
        n_pairs = count_pairs(data, self.n_jobs)
        return self._pair_loss(data), n_pairs

    def _streaming_bytes(self, sizes: StreamedSizes) -> int:
        # Two sets of support pairs, and a chunk of the rows in every thread; sums of chunks.
        chunk = 4 * sizes.n_docs * sizes.n_features // min(256, max(1, sizes.n_docs // 512))
        return 80 * sizes.n_docs + sizes.n_threads * chunk + min(2**26, 2048 * sizes.n_features)

    def _pair_loss(self, data: PairData) -> PairLoss:
        self.device_ = device_for(PAIR_LOSS, self.device, data, method=self.method)
        loss: PairLoss = load(PAIR_LOSS, self.device_, data, method=self.method, n_jobs=self.n_jobs)
        self.method_ = loss.method
        return loss

    def _minimise(
        self, task: TrainingTask, iterations: NewtonIterations, validation: Validation | None
    ) -> TrainingOutcome:
        run = self._run(iterations, self.max_iter, task, validation)
        run.history["eta"] = iterations.final_eta(run.history["objective"])
        best = None if self.early_stopping_rounds is None else iterations.best
        return TrainingOutcome(
            weights=iterations.weights if best is None else best,
            result=iterations.solver.result("max_iterations" if run.ended_by == "steps" else "callback"),
            history=run.history,
        )

    def _model(self, task: TrainingTask, C: float, outcome: TrainingOutcome) -> TrainedModel:
        result = outcome.result
        if result.stopped_by in ("max_iterations", "rounding"):
            warnings.warn(
                f"RankSVM stopped after {result.n_iterations} iterations at a relative gradient of "
                f"{result.relative_gradient:.2g}, above tol={self.tol:.2g}. "
                + ("Raise max_iter or tol." if result.stopped_by == "max_iterations" else "Raise tol, or lower C."),
                ConvergenceWarning,
                stacklevel=4,
            )
        description = RankerDescription(
            feature_names=task.feature_names,
            normaliser=task.normaliser,
            inputs=(LinearInputs.identity(task.train.n_features),),
            layers=(Dense(outcome.weights[None, :], np.zeros(1)),),
        )
        state = {"C": np.array([C]), "converged": np.array([result.converged])}
        return TrainedModel(description, state, outcome.history)


def _weights_of(ranker: Ranker | None) -> np.ndarray | None:
    return ranker.weights_ if isinstance(ranker, RankSVM) else None
