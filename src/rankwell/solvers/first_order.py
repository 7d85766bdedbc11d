"""First-order optimisers: gradient descent with momentum, and Adam. They know no loss; the kernels make the steps.

    sgd    v ← momentum·v + g;   w ← w − η_e·v − η_e·weight_decay·w                      (equation 2.9, plus momentum)
    adam   m ← β1·m + (1 − β1)·g;   v ← β2·v + (1 − β2)·g²;   w ← w − η_e·m̂/(√v̂ + ε) − η_e·weight_decay·w

m̂ = m/(1 − β1^t) and v̂ = v/(1 − β2^t) after t steps; weight decay is decoupled from the gradient in both. The learning
rate falls with the epochs: η_e = learning_rate / (1 + lr_decay·e), e from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.optimizer_settings import ADAM, SGD, OptimizerSettings

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
        if self.optimizer not in OPTIMIZERS:
            allowed = ", ".join(map(repr, OPTIMIZERS))
            raise ParameterError(f"optimizer must be one of {allowed}, got {self.optimizer!r}.")
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ParameterError(f"learning_rate must be a finite number above 0, got {self.learning_rate}.")
        for name in ("lr_decay", "weight_decay"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ParameterError(f"{name} must be a finite number of 0 or more, got {value}.")
        if not 0 <= self.momentum < 1:
            raise ParameterError(f"momentum must be at least 0 and below 1, got {self.momentum}.")
        if self.momentum > 0 and self.optimizer != "sgd":
            raise ParameterError("momentum is for optimizer='sgd'; Adam has its own (beta1). Leave it at 0.")

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
