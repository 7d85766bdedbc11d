"""`rankwell demo`: search the documentation of Python's standard library, and learn to do it better than BM25."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.console import say, show, show_log
from rankwell.cli.figures import make_table, metric_text
from rankwell.cli.options import QuietOption
from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError

if TYPE_CHECKING:
    from rankwell.demo.contest import Entry, Part

SEED = 1
# The number of queries of each part.
SIZES = {"train": 900, "vali": 200, "test": 400}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder for its files.")] = Path(
        "demo-output"
    ),
    quiet: QuietOption = False,
) -> None:
    """Index the documentation of Python's standard library, train rankers on it, and compare them with BM25.

    Nothing is downloaded. Everything is seeded: a second run on the same Python prints the same figures (except for
    the seconds).
    """
    from rankwell.demo.lightgbm_model import IS_INSTALLED
    from rankwell.demo.preparation import start_preparation

    show_log(quiet=True)
    _check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    preparation = start_preparation()
    try:
        make_files(out, quiet)
        parts = make_parts(out, quiet)
        with _step("waiting for the kernels of the rankers, which another process compiles meanwhile", quiet):
            preparation.wait()
    finally:
        preparation.kill()
        preparation.wait()
    entries = run_contest(parts, out, quiet)
    _print_entries(entries, parts["test"])
    if not IS_INSTALLED:
        say("LightGBM is not installed here; if it is (pip install lightgbm), the table includes it.", quiet=quiet)
    show(f"Documents, queries, index, data and rankers are in {out}. Try next:")
    for command in next_commands(out):
        show(f"  {command}")


def _check_folder(out: Path) -> None:
    """Refuse a folder in which the demo could replace files of the user."""
    from rankwell.demo.collection_files import DOCUMENTS

    if out.exists() and not out.is_dir():
        raise DataError(f"--out {out} is a file. Give a folder, which may be new.")
    if out.is_dir() and any(out.iterdir()) and not (out / DOCUMENTS).exists():
        raise DataError(f"--out {out} is neither empty nor the folder of an earlier demo. Choose an empty or new one.")


def make_files(out: Path, quiet: bool) -> None:
    """Read the library and write its documents, and the queries and judgments of each part."""
    from rankwell.demo.collection import make_collection
    from rankwell.demo.collection_files import write_documents, write_queries
    from rankwell.demo.library import read_library

    with _step(f"reading the documentation of the standard library of Python {platform.python_version()}", quiet):
        collection = make_collection(read_library(), sum(SIZES.values()), SEED)
        documents = write_documents(collection.documents, out)
        for part, numbers in part_numbers(len(collection.known_items)).items():
            write_queries(part, collection.known_items, numbers, out)
    known = collection.known_items[0]
    say(f"    {documents}: {len(collection.documents):,} modules, classes and functions", quiet=quiet)
    say(f'    {len(collection.known_items):,} queries, such as "{known.query}" for {known.item}', quiet=quiet)


def part_numbers(n_queries: int) -> dict[str, range]:
    """Which queries belong to which part: they were drawn at random, so the first, the next, the last."""
    bounds = [0]
    for size in SIZES.values():
        bounds.append(bounds[-1] + size * n_queries // sum(SIZES.values()))
    return {part: range(*bounds[number : number + 2]) for number, part in enumerate(SIZES)}


def make_parts(out: Path, quiet: bool) -> dict[str, Part]:
    """Index the documents; for each part the candidates with their features, also as a file."""
    from rankwell.data.files import write
    from rankwell.demo.candidates import build_index, gather_candidates
    from rankwell.demo.collection_files import DOCUMENTS, part_files
    from rankwell.demo.contest import DEPTH

    with _step("indexing them; the first run on a machine compiles kernels, here and below", quiet):
        index = build_index(out / DOCUMENTS, out / "index")
    parts = {}
    with _step(f"features of BM25's first {DEPTH} documents for each query", quiet):
        for name in SIZES:
            parts[name] = gather_candidates(index, *part_files(name, out))
            write(parts[name].candidates, out / f"{name}.txt")
    for name, part in parts.items():
        data = part.candidates
        rows = f"{data.n_queries} queries, {data.n_docs:,} candidates, {data.n_features} features"
        say(f"    {out / name}.txt: {rows}", quiet=quiet)
    return parts


def run_contest(parts: Mapping[str, Part], out: Path, quiet: bool) -> list[Entry]:
    """BM25 and every ranker, judged on the test queries."""
    from rankwell.demo.contest import LIGHTGBM, SETTINGS, first_pass_entry, lightgbm_entry, ranker_entry
    from rankwell.demo.lightgbm_model import IS_INSTALLED

    entries = [first_pass_entry(parts["test"], out)]
    for name in SETTINGS:
        with _step(f"training {name}", quiet):
            entries.append(ranker_entry(name, parts, out))
    if IS_INSTALLED:
        with _step(f"training {LIGHTGBM}, and importing its model", quiet):
            entries.append(lightgbm_entry(parts, out))
    return entries


def next_commands(out: Path) -> list[str]:
    """Commands that work on what the demo wrote."""
    from rankwell.demo.contest import DEPTH, METRICS

    rankwell, folder = _program(), shlex.quote(str(out))
    metric, convention = list(METRICS.items())[1]
    return [
        f'{rankwell} search {folder}/index "open a zip file"',
        f"{rankwell} index info {folder}/index",
        f"{rankwell} features {folder}/index {folder}/test.queries.tsv {folder}/test.qrels"
        f" --top {DEPTH} --out {folder}/mine.txt",
        f"{rankwell} train rankboost {folder}/train.txt --vali {folder}/vali.txt --out {folder}/mine.rank",
        f"{rankwell} compare {folder}/test.txt {folder}/bm25.scores {folder}/mine.rank"
        f" --metrics {metric} --convention {convention}",
        f"{rankwell} explain {folder}/mine.rank {folder}/test.txt --row 1",
    ]


@contextmanager
def _step(what: str, quiet: bool) -> Iterator[None]:
    """Print what is being done, and how long it took."""
    say(f"==> {what}", quiet=quiet)
    started = time.perf_counter()
    with progress_bar(what, quiet=quiet):
        yield
    say(f"    {time.perf_counter() - started:.1f} s", quiet=quiet)


def _program() -> str:
    """How to call this program from here, so that the commands shown work when pasted."""
    called = Path(sys.argv[0])
    if called.name != "rankwell":
        return f"{shlex.quote(sys.executable)} -m rankwell"
    found = shutil.which("rankwell")
    if found is not None and Path(found).resolve() == called.resolve():
        return "rankwell"
    relative = os.path.relpath(called)
    return shlex.quote(str(called.absolute()) if relative.startswith(os.pardir) else relative)


def _print_entries(entries: Sequence[Entry], test: Part) -> None:
    from rankwell.demo.contest import METRICS

    baseline = entries[0]
    names = [f"{metric} ({convention})" for metric, convention in METRICS.items()]
    ndcg = next(iter(METRICS))
    table = make_table(
        f"{len(test.missed)} test queries; p: Fisher's randomisation test of {ndcg} against {baseline.name}",
        ["ranking by", *names, "p", "seconds"],
    )
    for entry in entries:
        p = "-" if entry is baseline else f"{entry.against(baseline).fisher_p:.5f}"
        figures = (metric_text(entry.evaluations[metric].mean[metric]) for metric in METRICS)
        table.add_row(entry.name, *figures, p, "-" if entry.seconds is None else f"{entry.seconds:.2f}")
    show(table)
