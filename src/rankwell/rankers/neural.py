"""NeuralRanker: what ListNet and similar rankers share. A network scores documents (equation 2.5), a loss over a
query's list measures the scores, and gradient descent minimises it query by query.

    s_i = out(Σ_h w_h·act(Σ_f w_hf·x_if + b_h) + b)

The thesis has sigmoids in both places and no biases; here the hidden units and the output have biases, and the output
is a sigmoid only for ListNet and above sigmoid hidden layers. Several networks (`n_seeds`) make one ranker, whose score
is their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.device import device_for, load
from rankwell.kernels.lists.contract import NETWORK_TRAINING, NetworkProblem, NetworkState, NetworkTrainer
from rankwell.kernels.lists.fixed_point_format import (
    METHODS,
    MOST_ACCUMULATOR_BITS,
    FixedPointFormat,
    bits_of_precision,
    sufficient_accumulator_bits,
)
from rankwell.kernels.lists.losses import ListLoss
from rankwell.kernels.lists.network_shape import NetworkShape, network_shape, pack_layers, unpack_layers
from rankwell.kernels.threads import kernel_threads
from rankwell.metrics.conventions import DEFAULT
from rankwell.metrics.names import AnyMetric
from rankwell.parameters import check_choice, check_number, check_whole_number, is_whole_number
from rankwell.rankers.base import TrainedModel, TrainingTask
from rankwell.rankers.checkpoints import Checkpoints, run_fingerprint
from rankwell.rankers.kernel_swap import KernelSwap, check_swap, formats_of
from rankwell.rankers.network_epochs import NetworkEpochs, network_features
from rankwell.rankers.network_mean import mean_network
from rankwell.rankers.stepwise import StepwiseRanker
from rankwell.rankers.training_lists import list_weights
from rankwell.scoring.array_checks import check_numbers, require
from rankwell.scoring.description import Dense, LinearInputs, RankerDescription
from rankwell.solvers.first_order import FirstOrder

ACTIVATIONS = {"sigmoid": "sigmoid", "relu": "relu", "tanh": "tanh", "linear": "identity"}
OUTPUTS = ("auto", "sigmoid", "identity")
# The parameters of several networks in a ranker's state.
_NETWORKS = "networks"
# Parameters that do not change the model, and so are not part of a checkpoint's fingerprint.
_WITHOUT_EFFECT = frozenset({"n_jobs", "checkpoint", "checkpoint_every", "n_epochs"})


class NeuralRanker(StepwiseRanker):
    """A network trained on lists; a subclass defines its loss in `_list_loss`.

    Parameters
    ----------
    hidden : tuple of int
        Units of each hidden layer; () is a linear function.
    activation : "sigmoid", "relu", "tanh" or "linear"
        Of the hidden units.
    output_activation : "auto", "sigmoid" or "identity"
        Of the score. "auto" is equation 2.5's sigmoid for ListNet above sigmoid hidden layers, else the identity.
    optimizer : "sgd" or "adam"
        Gradient descent, or Adam.
    learning_rate : float or "auto"
        How far a step goes. "auto" is 0.003 for "adam"; for "sgd" 0.5 if the score is a sigmoid, 0.1 if only the
        hidden units are bounded ("sigmoid", "tanh"), else 0.02, and 1 − momentum times that.
    lr_decay : float
        Epoch e, counted from 0, is trained with learning_rate / (1 + lr_decay·e).
    momentum : float
        Of "sgd": the share of the last step that the next one repeats.
    weight_decay : float
        Decoupled: every step also subtracts learning rate · weight_decay · w from every weight and bias.
    dropout : float
        The share of hidden units left out, drawn anew for every document.
    batch_queries : int
        Queries per step; their gradients are averaged. 1 is the thesis's training, query by query.
    n_epochs : int
        Passes over the training data. The default and the falling rate were chosen on validation data of several
        collections, so that training without an `eval_set` ends before it overfits.
    n_seeds : int
        Networks to train, with the seeds random_state, random_state + 1, ...; the ranker scores by their mean, which
        depends less on chance than one of them, and takes as much longer to train and to score.
    shuffle : bool
        Whether every epoch takes the queries in a new order.
    precision : "float32" or "fixed4" to "fixed31"
        The number format of back propagation; fixed point runs on the CPU, and is emulated there.
    fixed_point : "direct", "adaptive" or "batch"
        How gradients are scaled into fixed point: not at all, by a power of two for each query, or for each document.
    accumulator_bits : int, optional
        By default 10 more than the multiplications' bits, or as many as the longest query needs.
    fixed_point_batches : int
        M of "batch": how many scales there are for the gradients of one query.
    swap : tuple, optional
        When to change the number format: at epochs, as in ((50, "fixed8"), (250, "float32")); or, as in ("gain", 1e-4,
        "fixed8", "float32"), to the next format of the list whenever the validation figure gains less than that per
        second; on "fpga-sim", per second of the board, which a change of the format costs too.
    early_stopping_rounds : int, optional
        Stop after this many epochs without a better validation figure. With a validation set the best epoch's
        network is kept, whether training stopped early or not.
    eval_metric, eval_convention : str (or a function of a query's labels and scores), str
        The validation figure.
    checkpoint, checkpoint_every : str, int
        A file to which the run's state is written every `checkpoint_every` epochs: after a crash, the same call
        continues from there and gives the same model. It is deleted when the run is complete.
    normalize : "auto", "none", "standard", "query-minmax" or "letor"
    device : "auto", "cpu", "cuda" or "fpga-sim"
        CUDA trains float32 networks of at most one hidden layer of 64 units by the exact ListNet losses. "fpga-sim"
        trains networks of one hidden layer in fixed point, with back propagation on a simulated accelerator, the
        thesis's as hardware: the CPU's model, and `history_` has the `cycles` of an epoch and `board_seconds`, what
        they would take on a board.
    random_state : int
        The seed of the first weights, the order of the queries, and all that is drawn.
    n_jobs : int, optional
        Threads; the model does not depend on it.

    Attributes
    ----------
    history_ : dict
        By epoch: `loss` (its mean over queries and networks), `learning rate`, `bits` of the number format, the
        validation figure, and `seconds` of training so far.
    best_iteration_, best_score_
        The epoch that was best on `eval_set`, counted from 1, and its figure.
    """

    step_name = "epoch"
    steps_parameter = "n_epochs"
    settings_in_history = frozenset({"bits"})
    unplotted = StepwiseRanker.unplotted | {"learning rate"}
    can_continue: ClassVar[bool] = True
    # Whether the score is a sigmoid by default, if the hidden units are.
    sigmoid_scores: ClassVar[bool] = False

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (15,),
        activation: Literal["sigmoid", "relu", "tanh", "linear"] = "sigmoid",
        output_activation: Literal["auto", "sigmoid", "identity"] = "auto",
        optimizer: Literal["sgd", "adam"] = "sgd",
        learning_rate: float | Literal["auto"] = "auto",
        lr_decay: float = 0.05,
        momentum: float = 0.0,
        weight_decay: float = 1e-3,
        dropout: float = 0.0,
        batch_queries: int = 1,
        n_epochs: int = 50,
        n_seeds: int = 3,
        shuffle: bool = True,
        precision: str = "float32",
        fixed_point: Literal["direct", "adaptive", "batch"] = "batch",
        accumulator_bits: int | None = None,
        fixed_point_batches: int = 10,
        swap: Any = None,
        early_stopping_rounds: int | None = None,
        eval_metric: AnyMetric = "ndcg@10",
        eval_convention: str = DEFAULT.name,
        checkpoint: str | None = None,
        checkpoint_every: int = 50,
        normalize: str = "auto",
        device: Literal["auto", "cpu", "cuda", "fpga-sim"] = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.output_activation = output_activation
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.lr_decay = lr_decay
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.batch_queries = batch_queries
        self.n_epochs = n_epochs
        self.n_seeds = n_seeds
        self.shuffle = shuffle
        self.precision = precision
        self.fixed_point = fixed_point
        self.accumulator_bits = accumulator_bits
        self.fixed_point_batches = fixed_point_batches
        self.swap = swap
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.eval_convention = eval_convention
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.normalize = normalize
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _keeps_best(self) -> bool:
        return True

    def _list_loss(self) -> ListLoss:
        raise TypeError(f"{type(self).__name__} has no loss: it must define _list_loss.")

    def _check_parameters(self) -> None:
        layers = self.hidden if isinstance(self.hidden, tuple | list) else (None,)
        if not all(is_whole_number(units) and units >= 1 for units in layers):
            raise ParameterError(
                f"must be whole numbers of units from 1 up, one per layer, as in (15,), got {self.hidden!r}.",
                parameter="hidden",
            )
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("output_activation", self.output_activation, OUTPUTS)
        for name in ("batch_queries", "n_epochs", "n_seeds", "checkpoint_every", "fixed_point_batches"):
            check_whole_number(name, getattr(self, name), least=1)
        check_whole_number("random_state", self.random_state, least=0)
        check_number("dropout", self.dropout, least=0, below=1)
        self._first_order().check()
        super()._check_parameters()
        self._check_precision()

    def _check_precision(self) -> None:
        bits_of_precision(self.precision)
        check_swap(self.swap, has_validation=True)
        check_choice("fixed_point", self.fixed_point, METHODS)
        if self._is_fixed_point() and self.hidden and self.activation != "sigmoid":
            raise ParameterError(
                f"fixed point needs hidden outputs in [0, 1]: use activation='sigmoid', got {self.activation!r}."
            )
        if self._is_fixed_point() and self.dropout > 0:
            raise ParameterError("fixed point does not support dropout: use dropout=0, or precision='float32'.")
        for precision in formats_of(self.precision, self.swap) - {"float32"}:
            bits = bits_of_precision(precision) or 0
            wide = self.accumulator_bits
            if wide is not None and not bits <= wide <= MOST_ACCUMULATOR_BITS:
                raise ParameterError(
                    f"must be from {precision}'s {bits} to {MOST_ACCUMULATOR_BITS}, got {wide}.",
                    parameter="accumulator_bits",
                )

    def _is_fixed_point(self) -> bool:
        return formats_of(self.precision, self.swap) != {"float32"}

    def _first_order(self) -> FirstOrder:
        rate = self._auto_rate() if self.learning_rate == "auto" else self.learning_rate
        return FirstOrder(self.optimizer, rate, self.lr_decay, self.momentum, self.weight_decay)

    def _auto_rate(self) -> float:
        """The learning rate that suits the slopes of the network's units."""
        if self.optimizer == "adam":
            return 0.003
        bounded = self.hidden and self.activation in ("sigmoid", "tanh")
        rate = 0.5 if self._output() == "sigmoid" else 0.1 if bounded else 0.02
        return rate * (1.0 - self.momentum)

    def _output(self) -> str:
        """The output unit's activation."""
        if self.output_activation != "auto":
            return self.output_activation
        return "sigmoid" if self.sigmoid_scores and self.hidden and self.activation == "sigmoid" else "identity"

    def _train(self, task: TrainingTask) -> TrainedModel:
        problem = self._problem(task.train, self._shape(task.train.n_features))
        formats = formats_of(self.precision, self.swap)
        options = {"fixed_point": self._is_fixed_point(), "floating": "float32" in formats}
        device = device_for(NETWORK_TRAINING, self.device, problem, **options)
        # The least exponent e with |x| < 2^e for every x.
        feature_bits = math.frexp(float(np.abs(problem.features).max(initial=0.0)))[1]
        most_docs = int(task.train.query_sizes.max(initial=1))
        with kernel_threads(self.n_jobs):
            return self.train_with(
                task,
                self._trainer(device, problem, options),
                task.train.n_queries,
                lambda precision: self._format(precision, feature_bits, most_docs),
                self._checkpoints(task),
            )

    def train_with(
        self,
        task: TrainingTask,
        trainer: NetworkTrainer,
        n_queries: int,
        fixed_point: Callable[[str], FixedPointFormat | None],
        checkpoints: Checkpoints | None,
    ) -> TrainedModel:
        """Train with a trainer, wherever it runs; see `NetworkEpochs` for the parameters."""
        validation = self._validation(task)
        check_swap(self.swap, task.validation is not None)
        shape = self._shape(task.train.n_features)
        epochs = NetworkEpochs(
            trainer,
            self._first_states(task, shape),
            n_queries=n_queries,
            optimizer=self._first_order(),
            swap=KernelSwap(self.precision, self.swap),
            fixed_point=fixed_point,
            seed=self.random_state,
            shuffle=self.shuffle,
            validation=task.validation,
        )
        run = self._run(epochs, self.n_epochs, task, validation, checkpoints)
        parameters = epochs.parameters if validation is None else epochs.best
        state = {} if self.n_seeds == 1 else {_NETWORKS: parameters}
        return TrainedModel(self._description(task, shape, parameters), state=state, history=run.history)

    def _shape(self, n_features: int) -> NetworkShape:
        return network_shape(n_features, tuple(self.hidden), ACTIVATIONS[self.activation], self._output())

    def _trainer(self, device: str, problem: NetworkProblem, options: Mapping[str, bool]) -> NetworkTrainer:
        trainer: NetworkTrainer = load(NETWORK_TRAINING, device, problem, **options)
        return trainer

    def _problem(self, train: RankingDataset, shape: NetworkShape) -> NetworkProblem:
        weights = list_weights(train)
        return NetworkProblem(
            features=network_features(train),
            labels=train.labels,
            query_ptr=train.query_ptr,
            query_weights=weights,
            shape=shape,
            loss=self._list_loss(),
            optimizer=self._first_order().settings(),
            batch_queries=int(self.batch_queries),
            dropout=float(self.dropout),
        )

    def _check_state(self) -> None:
        networks = self.state_.get(_NETWORKS)
        if networks is not None:
            two_dimensional = isinstance(networks, np.ndarray) and networks.ndim == 2 and len(networks) > 0
            require(two_dimensional, f"state.{_NETWORKS} is not a table of parameters")
            check_numbers(networks, f"state.{_NETWORKS}", networks.shape)

    def _first_states(self, task: TrainingTask, shape: NetworkShape) -> list[NetworkState]:
        """Random weights (uniform, ±√(6/(inputs + units))) and zero biases; or the earlier model's."""
        if isinstance(task.init_model, NeuralRanker):
            networks = self._networks_of(task.init_model, shape)
        else:
            networks = [self._random_network(shape, self.random_state + number) for number in range(self.n_seeds)]
        return [
            NetworkState(parameters, np.zeros_like(parameters), np.zeros_like(parameters)) for parameters in networks
        ]

    def _random_network(self, shape: NetworkShape, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        layers = []
        for inputs, units in pairwise([shape.n_features, *self.hidden, 1]):
            bound = np.sqrt(6.0 / (inputs + units))
            layers.append((random.uniform(-bound, bound, (units, inputs)), np.zeros(units)))
        return pack_layers(shape, layers)

    def _networks_of(self, earlier: NeuralRanker, shape: NetworkShape) -> list[np.ndarray]:
        """The parameters of an earlier model's networks, which must be as many and of the same shape."""
        networks = earlier.state_.get(_NETWORKS)
        theirs = {"hidden": tuple(earlier.hidden), "n_seeds": 1 if networks is None else len(networks)}
        for name, ours in (("hidden", tuple(self.hidden)), ("n_seeds", self.n_seeds)):
            if theirs[name] != ours:
                raise ParameterError(f"has {name}={theirs[name]}, this ranker {ours}.", parameter="init_model")
        if networks is None:
            layers = [layer for layer in earlier.description_.layers if isinstance(layer, Dense)]
            return [pack_layers(shape, [(layer.weights, layer.bias) for layer in layers])]
        if networks.shape != (self.n_seeds, shape.n_parameters):
            raise ParameterError(
                f"is damaged: its {self.n_seeds} networks should have {shape.n_parameters} parameters each.",
                parameter="init_model",
            )
        return [network.astype(np.float32) for network in networks]

    def _format(self, precision: str, feature_bits: int, most_docs: int) -> FixedPointFormat | None:
        bits = bits_of_precision(precision)
        if bits is None:
            return None
        wide = self.accumulator_bits or sufficient_accumulator_bits(bits, most_docs)
        method = METHODS.index(self.fixed_point)
        batches = self.fixed_point_batches if self.fixed_point == "batch" else 1
        return FixedPointFormat(bits, wide, method, batches, feature_bits)

    def _checkpoints(self, task: TrainingTask) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        parameters = np.stack(
            [state.parameters for state in self._first_states(task, self._shape(task.train.n_features))]
        )
        decisive = {name: value for name, value in self.get_params(deep=False).items() if name not in _WITHOUT_EFFECT}
        fingerprint = run_fingerprint(decisive, task.train, task.validation, parameters)
        return Checkpoints(self.checkpoint, self.checkpoint_every, fingerprint)

    def _description(self, task: TrainingTask, shape: NetworkShape, parameters: np.ndarray) -> RankerDescription:
        networks = [unpack_layers(shape, flat) for flat in parameters]
        return RankerDescription(
            feature_names=task.feature_names,
            normaliser=task.normaliser,
            inputs=(LinearInputs.identity(shape.n_features),),
            layers=tuple(mean_network(networks, ACTIVATIONS[self.activation], self._output())),
        )
