"""Results as files: one JSON a question and machine in benchmarks/results/, its plots beside it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.catalogue import FOLDER
from benchmarks.harness import Benchmark
from benchmarks.machine import describe_machine
from benchmarks.provenance import NoCommitError, demand_commit, library_versions, short_commit

RESULTS = FOLDER / "results"
SCHEMA = 1


def describe_run(bench: Benchmark, commit: dict[str, Any], date: datetime | None = None) -> dict[str, Any]:
    """Everything a reader needs to judge the figures, and the raw times they come from."""
    rivals = [row.rival for row in bench.rows if row.rival is not None]
    return {
        "schema": SCHEMA,
        "name": bench.question.name,
        "question": bench.question.text,
        "date": (date or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": {"short_name": bench.machine, **describe_machine().as_json()},
        "versions": library_versions(rivals),
        "commit": commit,
        "read_bandwidth_gb_s": bench.read_bandwidth_gb_s,
        "checks": [asdict(check) for check in bench.checks],
        "rows": [row.as_json() for row in bench.rows],
        "timings": [
            {
                "name": timing.name,
                "first_s": timing.first_s,
                "minimum_s": timing.minimum,
                "median_s": timing.median,
                "times_s": timing.times,
            }
            for timing in bench.timings
        ],
    }


def write_results(bench: Benchmark, figures: Path, commit: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write the JSON and copy the plots that were drawn into `figures`; those of an earlier run are replaced.

    The quick form is refused: its sizes are not those that the question asks about. So is a run after whose start
    (`commit` is of then) the code changed: nobody knows which code was measured.
    """
    if bench.quick:
        raise ValueError("the quick form's figures mean nothing and are never written. Run without --quick.")
    now = demand_commit()
    if now != commit:
        raise NoCommitError(
            f"the code changed from commit {short_commit(commit)} to {short_commit(now)} while it was measured. "
            "Run the benchmark again."
        )
    stem = f"{bench.question.name}.{bench.machine}"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{stem}.*.png"):
        old.unlink()
    document = describe_run(bench, commit)
    document["figures"] = []
    for figure in sorted(figures.glob("*.png")):
        name = f"{stem}.{figure.name}"
        shutil.copyfile(figure, folder / name)
        document["figures"].append(name)
    path = folder / f"{stem}.json"
    unfinished = path.with_suffix(".json.part")
    unfinished.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
    return path


def read_results(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Every results file of the folder, by question and machine."""
    documents = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("schema") != SCHEMA:
            raise ValueError(
                f"{path.name} has results schema {document.get('schema')!r}, this is {SCHEMA}. Run its benchmark again."
            )
        documents.append(document)
    return sorted(documents, key=lambda document: (document["name"], document["machine"]["short_name"]))
