"""Everything that is written from stored results: the overview, a page a subject, plots, and a part of the guide.

The same JSON gives the same text: pages do not depend on the machine or the day they are written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.provenance import ROOT
from benchmarks.report.drawing import Drawing
from benchmarks.report.figures.registry import DRAWINGS
from benchmarks.report.overview import make_overview
from benchmarks.report.stored_results import StoredResults
from benchmarks.report.subject_page import make_subject_page
from benchmarks.report.subjects import OTHER, SUBJECTS, Subject, subject_of
from benchmarks.report.which_ranker import replace_measured
from benchmarks.results import RESULTS, read_results

DOCS = ROOT / "docs"


def write_report(results: Path = RESULTS, docs: Path = DOCS) -> list[Path]:
    """Write all pages and plots from the results of a folder; those of an earlier report are replaced."""
    stored = StoredResults(read_results(results))
    folder = docs / "results"
    drawings = [drawing for drawing in DRAWINGS if drawing.can_be_drawn(stored)]
    texts = page_texts(stored, drawings, Path(os.path.relpath(results, folder)).as_posix())
    kept = {docs / name for name in texts} | {folder / drawing.file for drawing in drawings}
    for old in [*folder.glob("*.md"), *folder.glob("*.svg")]:
        if old not in kept:
            old.unlink()
    written = [drawing.write(stored, folder) for drawing in drawings]
    for name, text in texts.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(text, encoding="utf-8")
        written.append(docs / name)
    guide = docs / "guide" / "which-ranker.md"
    if guide.exists():
        guide.write_text(replace_measured(guide.read_text(encoding="utf-8"), stored), encoding="utf-8")
        written.append(guide)
    return written


def page_texts(stored: StoredResults, drawings: list[Drawing], results: str) -> dict[str, str]:
    """The text of each page, by its place in docs/; `results` is the path from a subject's page to the JSON."""
    by_subject: dict[Subject, list[dict[str, Any]]] = {}
    for document in stored.documents:
        by_subject.setdefault(subject_of(document["name"]), []).append(document)
    ordered = {subject: by_subject[subject] for subject in (*SUBJECTS, OTHER) if subject in by_subject}
    texts = {"results.md": make_overview(stored, ordered, [each for each in drawings if not each.page])}
    for subject, documents in ordered.items():
        drawn = [(each.file, each.caption) for each in drawings if each.page == subject.name]
        texts[f"results/{subject.name}.md"] = make_subject_page(subject, documents, drawn, results)
    return texts


def write_drawings(names: list[str], results: Path = RESULTS, docs: Path = DOCS) -> list[Path]:
    """Draw the plots of these names; raises MissingResultError if one cannot be drawn."""
    stored = StoredResults(read_results(results))
    known = {drawing.name: drawing for drawing in DRAWINGS}
    return [known[name].write(stored, docs / "results") for name in names]
