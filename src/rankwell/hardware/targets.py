"""The parts that a design can be synthesised for."""

from __future__ import annotations

from dataclasses import dataclass

from rankwell.errors import ParameterError


@dataclass(frozen=True)
class Target:
    """An FPGA.

    family : "ecp5", which is placed and routed, or "xcup" (UltraScale+), which Yosys only counts for
    size, package, speed : as nextpnr names them
    luts, block_rams, multipliers, pins : what the part has (pins: of the package)
    """

    name: str
    title: str
    family: str
    luts: int
    block_rams: int
    multipliers: int
    pins: int = 0
    size: str = ""
    package: str = ""
    speed: int = 0

    @property
    def can_be_placed(self) -> bool:
        return self.family == "ecp5"


# ECP5: what nextpnr reports for the part. UltraScale+: the VU35P of AMD's Alveo U50, product table of DS890.
TARGETS = {
    target.name: target
    for target in (
        Target("ecp5-25k", "Lattice ECP5 LFE5U-25F", "ecp5", 24288, 56, 28, 197, "25k", "CABGA381", 8),
        Target("ecp5-45k", "Lattice ECP5 LFE5U-45F", "ecp5", 43848, 108, 72, 245, "45k", "CABGA554", 8),
        Target("ecp5-85k", "Lattice ECP5 LFE5U-85F", "ecp5", 83640, 208, 156, 365, "85k", "CABGA756", 8),
        Target("xcup-u50", "AMD UltraScale+ XCU50", "xcup", 872000, 1344, 5952),
    )
}


def find_target(name: str) -> Target:
    """The target of a name, or an error."""
    if name not in TARGETS:
        raise ParameterError(f"must be one of {', '.join(TARGETS)}, got {name!r}.", parameter="target")
    return TARGETS[name]
