"""The build backend: hatchling, and for a wheel also what compiling its kernels needs."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from hatchling import build
from hatchling.build import *  # noqa: F403


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """hatchling's own needs and, unless kernels are left out, those of the package, which runs to compile them."""
    if os.environ.get("RANKWELL_PREBUILD") == "none":
        return list(build.get_requires_for_build_wheel(config_settings))
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*build.get_requires_for_build_wheel(config_settings), *project["dependencies"]]
