"""The registers of ECP5's block RAMs and multipliers, which Yosys does not use.

A block RAM shows what it read 4.3 ns after the clock; with its output register, less than 1 ns after the next. Where
every bit of a block's output goes into a plain flip-flop and nowhere else, the block's own register takes its place.

A multiplier wants its operands 2.6 ns before the clock; with its input registers, at the clock. Where every bit of both
operands comes from a plain flip-flop, the multiplier's own registers do the same, and the flip-flop stays only if
others read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_Cells = dict[str, Any]


def use_output_registers(netlist: Mapping[str, Any], top: str) -> dict[str, int]:
    """Change a netlist (Yosys's JSON) in place; how many blocks of each type have their registers now."""
    module = netlist["modules"][top]
    cells: _Cells = module["cells"]
    users = _users(module)
    counts = {"DP16KD": 0, "MULT18X18D": 0}
    for cell in list(cells.values()):
        if cell["type"] not in counts:
            continue
        pattern = r"DO[AB]\d+$" if cell["type"] == "DP16KD" else r"P\d+$"
        moves = _registers_after(cells, users, cell, pattern)
        if not moves:
            continue
        clock = None
        for port, register in moves.items():
            clock = cells[register]["connections"]["CLK"]
            cell["connections"][port] = cells[register]["connections"]["Q"]
            del cells[register]
        _enable(cell, clock)
        counts[cell["type"]] += 1
    return counts


def use_input_registers(netlist: Mapping[str, Any], top: str) -> int:
    """Change a netlist (Yosys's JSON) in place; how many multipliers have their input registers now."""
    module = netlist["modules"][top]
    cells: _Cells = module["cells"]
    registers = {
        cell["connections"]["Q"][0]: cell for cell in cells.values() if _is_plain(cell) and "DI" in cell["connections"]
    }
    count = 0
    for cell in cells.values():
        if cell["type"] != "MULT18X18D":
            continue
        operands = {port: bits[0] for port, bits in cell["connections"].items() if re.match(r"[AB]\d+$", port)}
        nets = [net for net in operands.values() if not isinstance(net, str)]
        if not nets or not all(net in registers for net in nets):
            continue
        for port, net in operands.items():
            if net in registers:
                cell["connections"][port] = registers[net]["connections"]["DI"]
        _register_ports(cell, ("INPUTA", "INPUTB"), registers[nets[0]]["connections"]["CLK"])
        count += 1
    _drop_unused(module)
    return count


def _drop_unused(module: Mapping[str, Any]) -> None:
    """Remove the plain flip-flops that nothing reads any more."""
    users = _users(module)
    for name, cell in list(module["cells"].items()):
        if _is_plain(cell) and cell["connections"]["Q"][0] not in users:
            del module["cells"][name]


def _users(module: Mapping[str, Any]) -> dict[Any, list[tuple[str, str]]]:
    """The (cell, port) that each net goes to; a port of the module counts too."""
    users: dict[Any, list[tuple[str, str]]] = {}
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"].get(port) == "input":
                for bit in bits:
                    users.setdefault(bit, []).append((name, port))
    for name, port in module["ports"].items():
        if port["direction"] == "output":
            for bit in port["bits"]:
                users.setdefault(bit, []).append(("", name))
    return users


def _registers_after(cells: _Cells, users: Mapping[Any, Any], block: Any, pattern: str) -> dict[str, str]:
    """By output, the flip-flop that takes it; empty unless each output that is used goes to one plain flip-flop."""
    found = {}
    for port, bits in block["connections"].items():
        if not re.match(pattern, port) or not bits or bits[0] not in users:
            continue
        taken = users[bits[0]]
        if len(taken) != 1 or taken[0][1] != "DI" or not _is_plain(cells.get(taken[0][0])):
            return {}
        found[port] = taken[0][0]
    return found


def _is_plain(cell: Any) -> bool:
    """Whether a cell is a flip-flop that is always enabled and never reset."""
    return (
        cell is not None
        and cell["type"] == "TRELLIS_FF"
        and cell["parameters"].get("CEMUX", "").strip() == "1"
        and cell["connections"].get("LSR", ["0"])[0] == "0"
    )


def _enable(cell: Any, clock: Any) -> None:
    if cell["type"] == "DP16KD":
        cell["parameters"]["REGMODE_A"] = cell["parameters"]["REGMODE_B"] = "OUTREG"
        cell["connections"]["OCEA"] = cell["connections"]["OCEB"] = ["1"]
        return
    _register_ports(cell, ("OUTPUT",), clock)


def _register_ports(cell: Any, registers: tuple[str, ...], clock: Any) -> None:
    """Enable registers of a multiplier."""
    for register in registers:
        for setting, value in (("CLK", "CLK0"), ("CE", "CE0"), ("RST", "RST0")):
            cell["parameters"][f"REG_{register}_{setting}"] = value
    for port, net in (("CLK0", clock), ("CE0", ["1"]), ("RST0", ["0"])):
        cell["connections"][port] = net
        cell["port_directions"][port] = "input"
