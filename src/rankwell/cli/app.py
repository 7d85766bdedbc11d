"""The command `rankwell`: its commands by name, and how errors are reported.

Commands import what they need when they run, so that `rankwell --help` answers at once.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn, TextIO

import typer

from rankwell.cli.cascade import cascade
from rankwell.cli.clicks import clicks
from rankwell.cli.compare import compare
from rankwell.cli.console import print_error
from rankwell.cli.convert import convert
from rankwell.cli.crossval import crossval
from rankwell.cli.demo import demo
from rankwell.cli.evaluate import evaluate
from rankwell.cli.explain import explain_scores
from rankwell.cli.export_model import export_model
from rankwell.cli.failure import INTERRUPTED, explain
from rankwell.cli.features import features
from rankwell.cli.group import CommandGroup
from rankwell.cli.hardware import hardware_app
from rankwell.cli.import_model import import_model
from rankwell.cli.index import index_app
from rankwell.cli.info import info
from rankwell.cli.node import node
from rankwell.cli.plan import plan_app
from rankwell.cli.predict import predict
from rankwell.cli.ranker_description import ranker_app
from rankwell.cli.search import search
from rankwell.cli.serve import serve
from rankwell.cli.train import train
from rankwell.cli.warm import warm
from rankwell.version import __version__


class RankwellGroup(CommandGroup):
    """The group of all commands: a user's mistake becomes one line on stderr and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(RankwellGroup, self).main(
                args, prog_name, complete_var, standalone_mode=False, windows_expand_args=windows_expand_args, **extra
            )

        if not standalone_mode:
            return run()
        sys.exit(_exit_code(run))


def _exit_code(command: Callable[[], Any]) -> int:
    """Run a command; returns its exit code after saying what went wrong."""
    try:
        code = command()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:
        if not _reader_has_left(end):
            raise
        _discard(sys.stdout)
        return 0
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            return _say_wrong_usage(error)
        failure = explain(error)
        if failure is None:
            raise
        return _say(failure.line, failure.exit_code)


def _say(line: str, exit_code: int) -> int:
    """Print an error, where there still is someone to read it."""
    try:
        print_error(line)
        sys.stderr.flush()
    except (BrokenPipeError, SystemExit):
        _discard(sys.stderr)
    return exit_code


def _reader_has_left(end: BaseException) -> bool:
    """Whether the reader of our pipe (head, less) has closed it, which is not a failure.

    Click and Rich turn that into an exit with code 1.
    """
    return isinstance(end, BrokenPipeError) or isinstance(end.__context__, BrokenPipeError)


def _say_wrong_usage(error: Any) -> int:
    """A command line that Typer could not read."""
    context = getattr(error, "ctx", None)
    command = "rankwell" if context is None else context.command_path
    text = " ".join(error.format_message().split())
    return _say(f"{text if text.endswith(('.', '?')) else f'{text}.'} See {command} --help.", int(error.exit_code))


def _discard(stream: TextIO) -> None:
    """Nothing more can be said to a reader that has left, not even at exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


app = typer.Typer(
    name="rankwell",
    cls=RankwellGroup,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Accelerated learning to rank: train, judge and use ranking functions.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankwell {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def rankwell(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Accelerated learning to rank: train, judge and use ranking functions."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _command in (train, cascade, predict, evaluate, compare, crossval, convert, info, demo, warm):
    app.command()(_command)
app.command("explain")(explain_scores)
app.command("features")(features)
app.command("clicks")(clicks)
app.command("search")(search)
app.command("serve")(serve)
app.command("node")(node)
app.command("import")(import_model)
app.command("export")(export_model)
app.add_typer(index_app)
app.add_typer(ranker_app)
app.add_typer(hardware_app)
app.add_typer(plan_app)


def main() -> None:
    """The entry point of the command `rankwell`."""
    _replace_closed_streams()
    # Most objects of a command are made by imports and stay: looking for garbage among them takes a tenth of its time.
    gc.set_threshold(100_000, 20, 20)
    try:
        app(prog_name="rankwell")
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        _leave(end.code)


def _leave(code: int) -> NoReturn:
    """End the process without taking down what it has imported and compiled, which takes 0.2 to 0.3 s.

    What is registered to be done at exit is done (temporary folders, logs).
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _replace_closed_streams() -> None:
    """Python has no stdout where it was closed (>&-): output is dropped, as print does."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
