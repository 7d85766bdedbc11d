"""`python .ci/lowest_versions.py [EXTRA ...]`: the lowest versions that pyproject.toml allows, as pip's requirements.

Every dependency must have a lower bound: one without would be promised to work with any version.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*(?P<bounds>[^;\[]*)(?:;(?P<marker>.*))?")


def lowest_versions(requirements: Iterable[str]) -> Iterator[str]:
    """``name==lowest`` for each ``name>=lowest,...``; a marker (``; platform_machine == ...``) is kept."""
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement)
        lowest = [] if found is None else re.findall(r">=\s*([^\s,]+)", found["bounds"])
        if found is None or len(lowest) != 1:
            raise SystemExit(f"{PYPROJECT.name}: {requirement!r} must have one lower bound, as in 'numpy>=1.26'.")
        marker = f" ;{found['marker']}" if found["marker"] else ""
        yield f"{found['name']}=={lowest[0]}{marker}"


def main(extras: list[str]) -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    unknown = set(extras) - set(project["optional-dependencies"])
    if unknown:
        raise SystemExit(f"{PYPROJECT.name} has no extra {', '.join(sorted(unknown))}.")
    print(*lowest_versions(project["dependencies"]), sep="\n")
    for extra in extras:
        print(*lowest_versions(project["optional-dependencies"][extra]), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
