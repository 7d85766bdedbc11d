"""What a synthesis found, as the note of a benchmark's row."""

from __future__ import annotations

from rankwell.hardware.synthesis import Synthesis


def describe_synthesis(synthesis: Synthesis) -> str:
    """Resources, seeds and tools of a synthesis."""
    needed = synthesis.resources
    counts = (
        f"{needed.luts:,} LUTs, {needed.flip_flops:,} flip-flops, {needed.block_rams} block RAMs, "
        f"{needed.multipliers} multipliers"
    )
    tools = ", ".join(f"{name} {version}" for name, version in synthesis.tools.items())
    if synthesis.megahertz is None:
        return f"{counts}; counted, not placed; {tools}"
    seeds = ", ".join(f"seed {seed} {megahertz:.1f} MHz" for seed, megahertz in synthesis.by_seed.items())
    harness = "; shift registers instead of pins" if synthesis.harness else ""
    return f"{counts}; {seeds}{harness}; {tools}; slowest path {synthesis.critical_path}"
