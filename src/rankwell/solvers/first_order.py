"""First-order optimisers: gradient descent with momentum, and Adam. The kernels make the steps.

    sgd    v ← momentum·v + g;   w ← w − η_e·v − η_e·weight_decay·w                      (equation 2.9, plus momentum)
    adam   m ← β1·m + (1 − β1)·g;   v ← β2·v + (1 − β2)·g²;   w ← w − η_e·m̂/(√v̂ + ε) − η_e·weight_decay·w

m̂ = m/(1 − β1^t) and v̂ = v/(1 − β2^t) after t steps; weight decay is decoupled from the gradient in both. The learning
rate falls with the epochs: η_e = learning_rate / (1 + lr_decay·e), e from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import ParameterError
from rankwell.kernels.lists.contract import ADAM, SGD, OptimizerSettings
from rankwell.parameters import check_choice, check_number

OPTIMIZERS = ("sgd", "adam")


@dataclass(frozen=True)
class FirstOrder:
    """An optimiser by its settings; see the head of this file."""

    optimizer: str = "sgd"
    learning_rate: float = 0.01
    lr_decay: float = 0.0
    momentum: float = 0.0
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def check(self) -> None:
        """Raise ParameterError for a setting outside what is allowed."""
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("lr_decay", self.lr_decay, least=0)
        check_number("weight_decay", self.weight_decay, least=0)
        check_number("momentum", self.momentum, least=0, below=1)
        if self.momentum > 0 and self.optimizer != "sgd":
            raise ParameterError(
                "is for optimizer='sgd'; Adam has its own (beta1). Leave it at 0.", parameter="momentum"
            )

    def settings(self) -> OptimizerSettings:
        """The settings as kernels read them."""
        return OptimizerSettings(
            kind=ADAM if self.optimizer == "adam" else SGD,
            momentum=float(self.momentum),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            weight_decay=float(self.weight_decay),
        )

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch counted from 0."""
        return self.learning_rate / (1.0 + self.lr_decay * epoch)
