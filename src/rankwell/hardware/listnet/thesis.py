"""What the thesis (Li 2019, Acceleration of ListNet on FPGAs) measured: tables 3.3 to 3.5 and 4.1 to 4.6.

Seconds are of an epoch of 471 queries and 540,679 documents; resources are of a Xilinx ZCU102, clocked at 300 MHz, for
all three tasks. Table 3.x is Top-2 over all permutations in float32, 4.x Top-3 over sampled ones.
"""

from __future__ import annotations

from dataclasses import dataclass

N_QUERIES, N_DOCS, N_FEATURES, N_HIDDEN = 471, 540_679, 46, 15
MEGAHERTZ = 300.0
UNROLLING, INITIATION_INTERVAL = 150, 11


@dataclass(frozen=True)
class Usage:
    """Resources of the ZCU102."""

    luts: int
    registers: int
    multipliers: int


@dataclass(frozen=True)
class TaskSeconds:
    """A column of table 3.4: forward pass, loss function, back propagation."""

    forward: float
    loss: float
    backward: float

    @property
    def total(self) -> float:
        return self.forward + self.loss + self.backward


TABLE_3_3 = Usage(79_690, 111_846, 217)
TABLE_3_4 = {"cpu": TaskSeconds(0.57, 34.20, 360.76), "fpga": TaskSeconds(1.60, 7.36, 113.91)}
# By method and bits; None: float32.
TABLE_4_1 = {
    ("float32", None): Usage(71_962, 129_526, 654),
    ("direct", 27): Usage(56_768, 93_178, 613),
    ("adaptive", 10): Usage(53_244, 86_289, 231),
    ("batch", 8): Usage(57_735, 67_183, 102),
}
# By bits, for "batch".
TABLE_4_2 = {
    22: Usage(52_351, 78_125, 360),
    20: Usage(61_917, 80_011, 231),
    16: Usage(50_160, 72_202, 231),
    10: Usage(48_609, 68_287, 231),
    8: Usage(57_735, 67_183, 102),
}
# Seconds of an epoch by what trained it.
TABLE_4_3 = {"cpu": 420.05, "gpu": 45.8, "float32": 32.11, "batch, 8 bits": 10.37}
TABLE_4_4 = {"float32": Usage(71_962, 129_526, 654), "batch, 8 bits": Usage(128_680, 123_090, 211)}
# Section 5.2: a swap on Amazon's F1.
SWAP_SECONDS = 0.150
