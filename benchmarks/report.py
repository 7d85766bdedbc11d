"""`python -m benchmarks.report`: docs/results.md, written from the JSON in benchmarks/results/.

The same JSON gives the same bytes: nothing of the machine or the day that writes the page goes into it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.provenance import ROOT, short_commit
from benchmarks.results import RESULTS, read_results
from benchmarks.row import Row
from benchmarks.table import markdown_table, row_cells, timing_cells, write_figure, write_target
from benchmarks.timing import Timing

PAGE = ROOT / "docs" / "results.md"

_HEAD = """# Results

Written by `make results` from the JSON files in `benchmarks/results/`; change a figure by running its benchmark again
with `--write`. A time is the minimum of several runs unless its case or note says otherwise, compilation is apart (the
first call), a rival was measured in the same run on the same machine, and a figure under *paper* is the one the paper
prints, from the paper's own hardware."""


def write_report(results: Path = RESULTS, page: Path = PAGE) -> Path:
    """Write the page from every results file of the folder."""
    page.parent.mkdir(parents=True, exist_ok=True)
    figures = Path(os.path.relpath(results, page.parent)).as_posix()
    page.write_text(make_page(read_results(results), figures), encoding="utf-8")
    return page


def make_page(documents: Sequence[dict[str, Any]], figures: str) -> str:
    """The page's text; `figures` is the way from the page to the folder of the plots."""
    parts = [_HEAD, _summary(documents)]
    for name, runs in groupby(documents, key=lambda document: document["name"]):
        of_question = list(runs)
        parts.append(f"## {of_question[0]['question']}")
        parts.append(f"`python -m benchmarks {name}`")
        parts.extend(_run_section(document, figures) for document in of_question)
    return "\n\n".join(parts) + "\n"


def _summary(documents: Sequence[dict[str, Any]]) -> str:
    judged = [(document, row) for document in documents for row in _rows(document) if row.met is not None]
    if not judged:
        return "No figure with a target has been measured."
    missed = [(document, row) for document, row in judged if not row.met]
    met = f"**{len(judged) - len(missed)} of {len(judged)} targets are met.**"
    if not missed:
        return met
    lines = [
        f"- {document['name']}, {row.case}, on {document['machine']['short_name']}: "
        f"{write_figure(row.value)} {row.unit}, target {write_target(row)}"
        for document, row in missed
    ]
    return f"{met} Missed:\n\n" + "\n".join(lines)


def _run_section(document: dict[str, Any], figures: str) -> str:
    parts = [f"### On {document['machine']['short_name']}", _where_and_when(document)]
    parts.append(markdown_table(*row_cells(_rows(document))))
    parts.append("Checked first: " + "; ".join(_write_check(check) for check in document["checks"]) + ".")
    parts.extend(f"![{name}]({figures}/{name})" for name in document.get("figures", []))
    if document["timings"]:
        times = markdown_table(*timing_cells(_timings(document)))
        parts.append(f"<details><summary>What was timed</summary>\n\n{times}\n\n</details>")
    return "\n\n".join(parts)


def _where_and_when(document: dict[str, Any]) -> str:
    machine, commit = document["machine"], document["commit"]
    words = f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']:.0f} GiB"
    if machine["gpu"] is not None:
        gpu = machine["gpu"]
        words += f"; {gpu['name']}, {gpu['memory_gib']:.0f} GiB, driver {gpu['driver']}"
    if document["read_bandwidth_gb_s"] is not None:
        words += f"; memory is read at {write_figure(document['read_bandwidth_gb_s'])} GB/s"
    code = "no commit known" if commit["id"] is None else f"commit {short_commit(commit)}"
    code += " with changes" if commit["dirty"] else ""
    versions = ", ".join(f"{library} {version}" for library, version in document["versions"].items())
    return f"{words}. Measured {document['date'][:10]}, {code}. {versions}."


def _write_check(check: dict[str, Any]) -> str:
    return check["name"] + (f" ({check['detail']})" if check["detail"] else "")


def _rows(document: dict[str, Any]) -> list[Row]:
    return [Row(**{name: part for name, part in row.items() if name != "met"}) for row in document["rows"]]


def _timings(document: dict[str, Any]) -> list[Timing]:
    return [Timing(timing["name"], timing["first_s"], timing["times_s"]) for timing in document["timings"]]


if __name__ == "__main__":
    print(f"written: {write_report().relative_to(ROOT)}")
