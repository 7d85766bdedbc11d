"""One page of results: every figure of a subject's questions; raw times stay in the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from benchmarks.provenance import short_commit
from benchmarks.report.stored_results import rows_of
from benchmarks.report.subjects import Subject
from benchmarks.row import Row
from benchmarks.table import markdown_table, row_cells, write_figure, write_target


def make_subject_page(
    subject: Subject, documents: Sequence[dict[str, Any]], drawn: Sequence[tuple[str, str]], results: str
) -> str:
    """The page's text.

    drawn : file and caption of the plots of this subject; results : the path from the page to the JSON
    """
    parts = [f"# {subject.title}", judged(documents)]
    parts.extend(f"![{caption}]({file})\n\n*{caption}*" for file, caption in drawn)
    for name, runs in groupby(documents, key=lambda document: document["name"]):
        of_question = list(runs)
        parts.append(f"## {of_question[0]['question']}")
        parts.append(f"`python -m benchmarks {name}`")
        parts.extend(_run_section(document, results) for document in of_question)
    return "\n\n".join(parts) + "\n"


def judged(documents: Sequence[dict[str, Any]]) -> str:
    """How many targets are met, and which are not."""
    n_judged = n_targets(documents)
    if not n_judged:
        return "No figure here has a target."
    missed = missed_targets(documents)
    met = f"**{n_judged - len(missed)} of {n_judged} targets are met.**"
    if not missed:
        return met
    lines = [
        f"- {document['name']}, {row.case}, on {document['machine']['short_name']}: "
        f"{write_figure(row.value)} {row.unit}".rstrip()
        + f", target {write_target(row)}".rstrip()
        for document, row in missed
    ]
    return f"{met} Missed:\n\n" + "\n".join(lines)


def n_targets(documents: Sequence[dict[str, Any]]) -> int:
    return sum(row.met is not None for document in documents for row in rows_of(document))


def missed_targets(documents: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Row]]:
    return [(document, row) for document in documents for row in rows_of(document) if row.met is False]


def _run_section(document: dict[str, Any], results: str) -> str:
    machine = document["machine"]["short_name"]
    parts = [f"### On {machine}", _where_and_when(document)]
    parts.append(markdown_table(*row_cells(rows_of(document))))
    parts.append(_checked(document["checks"]))
    parts.extend(f"![{name}]({results}/{name})" for name in document.get("figures", []))
    return "\n\n".join(parts)


def _checked(checks: Sequence[dict[str, Any]]) -> str:
    first = checks[0]["name"] + (f" ({checks[0]['detail']})" if checks[0]["detail"] else "")
    more = f", and {len(checks) - 1} more" if len(checks) > 1 else ""
    return f"Checked before it was timed: {first}{more}."


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
