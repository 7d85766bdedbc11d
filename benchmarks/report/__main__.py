"""`python -m benchmarks.report`: pages and plots of results, from the JSON in benchmarks/results/.

Without arguments everything is written; with names of plots only those are drawn. `--list` names them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.provenance import ROOT
from benchmarks.report.figures.registry import DRAWINGS
from benchmarks.report.pages import write_drawings, write_report
from benchmarks.report.stored_results import MissingResultError


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("plots", nargs="*", metavar="PLOT", help="draw only these")
    parser.add_argument("--list", action="store_true", help="name the plots and end")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        for drawing in DRAWINGS:
            print(f"{drawing.name:28}{drawing.caption}")
        return 0
    unknown = set(chosen.plots) - {drawing.name for drawing in DRAWINGS}
    if unknown:
        parser.error(f"there is no plot {', '.join(sorted(unknown))}; --list names them.")
    try:
        written: list[Path] = write_drawings(chosen.plots) if chosen.plots else write_report()
    except MissingResultError as error:
        print(f"{error}: run the benchmark with --write first.")
        return 1
    for path in written:
        print(f"written: {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
