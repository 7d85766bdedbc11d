"""What a wheel holds besides the sources: the machine code of the kernels, for the processors it is tagged for.

RANKWELL_PREBUILD says for which levels of processors: "none" leaves the code out and makes a wheel for any machine, a
list such as "x86-64-v3" builds for fewer. Editable installations and source distributions hold none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelBuildHook(BuildHookInterface):
    """Compiles the kernels into build/prebuilt and puts them into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        levels = os.environ.get("RANKWELL_PREBUILD", "")
        if self.target_name != "wheel" or version == "editable" or levels == "none":
            return
        root = Path(self.root)
        folder = root / "build" / "prebuilt"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(
            [sys.executable, "-m", "rankwell.warming.prebuilt", str(folder), *levels.replace(",", " ").split()],
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            check=True,
        )
        build_data["force_include"][str(folder)] = "rankwell/kernels/prebuilt"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
