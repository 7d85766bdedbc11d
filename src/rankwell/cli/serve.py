"""`rankwell serve`: answer queries over HTTP, with a page to search from."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rankwell.cli.console import say
from rankwell.cli.options import DEFAULT_CANDIDATES, QuietOption, given_path
from rankwell.errors import DataError, ParameterError

_NEEDED = ("msgspec", "prometheus_client", "starlette", "uvicorn")
TOKEN_VARIABLE = "RANKWELL_TOKEN"


def serve(
    index: Annotated[
        Path, typer.Argument(metavar="INDEX", parser=given_path, help="The index's folder.", show_default=False)
    ],
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            "--ranker",
            metavar="[NAME=]FILE",
            help="A ranker file; its name is the file's if none is given. May be repeated; the first is the default.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 is any that is free.")
    ] = 8080,
    candidates: Annotated[
        int, typer.Option("--candidates", metavar="N", min=1, help="How many documents BM25 gives to a ranker.")
    ] = DEFAULT_CANDIDATES,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="MS", min=1, max=60_000, help="The time of a request that does not say."),
    ] = 500,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            metavar="N",
            min=1,
            help="How many queries are ranked together at most; by default 16, or what suits the device.",
            show_default=False,
        ),
    ] = None,
    window: Annotated[
        float,
        typer.Option("--batch-window", metavar="MS", min=0, max=1000, help="How long a query waits for others."),
    ] = 0,
    queue: Annotated[
        int, typer.Option("--queue", metavar="N", min=1, help="How many queries may wait; more are refused.")
    ] = 256,
    cache: Annotated[
        int, typer.Option("--cache", metavar="MB", min=0, help="The size of the result cache; 0 is none.")
    ] = 64,
    expiry: Annotated[
        float, typer.Option("--cache-expiry", metavar="S", min=0, help="How long an answer is given again.")
    ] = 300,
    use_log: Annotated[
        Path | None,
        typer.Option(
            "--use-log",
            metavar="FILE",
            help="Log results shown and clicked, for `rankwell clicks`.",
            show_default=False,
        ),
    ] = None,
    feature_log: Annotated[
        Path | None,
        typer.Option(
            "--feature-log", metavar="FILE", help="Log the features that the default ranker read.", show_default=False
        ),
    ] = None,
    judgments: Annotated[
        Path | None,
        typer.Option(
            "--judgments", metavar="FILE", help="Keep votes, as TREC qrels; queries.tsv is beside.", show_default=False
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help=f"Its content is the token that changes need; or {TOKEN_VARIABLE}. Without it nothing can be changed.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="NAME", help="Where rankers run: cpu, cuda, or auto, which is the quicker for a batch."
        ),
    ] = "cpu",
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="debug (with queries' texts), info, warning or error.")
    ] = "warning",
    quiet: QuietOption = False,
) -> None:
    """Answer queries over HTTP, ranked by one or several rankers, with a page to search from.

    New commits of the index are picked up without a pause. Ctrl-C or SIGTERM ends it after the last answer.

    Example: rankwell serve idx --ranker model.rank

    Example: rankwell serve idx --ranker new=b.rank --ranker old=a.rank --judgments votes.qrels
    """
    _check_extra()
    from rankwell.serving.app import make_app
    from rankwell.serving.node import Node
    from rankwell.serving.result_cache import ResultCache
    from rankwell.serving.server import bind, run
    from rankwell.serving.service import SearchService
    from rankwell.serving.structured_log import log_to_stderr
    from rankwell.serving.use import Use

    if log_level not in ("debug", "info", "warning", "error"):
        raise ParameterError(f"must be debug, info, warning or error, got {log_level!r}.", parameter="log_level")
    token = _token(token_file)
    listening = bind(host, port)
    log_to_stderr(log_level)
    node = Node(index, _named(ranker or ()), n_candidates=candidates, device=device, feature_log=feature_log)
    node.watch()
    service = SearchService(
        node,
        use=Use(use_log, judgments),
        cache=ResultCache(cache << 20, expiry),
        timeout=timeout / 1000,
        batch_size=batch,
        batch_window=window / 1000,
        queue=queue,
    )
    # From here on, who connects is answered.
    listening.listen()
    shown = f"[{host}]" if ":" in host else host
    say(
        f"serving {node.snapshot.index.n_docs:,} documents by {node.snapshot.default} at "
        f"http://{shown}:{listening.getsockname()[1]}",
        quiet=quiet,
    )
    run(make_app(service, token=token), listening)


def _check_extra() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise DataError(
            f"rankwell serve needs {', '.join(missing)}, which the extra 'serve' contains: "
            f"pip install 'rankwell[serve]'."
        )


def _named(rankers: list[str] | tuple[()]) -> dict[str, Path]:
    """Ranker files by name."""
    named: dict[str, Path] = {}
    for given in rankers:
        name, equals, path = given.partition("=")
        if not equals or Path(given).exists():
            name, path = Path(given).stem, given
        if name in named:
            raise ParameterError(
                f"names {name!r} twice. Give one of them another name: --ranker other={path}.", parameter="ranker"
            )
        named[name] = Path(path)
    return named


def _token(file: Path | None) -> str | None:
    token = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(TOKEN_VARIABLE, "")
    if file is not None and not token:
        raise DataError(f"{file} is empty: a token is needed in it.")
    return token or None
