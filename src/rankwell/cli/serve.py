"""`rankwell serve`: answer queries over HTTP, with a page to search from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import say
from rankwell.cli.options import DEFAULT_CANDIDATES, QuietOption, given_path
from rankwell.cli.own_options import OwnOption, QueryVectorsOption, check_own, given_own
from rankwell.cli.serve_options import (
    BatchOption,
    DeviceOption,
    LogLevelOption,
    QueueOption,
    WindowOption,
    check_extra,
    check_log_level,
    read_token,
)
from rankwell.cli.serve_processes import check_alone, check_files, serve_command
from rankwell.cli.serve_shards import NODE_TOKEN_VARIABLE, given_places, serve_shards, start_places
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.serving.http.service import SearchService

TOKEN_VARIABLE = "RANKWELL_TOKEN"


def serve(
    indexes: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INDEX", parser=given_path, help="The index's folder; several are shards.", show_default=False
        ),
    ] = None,
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
        int,
        typer.Option("--candidates", metavar="N", min=1, help="How many documents of a query BM25 gives to a ranker."),
    ] = DEFAULT_CANDIDATES,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="MS", min=1, max=60_000, help="The time of a request that does not say."),
    ] = 500,
    batch: BatchOption = None,
    window: WindowOption = 0,
    queue: QueueOption = 256,
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
            help="Log results shown and clicked, for `rankwell clicks`; of use.jsonl, the queries are in "
            "use.queries.tsv beside it.",
            show_default=False,
        ),
    ] = None,
    exchange: Annotated[
        bool,
        typer.Option(
            "--exchange",
            help="With --use-log: exchange neighbouring results at random, so that position bias can be estimated.",
        ),
    ] = False,
    feature_log: Annotated[
        Path | None,
        typer.Option(
            "--feature-log", metavar="FILE", help="Log the features that the default ranker read.", show_default=False
        ),
    ] = None,
    judgments: Annotated[
        Path | None,
        typer.Option(
            "--judgments",
            metavar="FILE",
            help="Keep votes, as TREC qrels; of votes.qrels, the queries are in votes.queries.tsv beside it.",
            show_default=False,
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
    nodes: Annotated[
        str | None,
        typer.Option(
            "--nodes",
            metavar="ADDRESSES",
            help="Shards that `rankwell node` serves: host:port, separated by commas; replicas of a shard by |.",
            show_default=False,
        ),
    ] = None,
    spare_nodes: Annotated[
        str,
        typer.Option(
            "--spare-nodes",
            metavar="ADDRESSES",
            help="Nodes that take the place of a shard's nodes that are gone.",
            show_default=False,
        ),
    ] = "",
    node_token_file: Annotated[
        Path | None,
        typer.Option(
            "--node-token-file",
            metavar="FILE",
            help="Its content is the token of the nodes; or RANKWELL_NODE_TOKEN.",
            show_default=False,
        ),
    ] = None,
    replicas: Annotated[
        int, typer.Option("--replicas", metavar="N", min=1, max=16, help="Processes for each of several indexes.")
    ] = 1,
    spares: Annotated[
        int, typer.Option("--spares", metavar="N", min=0, max=16, help="Spare processes for several indexes.")
    ] = 0,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", metavar="N", min=1, max=64, help="Processes that answer for one index, on one port."
        ),
    ] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads of each process; by default one for each core, divided among the processes.",
            show_default=False,
        ),
    ] = None,
    is_one_of_several: Annotated[bool, typer.Option("--one-of-several", hidden=True)] = False,
    device: DeviceOption = "cpu",
    synonyms: Annotated[
        Path | None,
        typer.Option(
            "--synonyms",
            metavar="FILE",
            help="Lines as 'tv, television' and 'laptop => notebook': words that are found too, in all queries.",
            show_default=False,
        ),
    ] = None,
    own: OwnOption = None,
    query_vectors: QueryVectorsOption = None,
    log_level: LogLevelOption = "warning",
    quiet: QuietOption = False,
) -> None:
    """Answer queries over HTTP, ranked by one or several rankers, with a page to search from.

    New commits of the index are picked up without a pause. Several indexes, or a folder of shards, are one collection:
    each has a process of its own, and they answer as one index with all documents. Ctrl-C or SIGTERM ends it after the
    last answer.

    Example: rankwell serve idx --ranker model.rank

    Example: rankwell serve idx --ranker new=b.rank --ranker old=a.rank --judgments votes.qrels

    Example: rankwell serve idx --ranker model.rank --processes 4

    Example: rankwell serve shard-1 shard-2 shard-3 --ranker model.rank

    Example: rankwell serve --nodes 'a:7070|b:7070,c:7070' --ranker model.rank
    """
    check_extra("serve")
    from rankwell.index.text.synonyms import Synonyms
    from rankwell.kernels.threads import available_cores
    from rankwell.serving.http.server import bind, bind_for_processes
    from rankwell.serving.http.server_processes import READY, ServerProcesses, cores_of, end_with_stdin
    from rankwell.serving.http.structured_log import log_to_stderr
    from rankwell.serving.result_cache import ResultCache
    from rankwell.serving.use import Use

    check_log_level(log_level)
    folders, named = _folders(indexes or ()), _named(ranker or ())
    _check_places(folders, nodes, spare_nodes, replicas, spares)
    if nodes is not None:
        given = {"--own": own, "--query-vectors": query_vectors, "--threads": threads, "--batch": batch}
        _check_not_of_nodes({**given, "--batch-window": window, "--device": None if device == "cpu" else device})
    own_features = given_own(own or (), query_vectors or ())
    rules = None if synonyms is None else Synonyms.read(synonyms)
    sources = [part for one in own or () for part in ("--own", one)]
    sources += [part for one in query_vectors or () for part in ("--query-vectors", one)]
    if exchange and use_log is None:
        raise ParameterError("--exchange is for the log that position bias is estimated from: give --use-log too.")
    token = read_token(token_file, TOKEN_VARIABLE)
    if processes > 1:
        alone = {"--use-log": use_log, "--judgments": judgments, "a token": token, "--nodes": nodes}
        check_alone([name for name, given in alone.items() if given], len(folders), replicas, spares)
        check_files(folders[0], named.values())
    listening = bind_for_processes(host, port) if processes > 1 else bind(host, port, shared=is_one_of_several)
    log_to_stderr(log_level)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    use = Use(use_log, judgments, exchanges=exchange)
    for path in use.queries_paths:
        say(f"the texts of queries are kept in {path}", quiet=quiet)
    around: dict[str, Any] = {
        "use": use,
        "cache": ResultCache(cache << 20, expiry),
    }
    around["timeout"] = timeout / 1000
    if processes > 1:
        n_threads = threads or max(1, available_cores() // processes)
        options = serve_command(
            folders[0], host, listening.getsockname()[1], ranker or (), candidates, timeout, batch, window, queue,
            cache, expiry, feature_log, n_threads, device, log_level,
        )  # fmt: skip
        check_own(named, own_features)
        ready = f"serving {folders[0]} by {processes} processes at {address}"
        cores = cores_of(processes, n_threads)
        options += [] if synonyms is None else ["--synonyms", str(synonyms)]
        ServerProcesses([*options, *sources], processes, cores).run(partial(say, ready, quiet=quiet))
        return
    if nodes is None and len(folders) == 1 and replicas == 1 and spares == 0:
        from rankwell.serving.http.service import SearchService
        from rankwell.serving.node import Node

        node = Node(
            folders[0],
            named,
            n_candidates=candidates,
            device=device,
            n_jobs=threads,
            feature_log=feature_log,
            own=own_features,
            synonyms=rules,
        )
        node.watch()
        service = SearchService(node, batch_size=batch, batch_window=window / 1000, queue=queue, **around)
        say_ready = partial(say, _ready(node.snapshot.index.n_docs, node.snapshot.default, address), quiet=quiet)
        if is_one_of_several:
            end_with_stdin()
            say_ready = partial(print, READY, flush=True)
        _run(service, token, listening, say_ready)
        return
    if nodes is None:
        options = ["--batch-window", str(window), "--queue", str(queue)]
        options += [] if batch is None else ["--batch", str(batch)]
        options += ["--device", device, "--log-level", log_level, *sources]
        check_own(named, own_features)
        places = start_places(folders, replicas, spares, threads, options)
    else:
        places = given_places(nodes, spare_nodes, read_token(node_token_file, NODE_TOKEN_VARIABLE) or "")
    serve_shards(places, named, candidates, queue, around, token, listening, address, feature_log, rules, quiet=quiet)


def _folders(indexes: Sequence[Path]) -> list[Path]:
    """The folders of indexes; in place of a folder of shards, those of its shards."""
    from rankwell.index.shards import shard_folders

    return [folder for index in indexes for folder in shard_folders(index) or [index]]


def _run(service: SearchService, token: str | None, listening: socket, say_ready: Callable[[], None]) -> None:
    from rankwell.serving.http.app import make_app
    from rankwell.serving.http.server import run

    # From here on, who connects is answered.
    listening.listen()
    say_ready()
    run(make_app(service, token=token), listening, service)


def _check_places(folders: list[Path], nodes: str | None, spare_nodes: str, replicas: int, spares: int) -> None:
    """Indexes here or nodes elsewhere, and what belongs to them."""
    if bool(folders) == (nodes is not None):
        raise ParameterError(
            "give the folders of one or several indexes, or --nodes with the addresses of nodes: one of both."
        )
    if nodes is not None and (replicas > 1 or spares):
        raise ParameterError(
            "--replicas and --spares are for indexes on this machine. With --nodes, write replicas as a:7070|b:7070, "
            "and spares in --spare-nodes."
        )
    if folders and spare_nodes:
        raise ParameterError("needs --nodes; for indexes on this machine there is --spares.", parameter="spare_nodes")
    names = [folder.absolute() for folder in folders]
    if len(set(names)) < len(names):
        raise ParameterError("the same index is named twice; for several processes of one there is --replicas.")


def _check_not_of_nodes(options: Mapping[str, object]) -> None:
    """Refuse what `rankwell node` is told; options : what was given of it, by name"""
    named = [name for name, value in options.items() if value]
    if named:
        raise ParameterError(
            f"{', '.join(named)}: nodes that --nodes names do that work, and are told when they start. Give it to "
            f"`rankwell node`."
        )


def _ready(n_docs: int, ranker: str, address: str) -> str:
    return f"serving {n_docs:,} documents by {ranker} at {address}"


def _named(rankers: list[str] | tuple[()]) -> dict[str, Path]:
    """Ranker files by name."""
    from rankwell.serving.named_rankers import checked_name

    named: dict[str, Path] = {}
    for given in rankers:
        name, equals, path = given.partition("=")
        if not equals or Path(given).exists():
            name, path = Path(given).stem, given
        try:
            checked_name(name)
        except ParameterError as error:
            raise ParameterError(f"{given}: its ", *error.pieces, parameter="ranker") from error
        if name in named:
            raise ParameterError(
                f"names {name!r} twice. Give one of them another name: --ranker other={path}.", parameter="ranker"
            )
        named[name] = Path(path)
    return named
