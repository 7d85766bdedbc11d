"""A design as RTLIL or plain Verilog."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from rankwell.hardware.tools import run_yosys

TOP = "top"


def rtlil_of(design: Any, name: str = TOP) -> str:
    """The design in Yosys's language, as the module `name`.

    A clocked read that meets a write to its address may give anything, because designs forward: otherwise Yosys builds
    a bypass around every memory.
    """
    from amaranth.back import rtlil

    text: str = rtlil.convert(design, name=name, emit_src=False)
    return re.sub(r"cell \$memrd_v2 .*?\n  end", _allow_collisions, text, flags=re.DOTALL)


def _allow_collisions(cell: re.Match[str]) -> str:
    text = cell[0]
    if not re.search(r"parameter \\CLK_ENABLE 1('1)?$", text, re.MULTILINE):
        return text
    return re.sub(r"(COLLISION_X_MASK )(\d+)'0+", lambda found: f"{found[1]}{found[2]}'{'1' * int(found[2])}", text)


def verilog_of(design: Any, name: str = TOP) -> str:
    """The design in plain Verilog-2005, as the module `name`."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "design.il").write_text(rtlil_of(design, name))
        run_yosys(
            f"read_rtlil design.il; hierarchy -top {name}; proc; opt_clean; memory_collect; "
            "write_verilog -norename -noattr design.v",
            place,
        )
        return (place / "design.v").read_text()
