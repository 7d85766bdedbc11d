"""Running benchmarks: one in this process, several each in their own process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from benchmarks.catalogue import Question
from benchmarks.harness import Benchmark, BenchmarkError
from benchmarks.machine import has_cuda
from benchmarks.provenance import ROOT, NoCommitError, demand_commit, short_commit
from benchmarks.results import RESULTS, write_results
from benchmarks.table import rich_table, row_cells, timing_cells


def cannot_run(question: Question) -> bool:
    """Whether this machine lacks the device that the benchmark is about."""
    return question.needs_cuda and not has_cuda()


def run_question(
    question: Question,
    console: Console,
    *,
    quick: bool,
    write: bool,
    package: str = "benchmarks",
    folder: Path = RESULTS,
) -> bool:
    """Run one benchmark here and print its tables; returns whether it ran and every check passed.

    A target that is missed is marked and is not a failure. Results of a benchmark that failed, or of code that is not
    committed, are not written.
    """
    console.print(f"[bold]{escape(question.name)}[/]  {escape(question.text)}")
    if cannot_run(question):
        console.print("  skipped: it needs a CUDA device, and there is none here\n")
        return True
    with tempfile.TemporaryDirectory(prefix="rankwell-figures-") as figures:
        bench = Benchmark(question, quick=quick, folder=Path(figures))
        try:
            commit = demand_commit() if write else None
            import_module(f"{package}.{question.name}").run(bench)
            if bench.absent and not bench.rows:
                console.print(f"  skipped: {escape(', '.join(bench.absent))} of the real collections is absent\n")
                return True
            _demand_substance(bench)
            path = None if commit is None else write_results(bench, Path(figures), commit, folder)
        except Exception as cause:
            _print_figures(bench, console)
            if not isinstance(cause, BenchmarkError | NoCommitError):
                console.out(traceback.format_exc(), end="")
            console.print(f"  [bold red]failed[/]: {escape(str(cause) or type(cause).__name__)}\n")
            return False
        _print_figures(bench, console)
        if path is not None and commit is not None:
            console.print(f"  written: {escape(path.name)}, commit {short_commit(commit)}")
    console.print()
    return True


def run_apart(questions: Sequence[Question], console: Console, *, flags: Sequence[str]) -> list[Question]:
    """Run each benchmark in a fresh process and return those that failed.

    So none inherits another's memory or threads, and a crash of one does not end the others.
    """
    failed = []
    for question in questions:
        console.file.flush()
        command = [sys.executable, "-m", "benchmarks", question.name, *flags]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code < 0:
            console.print(f"  [bold red]failed[/]: {escape(question.name)} was killed by signal {-code}\n")
        if code != 0:
            failed.append(question)
    return failed


def _demand_substance(bench: Benchmark) -> None:
    if not bench.checks:
        raise BenchmarkError("nothing was checked: call bench.check before bench.time")
    if not bench.rows:
        raise BenchmarkError("no figure was recorded: call bench.record")


def _print_figures(bench: Benchmark, console: Console) -> None:
    for check in bench.checks:
        mark = "[green]right[/]" if check.ok else "[bold red]wrong[/]"
        console.print(f"  {mark}  {escape(check.name)}" + (f": {escape(check.detail)}" if check.detail else ""))
    plain = not console.is_terminal
    if bench.timings:
        console.print(rich_table(*timing_cells(bench.timings), plain=plain))
    if bench.rows:
        console.print(rich_table(*row_cells(bench.rows, quick=bench.quick), plain=plain))
