"""The thesis's three tasks, each a kernel of its own, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cycles import epoch_cycles, forward_cycles, loss_cycles
from rankwell.hardware.listnet.loss_gradient import LossConfiguration

TASKS = ("backward", "forward", "loss")


def task_design(task: str, configuration: ListNetConfiguration, loss: LossConfiguration) -> Any:
    """The kernel of a task."""
    from rankwell.hardware.listnet.back_propagation import BackPropagation
    from rankwell.hardware.listnet.forward_pass import ForwardPass
    from rankwell.hardware.listnet.loss_gradient import LossGradient

    if task == "loss":
        return LossGradient(loss)
    return ForwardPass(configuration) if task == "forward" else BackPropagation(configuration)


def task_cycles(
    configuration: ListNetConfiguration, loss: LossConfiguration, query_sizes: np.ndarray
) -> dict[str, int]:
    """Cycles of an epoch by task."""
    sizes, counts = np.unique(query_sizes[query_sizes > 1], return_counts=True)
    pairs = list(zip(sizes.tolist(), counts.tolist(), strict=True))
    return {
        "backward": epoch_cycles(configuration, query_sizes),
        "forward": sum(count * forward_cycles(configuration, size) for size, count in pairs),
        "loss": sum(count * loss_cycles(loss, size) for size, count in pairs),
    }
