"""`python -m benchmarks [NAME ...] [--quick] [--write]`: run benchmarks and print their tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.catalogue import Question, find_questions
from benchmarks.provenance import NoCommitError, demand_commit
from benchmarks.runner import cannot_run, run_apart, run_question
from benchmarks.table import make_console


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every benchmark ran and every check held, 1: not so, 2: wrong usage. A missed target does not fail."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    questions = find_questions()
    if options.list:
        for question in questions:
            print(f"{question.name}\t{question.text}")
        return 0
    if options.quick and options.write:
        parser.error("--quick figures mean nothing and are never written: leave out --quick or --write.")
    chosen = _choose(parser, questions, options.names)
    if options.write:
        try:
            demand_commit()  # now, and not after an hour
        except NoCommitError as cause:
            parser.error(str(cause))
    console = make_console()
    if len(chosen) == 1:
        return 0 if run_question(chosen[0], console, quick=options.quick, write=options.write) else 1
    flags = [flag for flag, given in (("--quick", options.quick), ("--write", options.write)) if given]
    failed = run_apart(chosen, console, flags=flags)
    skipped = [question for question in chosen if cannot_run(question)]
    console.print(
        f"{len(chosen) - len(failed) - len(skipped)} of {len(chosen)} benchmarks ran and all their checks held"
    )
    for word, those in (("[yellow]skipped[/]", skipped), ("[bold red]failed[/]", failed)):
        if those:
            console.print(f"{word}: {', '.join(question.name for question in those)}")
    return 1 if failed else 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks: all, or those named.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark (see --list); none: all of them")
    parser.add_argument("--quick", action="store_true", help="the small form: seconds each, the figures mean nothing")
    parser.add_argument("--write", action="store_true", help="keep the results; needs a clean checkout")
    parser.add_argument("--list", action="store_true", help="say which benchmarks there are")
    return parser


def _choose(parser: argparse.ArgumentParser, questions: list[Question], names: list[str]) -> list[Question]:
    by_name = {question.name: question for question in questions}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}. There are: {', '.join(by_name)}.")
    return [by_name[name] for name in dict.fromkeys(names)] if names else questions


if __name__ == "__main__":
    sys.exit(main())
