"""The parameters of the ListNet accelerator's back propagation, and the sizes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import ParameterError
from rankwell.kernels.lists.fixed_point_format import FEWEST_BITS, MOST_ACCUMULATOR_BITS, MOST_BITS
from rankwell.parameters import check_whole_number

# From the cycle in which an accumulator's address is given to the first in which the new sum can be read.
LOOP_CYCLES = 5
# A multiplier of the part takes two signed numbers of so many bits.
MULTIPLIER_BITS = 18
# Groups of hidden units that a feature or an address reaches one after the other.
_MOST_GROUPS = 16
# What a document needs beside its features: the hidden unit's bias, and its weight in the output unit.
_FURTHER_SLOTS = 2
# A float64 holds the sum over batches exactly.
_MOST_TOTAL_BITS = 53


@dataclass(frozen=True)
class ListNetConfiguration:
    """The parameters of back propagation for a network of one hidden layer.

    features, hidden : inputs and hidden units of the network
    unrolling : products of weight gradients in a cycle, a multiple of the hidden units
    bits, accumulator_bits, batches : the fixed-point format (`kernels/lists/fixed_point_format.py`); "direct" and
        "adaptive" have one batch
    sigmoid_output : whether the score is a sigmoid
    """

    features: int = 46
    hidden: int = 15
    unrolling: int = 30
    bits: int = 8
    accumulator_bits: int = 18
    batches: int = 10
    sigmoid_output: bool = True

    def __post_init__(self) -> None:
        for name, least, most in (
            ("features", 1, 2**16),
            ("hidden", 1, 1024),
            ("bits", FEWEST_BITS, MOST_BITS),
            ("accumulator_bits", self.bits, MOST_ACCUMULATOR_BITS),
            ("batches", 1, 64),
        ):
            check_whole_number(name, getattr(self, name), least=least, most=most)
        check_whole_number("unrolling", self.unrolling, least=1, most=2**14)
        if self.unrolling % self.hidden:
            raise ParameterError(
                f"must be a multiple of the {self.hidden} hidden units, got {self.unrolling}.", parameter="unrolling"
            )
        if self.accumulator_bits + self.batches > _MOST_TOTAL_BITS:
            raise ParameterError(
                f"accumulator_bits ({self.accumulator_bits}) and batches ({self.batches}) must be at most "
                f"{_MOST_TOTAL_BITS} together on the accelerator."
            )

    @property
    def lanes(self) -> int:
        """Features of a cycle: the multipliers of each hidden unit."""
        return self.unrolling // self.hidden

    @property
    def slots(self) -> int:
        """Sums of each hidden unit and batch."""
        return self.features + _FURTHER_SLOTS

    @property
    def steps(self) -> int:
        """Cycles of a document: an accumulator must not come again before it is written."""
        return max(-(-self.slots // self.lanes), LOOP_CYCLES)

    @property
    def feature_beats(self) -> int:
        """Beats of the features' stream for a document."""
        return -(-self.features // self.lanes)

    @property
    def delta_lanes(self) -> int:
        """Hidden units whose δ is computed in a cycle: enough for one document in `steps` cycles."""
        return -(-self.hidden // self.steps)

    @property
    def groups(self) -> int:
        """Cycles in which a document's δ are computed."""
        return -(-self.hidden // self.delta_lanes)

    @property
    def units_of_group(self) -> int:
        """Neighbouring hidden units that get everything in the same cycle."""
        return -(-self.hidden // _MOST_GROUPS)

    @property
    def unit_groups(self) -> int:
        """Groups of hidden units; each gets everything a cycle after the one before it."""
        return -(-self.hidden // self.units_of_group)

    @property
    def slots_in_flight(self) -> int:
        """Slots that are being read or wait to be taken; a power of two.

        They take longer than the way from the first batch to the end of the sums' queue, so that reading never waits.
        """
        return 16 if self.batches > 1 else 32

    @property
    def product_cycles(self) -> int:
        """Of a product: one multiplier and a register after it, or four whose results are added."""
        return 2 if self.bits <= MULTIPLIER_BITS else 3

    @property
    def multipliers(self) -> int:
        """Products in a cycle, those of δ and of the score's gradient included."""
        return self.unrolling + 3 * self.delta_lanes + (2 if self.sigmoid_output else 0)

    @property
    def step_bits(self) -> int:
        return (self.steps - 1).bit_length()

    @property
    def batch_bits(self) -> int:
        return max(1, (self.batches - 1).bit_length())

    @property
    def lane_bits(self) -> int:
        return max(1, (self.lanes - 1).bit_length())

    @property
    def address_bits(self) -> int:
        """Of an accumulator: its step, and above it the batch."""
        return self.step_bits + self.batch_bits

    @property
    def depth(self) -> int:
        """Words of a hidden unit's accumulators."""
        return self.batches << self.step_bits

    @property
    def total_bits(self) -> int:
        """Of Σ_B sum·2^(batches − 1 − B)."""
        return self.accumulator_bits + (self.batches if self.batches > 1 else 0)
