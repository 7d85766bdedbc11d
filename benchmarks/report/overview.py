"""docs/results.md: three plots, where we lose, and the way to everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.report.drawing import Drawing
from benchmarks.report.figures.quality import compared
from benchmarks.report.figures.speed import duels
from benchmarks.report.stored_results import StoredResults
from benchmarks.report.subject_page import missed_targets, n_targets
from benchmarks.report.subjects import Subject, activity_of
from benchmarks.table import markdown_table, write_figure
from benchmarks.tree_studies import FAMILIES, OURS

_HEAD = """# Results

A rival was measured in the same run on the same machine; a time is the minimum of several runs, without the first call,
which compiles. Every figure is in a page below, every raw time in the JSON of `benchmarks/results/`; `make results`
writes all of this from it."""


def make_overview(
    stored: StoredResults, by_subject: Mapping[Subject, Sequence[dict[str, Any]]], drawings: Sequence[Drawing]
) -> str:
    parts = [_HEAD]
    parts.extend(f"![{each.caption}](results/{each.file})\n\n*{each.caption}*" for each in drawings)
    parts.append("## Where we lose")
    parts.append(losses(stored))
    parts.append("## By subject")
    parts.append(subjects_table(by_subject))
    return "\n\n".join(parts) + "\n"


def losses(stored: StoredResults) -> str:
    """In words: what another library does faster, where rankers are significantly worse, and missed targets."""
    lines = [
        f"- To {activity_of(duel.question)}, {duel.library} is {write_figure(1 / duel.advantage)} times as fast: "
        f"{duel.row.case}, {write_figure(duel.row.rival_value or 0)} {duel.row.unit}, "
        f"ours {write_figure(duel.row.value)} {duel.row.unit}."
        for duel in duels(stored)
        if duel.advantage < 1
    ]
    quality = compared(stored) if stored.has("untuned_rankers") else {}
    lines += [
        f"- On {collection}, {ranker} without a parameter set ranks worse than {row.rival}: NDCG@10 {row.value:.4f} "
        f"and {row.rival_value:.4f}, the difference is {row.interval[0]:+.4f} to {row.interval[1]:+.4f}."
        for (collection, ranker), row in quality.items()
        if row.interval is not None and row.interval[1] < 0
    ]
    lines += better_trees(stored)
    missed, judged = len(missed_targets(stored.documents)), n_targets(stored.documents)
    lines.append(f"- {missed} of our own {judged} targets are missed: each page begins with its own.")
    return "\n".join(lines)


def better_trees(stored: StoredResults) -> list[str]:
    """Libraries whose trees rank LETOR better than LambdaMART's, all with settings chosen on validation data."""
    if not stored.has("lambdamart_quality"):
        return []
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in stored.rows("lambdamart_quality"):
        collection, library, models, metric = row.case.split(", ", 3)
        if models.startswith("mean of") and library in FAMILIES:
            found.setdefault((collection, metric), {})[library] = row.value
    return [
        f"- On {collection}, {library}'s trees rank better than LambdaMART's, both with settings chosen on validation "
        f"data and four models each: {metric} {value:.4f} and {figures[OURS]:.4f}."
        for (collection, metric), figures in found.items()
        for library, value in figures.items()
        if value > figures[OURS]
    ]


def subjects_table(by_subject: Mapping[Subject, Sequence[dict[str, Any]]]) -> str:
    lines = []
    for subject, documents in by_subject.items():
        questions = ", ".join(dict.fromkeys(f"`{document['name']}`" for document in documents))
        judged = n_targets(documents)
        met = f"{judged - len(missed_targets(documents))} of {judged}" if judged else ""
        lines.append([f"[{subject.title}](results/{subject.name}.md)", met, questions])
    return markdown_table(["page", "targets met", "questions: `python -m benchmarks NAME`"], lines)
