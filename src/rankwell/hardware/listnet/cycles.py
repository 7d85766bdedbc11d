"""How many cycles the ListNet accelerator takes, exactly, if its streams keep up.

    query = documents · steps + (features + 3) · batches + latency       add; read every slot of every batch
    steps = max(⌈(features + 2) / lanes⌉, 5)

from the first beat that is offered to the last sum that is taken. The latency is of the first document through the δ
unit, and of the last sum. The other two kernels, in the same way:

    forward pass  = documents · ⌈features / lanes⌉ + features + 3 + latency       load the weights; add
    loss gradient = documents · 3 + latency                                       · 4 for Top-2
                    documents · 4 + candidates² + latency                         Top-3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankwell.hardware.listnet.configuration import LOOP_CYCLES, ListNetConfiguration

if TYPE_CHECKING:
    from rankwell.hardware.listnet.loss_gradient import LossConfiguration

# A document's queue, the δ unit's registers before and after its pipeline, the prepared documents' queue.
_TO_HIDDEN_UNITS = 6
# The sums' queue.
_FROM_READ_OUT = 2
# The output unit's product and two sums, and the queue after it.
_OUTPUT_UNIT = 6
# The queues of scores and gradients.
_LIST_QUEUES = 4


def query_overhead(configuration: ListNetConfiguration) -> int:
    """Cycles of a query that do not depend on its documents."""
    from rankwell.hardware.listnet.back_propagation import TO_WORD
    from rankwell.hardware.listnet.read_out import READ_STAGES

    read = (configuration.slots + 1) * configuration.batches
    last = configuration.product_cycles + TO_WORD + configuration.unit_groups - 1 + READ_STAGES + _FROM_READ_OUT
    return _first_document(configuration) + LOOP_CYCLES + read + last


def _first_document(configuration: ListNetConfiguration) -> int:
    """Cycles until the hidden units have the first document."""
    from rankwell.hardware.listnet.delta_unit import delta_cycles

    return _TO_HIDDEN_UNITS + delta_cycles(configuration) + configuration.groups - 1


def query_cycles(configuration: ListNetConfiguration, n_docs: int) -> int:
    """Cycles of back propagation for a query of `n_docs` documents."""
    return n_docs * configuration.steps + query_overhead(configuration)


def epoch_cycles(configuration: ListNetConfiguration, query_sizes: np.ndarray) -> int:
    """Cycles of back propagation for an epoch; lists of one document are not trained on."""
    sizes = query_sizes[query_sizes > 1]
    return int(sizes.sum()) * configuration.steps + len(sizes) * query_overhead(configuration)


def reset_cycles(configuration: ListNetConfiguration) -> int:
    """Further cycles of the first query after a reset: the sums are cleared, while its first document comes."""
    return max(1, configuration.depth + 1 - _first_document(configuration))


def forward_cycles(configuration: ListNetConfiguration, n_docs: int) -> int:
    """Cycles of the forward pass of a query of `n_docs` documents, its weights included."""
    from rankwell.hardware.listnet.forward_pass import SIGMOID_CYCLES, sigmoid_groups
    from rankwell.hardware.listnet.hidden_sum import sum_cycles

    latency = sum_cycles(configuration) + sigmoid_groups(configuration) + 2 * SIGMOID_CYCLES + _OUTPUT_UNIT
    return configuration.slots + 1 + n_docs * configuration.feature_beats + latency


def loss_cycles(configuration: LossConfiguration, n_docs: int, n_candidates: int | None = None) -> int:
    """Cycles of the loss gradient of a list of `n_docs` documents, of which `n_candidates`, or all, form pairs."""
    from rankwell.hardware.listnet.gradient_scale import SCALE_CYCLES
    from rankwell.hardware.listnet.loss_gradient import DIVIDE_DRAIN, LOAD_DRAIN, PAIR_DRAIN, READ

    latency = LOAD_DRAIN + configuration.final_drain + READ + SCALE_CYCLES + _LIST_QUEUES
    cycles = 3 * n_docs + latency
    if configuration.k >= 2:
        cycles += n_docs + DIVIDE_DRAIN
    if configuration.k == 3:
        cycles += max(1, n_docs if n_candidates is None else n_candidates) ** 2 + PAIR_DRAIN
    return cycles
