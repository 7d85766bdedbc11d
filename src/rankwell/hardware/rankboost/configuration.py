"""The parameters of the RankBoost accelerator, and the sizes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import ParameterError
from rankwell.parameters import check_whole_number

# The features of a group, and so the PEs of an array: a memory word of 16 interleaved 8-bit bins.
GROUP = 16
FEWEST_STAGES, MOST_STAGES = 4, 8


@dataclass(frozen=True)
class RankBoostConfiguration:
    """The parameters of an accelerator.

    pes : processing elements: 2, 4, 8 or 16, or a multiple of 16 (arrays of 16, each with memory channels of its own)
    bins : bins of a feature, a power of two from 2 to 256
    pi_bits, sum_bits : of π and of every sum, both signed
    stages : pipeline stages of a PE from the bin to the sum that is written; 5 uses the block RAM's output register
    channels : memory channels that an array's words are divided among, 1 or 2 (FAR2 has 2)
    queue_depth : beats that a channel may be ahead of the others
    records : candidates for the weak ranker that an array keeps; if they do not suffice, the round is repeated
    feature_bits : of a feature's number
    """

    pes: int = 16
    bins: int = 256
    pi_bits: int = 32
    sum_bits: int = 32
    stages: int = 5
    channels: int = 2
    queue_depth: int = 16
    records: int = 16
    feature_bits: int = 16

    def __post_init__(self) -> None:
        for name, least, most in (
            ("pes", 2, 4096),
            ("pi_bits", 2, 64),
            ("sum_bits", 2, 64),
            ("stages", FEWEST_STAGES, MOST_STAGES),
            ("channels", 1, 2),
            ("feature_bits", 8, 24),
        ):
            check_whole_number(name, getattr(self, name), least=least, most=most)
        for name, least, most in (("bins", 2, 256), ("queue_depth", 8, 1024), ("records", 4, 1024)):
            check_whole_number(name, getattr(self, name), least=least, most=most)
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ParameterError(f"must be a power of two, got {getattr(self, name)}.", parameter=name)
        if self.pes % GROUP and (self.pes > GROUP or self.pes & (self.pes - 1)):
            raise ParameterError(f"must be 2, 4, 8 or 16, or a multiple of {GROUP}, got {self.pes}.", parameter="pes")
        if self.pi_bits > self.sum_bits:
            raise ParameterError(
                f"must be at most sum_bits ({self.sum_bits}), got {self.pi_bits}.", parameter="pi_bits"
            )

    @property
    def lanes(self) -> int:
        """PEs of an array."""
        return min(self.pes, GROUP)

    @property
    def arrays(self) -> int:
        return self.pes // self.lanes

    @property
    def bin_bits(self) -> int:
        """Of a bin's number; in a memory word each bin has 8 bits."""
        return self.bins.bit_length() - 1

    @property
    def lane_bits(self) -> int:
        return self.lanes.bit_length() - 1

    @property
    def channel_bits(self) -> int:
        """Of a beat of one memory channel."""
        return 8 * self.lanes // self.channels

    @property
    def group_bits(self) -> int:
        return self.feature_bits - self.lane_bits

    def passes(self, n_features: int) -> int:
        """How often a round reads π: each time for `pes` features."""
        return -(-n_features // self.pes)
