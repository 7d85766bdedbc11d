"""The board that training is timed for: the configuration of each number format, its clock, and the cost of a swap.

Every format gets as many multipliers as the part has. A product of more than 18 bits takes four of them, so a wider
format is unrolled less and takes more cycles: that is what a swap to fewer bits buys.
"""

from __future__ import annotations

from rankwell.hardware.listnet.configuration import LOOP_CYCLES, MULTIPLIER_BITS, ListNetConfiguration
from rankwell.hardware.targets import TARGETS, Target
from rankwell.kernels.lists.fixed_point_format import FixedPointFormat

BOARD = TARGETS["ecp5-85k"]
# Assumed, for formats of one multiplier a product and of four. 120 products a cycle of 8 bits routed at 146 MHz; wider
# formats were not placed (docs/algorithms/hardware.md).
MEGAHERTZ, MEGAHERTZ_OF_WIDE = 150.0, 100.0
# Equation 5.1, configuration time = size of the bitstream / bandwidth. LFE5U-85: 13,294 frames of 1,136 bits (Project
# Trellis's database), read from flash memory four bits at a time at 62 MHz, the highest clock of the data sheet.
RECONFIGURATION_SECONDS = 13_294 * 1_136 / (4 * 62e6)


def multiplier_blocks(bits: int) -> int:
    """Multipliers of the part that one product takes."""
    return 1 if bits <= MULTIPLIER_BITS else 4


def fitted_configuration(
    n_features: int, n_hidden: int, fmt: FixedPointFormat, *, sigmoid_output: bool, target: Target = BOARD
) -> ListNetConfiguration:
    """The least unrolled of the fastest configurations whose multipliers the part has; else one lane a hidden unit."""

    def configured(lanes: int) -> ListNetConfiguration:
        return ListNetConfiguration(
            features=n_features,
            hidden=n_hidden,
            unrolling=lanes * n_hidden,
            bits=fmt.bits,
            accumulator_bits=fmt.accumulator_bits,
            batches=fmt.batches,
            sigmoid_output=sigmoid_output,
        )

    best = configured(1)
    for lanes in range(2, -(-best.slots // LOOP_CYCLES) + 1):
        other = configured(lanes)
        if other.multipliers * multiplier_blocks(fmt.bits) <= target.multipliers and other.steps < best.steps:
            best = other
    return best


def clock(configuration: ListNetConfiguration) -> float:
    """Hertz that the board's predicted seconds assume."""
    return 1e6 * (MEGAHERTZ if configuration.bits <= MULTIPLIER_BITS else MEGAHERTZ_OF_WIDE)


def reconfiguration_cycles(configuration: ListNetConfiguration) -> int:
    """What a swap to a configuration takes, in cycles of its clock."""
    return round(RECONFIGURATION_SECONDS * clock(configuration))
