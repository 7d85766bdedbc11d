"""Synthesis, placement and routing: what a design needs of a part, and how fast it runs there."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rankwell.errors import DeviceError
from rankwell.hardware import output_registers
from rankwell.hardware.kept_results import KeptResult
from rankwell.hardware.netlist import TOP, rtlil_of
from rankwell.hardware.output_registers import use_input_registers, use_output_registers
from rankwell.hardware.targets import Target
from rankwell.hardware.tools import nextpnr_version, package_versions, run_nextpnr, run_yosys, yosys_version

_SYNTHESIS = f"read_rtlil design.il; synth_ecp5 -abc9 -top {TOP} -json design.json"
_OPTIONS = ("--timing-allow-fail", "--lpf-allow-unconstrained")


@dataclass(frozen=True)
class Resources:
    """What a design needs of a part. Carry chains and LUT RAM count as the LUTs that they take."""

    luts: int
    flip_flops: int
    block_rams: int
    multipliers: int


@dataclass(frozen=True)
class Synthesis:
    """A design for a part, counted or placed.

    resources : of the netlist, or, if it was placed, as placed
    megahertz : after routing, the best of the seeds; None if it was not placed
    by_seed : megahertz by nextpnr's seed
    critical_path : where the slowest path begins and ends
    tools : versions by name
    harness : whether shift registers stood in for pins
    """

    target: str
    resources: Resources
    megahertz: float | None = None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    critical_path: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)
    harness: bool = False


def synthesise(
    design: Any, target: Target, *, place: bool = False, seeds: tuple[int, ...] = (1,), megahertz: int = 250
) -> Synthesis:
    """Synthesise a design for a target; with `place`, place and route it too, once for each seed.

    Parameters
    ----------
    megahertz : int
        The frequency that the router aims at.
    """
    from rankwell.hardware.harness import SerialHarness

    tools = package_versions("amaranth") | yosys_version()
    if target.family == "xcup":
        return Synthesis(target.name, _count_for_xilinx(design), tools=tools)
    harness = n_pins(design) > target.pins
    rtlil = rtlil_of(SerialHarness(design) if harness else design)
    if not place:
        kept = KeptResult("count", _steps(), rtlil, repr(tools))
        found = kept.read() or kept.write(_counted(rtlil))
        return Synthesis(target.name, Resources(**found["resources"]), tools=tools, harness=harness)
    tools |= nextpnr_version()
    runs = _place_all(rtlil, target, seeds, megahertz, tools)
    best = max(runs, key=lambda seed: runs[seed]["megahertz"])
    by_seed = {seed: run["megahertz"] for seed, run in runs.items()}
    resources = Resources(**runs[best]["resources"])
    return Synthesis(target.name, resources, by_seed[best], by_seed, runs[best]["critical_path"], tools, harness)


def fits(synthesis: Synthesis, target: Target) -> bool:
    """Whether the part has what the design needs."""
    needed = synthesis.resources
    return (
        needed.luts <= target.luts
        and needed.block_rams <= target.block_rams
        and needed.multipliers <= target.multipliers
    )


def n_pins(design: Any) -> int:
    """The bits of a design's ports, with clock and reset."""
    from amaranth.hdl import Value

    return 2 + sum(len(Value.cast(value)) for _, _, value in design.signature.flatten(design))


def _steps() -> str:
    """What is done to a design, as text: results that are kept belong to it."""
    return _SYNTHESIS + Path(output_registers.__file__).read_text()


def _netlist(rtlil: str, folder: Path) -> dict[str, Any]:
    """The netlist for ECP5, which is also written to the folder as design.json."""
    (folder / "design.il").write_text(rtlil)
    run_yosys(_SYNTHESIS, folder)
    netlist: dict[str, Any] = json.loads((folder / "design.json").read_text())
    use_output_registers(netlist, TOP)
    use_input_registers(netlist, TOP)
    (folder / "design.json").write_text(json.dumps(netlist))
    return netlist


def _counted(rtlil: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        return {"resources": asdict(_count(_netlist(rtlil, Path(name))))}


def _count(netlist: Mapping[str, Any]) -> Resources:
    """Before placement: a CCU2C is two LUTs; 16 × 4 bits of LUT RAM take four, and two to write."""
    counts: dict[str, int] = {}
    for cell in netlist["modules"][TOP]["cells"].values():
        counts[cell["type"]] = counts.get(cell["type"], 0) + 1
    luts = counts.get("LUT4", 0) + 2 * counts.get("CCU2C", 0) + 6 * counts.get("TRELLIS_DPR16X4", 0)
    return Resources(luts, counts.get("TRELLIS_FF", 0), counts.get("DP16KD", 0), counts.get("MULT18X18D", 0))


def _place_all(
    rtlil: str, target: Target, seeds: tuple[int, ...], megahertz: int, tools: Mapping[str, str]
) -> dict[int, dict[str, Any]]:
    """By seed, the resources, megahertz and critical path of a placement, which is kept for the next time."""
    part = ("--" + target.size, "--package", target.package, "--speed", str(target.speed))
    options = (*part, *_OPTIONS, "--freq", str(megahertz))
    kept = {seed: KeptResult("place", _steps(), rtlil, repr(tools), *options, str(seed)) for seed in seeds}
    runs = {seed: found for seed in seeds if (found := kept[seed].read())}
    if len(runs) == len(seeds):
        return runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _netlist(rtlil, folder)
        for seed in seeds:
            if seed not in runs:
                runs[seed] = kept[seed].write(_place(folder, [*options, "--seed", str(seed)]))
    return runs


def _place(folder: Path, options: list[str]) -> dict[str, Any]:
    """Resources, megahertz and critical path of one placement."""
    log = run_nextpnr([*options, "--json", "design.json", "--report", "report.json"], folder)
    report = json.loads((folder / "report.json").read_text())
    used = {name: entry["used"] for name, entry in report["utilization"].items()}
    if not report["fmax"]:
        raise DeviceError("nextpnr found no clock in the design.")
    resources = Resources(
        used.get("TRELLIS_COMB", 0), used.get("TRELLIS_FF", 0), used.get("DP16KD", 0), used.get("MULT18X18D", 0)
    )
    frequency = min(entry["achieved"] for entry in report["fmax"].values())
    return {"resources": asdict(resources), "megahertz": frequency, "critical_path": _critical_path(log)}


def _critical_path(log: str) -> str:
    """The ends of the slowest path after routing, as nextpnr's log names them."""
    start = log.rfind("Critical path report for clock")
    end = log.find("Critical path report for", start + 1)
    report = log[start : end if end > 0 else len(log)]
    sources = re.findall(r"Source (\S+)", report)
    sinks = re.findall(r"Sink (\S+)|Setup (\S+)|setup \S+ \S+ \S+ Source (\S+)", report)
    return f"{sources[0]} to {next(filter(None, sinks[-1]))}" if sources and sinks else ""


def _count_for_xilinx(design: Any) -> Resources:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil_of(design))
        run_yosys(
            f"read_rtlil design.il; synth_xilinx -family xcup -flatten -noiopad -top {TOP}; write_json design.json",
            folder,
        )
        cells = json.loads((folder / "design.json").read_text())["modules"][TOP]["cells"].values()
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell["type"]] = counts.get(cell["type"], 0) + 1

    def number(pattern: str) -> int:
        return sum(count for kind, count in counts.items() if re.fullmatch(pattern, kind))

    # A RAMB18 is half a block; SRL and LUT RAM take LUTs.
    luts = number(r"LUT\d|SRL\w+") + 4 * number(r"RAM\d+\w*")
    blocks = number("RAMB36E.") + (number("RAMB18E.") + 1) // 2
    return Resources(luts, number(r"FD\w+"), blocks, number(r"DSP\w+"))
