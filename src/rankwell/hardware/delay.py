"""Values as they were some cycles ago."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal


def delayed(m: Module, value: Any, cycles: int, name: str, *, reset_less: bool = True) -> Any:
    """`value` as it was `cycles` cycles ago."""
    for cycle in range(1, cycles + 1):
        register = Signal(value.shape(), name=f"{name}_after_{cycle}", reset_less=reset_less)
        m.d.sync += register.eq(value)
        value = register
    return value
