"""A figure: what back propagation needs of a part against its bits, beside the thesis's tables 4.1 and 4.2."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rankwell.hardware.listnet.thesis import TABLE_4_1, TABLE_4_2
from rankwell.hardware.synthesis import Synthesis


def plot_resources(found: Mapping[int, Synthesis], path: str | os.PathLike[str]) -> None:
    """Draw the resources by bits of one unrolling; a ring: counted, not placed. Needs Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    ours = {
        "LUTs": {bits: one.resources.luts for bits, one in found.items()},
        "flip-flops": {bits: one.resources.flip_flops for bits, one in found.items()},
        "multipliers": {bits: one.resources.multipliers for bits, one in found.items()},
    }
    thesis = {
        "LUTs": {bits: usage.luts for bits, usage in TABLE_4_2.items()},
        "flip-flops": {bits: usage.registers for bits, usage in TABLE_4_2.items()},
        "multipliers": {bits: usage.multipliers for bits, usage in TABLE_4_2.items()},
    }
    others = {
        "LUTs": {method: (bits, usage.luts) for (method, bits), usage in TABLE_4_1.items()},
        "flip-flops": {method: (bits, usage.registers) for (method, bits), usage in TABLE_4_1.items()},
        "multipliers": {method: (bits, usage.multipliers) for (method, bits), usage in TABLE_4_1.items()},
    }
    for panel, name in zip(figure.subplots(1, 3), ours, strict=True):
        panel.plot(*zip(*sorted(ours[name].items()), strict=True), color="C0", label="here, back propagation")
        for bits, value in ours[name].items():
            placed = found[bits].megahertz is not None
            panel.plot(bits, value, "o", color="C0", fillstyle="full" if placed else "none")
        panel.plot(*zip(*sorted(thesis[name].items()), strict=True), "s--", color="C1", label="table 4.2, all tasks")
        for method, (width, value) in others[name].items():
            if width is None:
                panel.axhline(value, color="C2", linewidth=1.0, label="table 4.1, float32")
            elif method != "batch":
                panel.plot(width, value, "D", color="C3")
                panel.annotate(
                    f"table 4.1, {method}", (width, value), (0, 7), textcoords="offset points", fontsize=7, ha="center"
                )
        panel.set(xlabel="bits in multiplications", title=name, ylim=(0, None))
    figure.axes[0].legend(fontsize=7)
    figure.suptitle("a ring: counted, not placed", fontsize=9)
    figure.savefig(path)
