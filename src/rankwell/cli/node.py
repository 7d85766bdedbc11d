"""`rankwell node`: one shard of a collection, for a server elsewhere."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.console import say
from rankwell.cli.options import QuietOption, given_path
from rankwell.cli.own_options import OwnOption, QueryVectorsOption, given_own
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
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.features.own_features import OwnFeatures
    from rankwell.serving.shards.shard_node import ShardNode


def node(
    indexes: Annotated[
        list[Path],
        typer.Argument(
            metavar="INDEX", parser=given_path, help="The index's folder; of a spare, several.", show_default=False
        ),
    ],
    spare: Annotated[
        bool, typer.Option("--spare", help="Wait until a server needs one of the indexes, whose node is gone.")
    ] = False,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 is any that is free.")
    ] = 7070,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Its content is the token that servers must have; or RANKWELL_NODE_TOKEN.",
            show_default=False,
        ),
    ] = None,
    batch: BatchOption = None,
    window: WindowOption = 0,
    queue: QueueOption = 256,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", min=1, help="Threads; by default one for each core.", show_default=False
        ),
    ] = None,
    device: DeviceOption = "cpu",
    own: OwnOption = None,
    query_vectors: QueryVectorsOption = None,
    log_level: LogLevelOption = "warning",
    ends_with_stdin: Annotated[bool, typer.Option("--ends-with-stdin", hidden=True)] = False,
    quiet: QuietOption = False,
) -> None:
    """Answer the requests of a server (`rankwell serve --nodes`) for one shard of its collection.

    Rankers come from the server. New commits of the index are picked up without a pause. On an address that other
    machines reach, a token is needed. Ctrl-C or SIGTERM ends it after the last answer.

    Example: rankwell node shard-1 --port 7071
    """
    check_extra("node")
    from rankwell.serving.http.server import bind
    from rankwell.serving.http.structured_log import log_to_stderr
    from rankwell.serving.ranking.placement import batch_size_on
    from rankwell.serving.shards.node_addresses import is_loopback
    from rankwell.serving.shards.node_server import NodeServer
    from rankwell.serving.shards.supervision import TOKEN_VARIABLE

    check_log_level(log_level)
    token = read_token(token_file, TOKEN_VARIABLE) or ""
    if not token and not is_loopback(host):
        raise ParameterError(
            f"other machines reach {host}, so a token is needed: --token-file, or the variable {TOKEN_VARIABLE}. The "
            f"server needs the same one.",
        )
    if len(indexes) > 1 and not spare:
        raise ParameterError(
            f"a node has one index, got {len(indexes)}: start one for each, or a spare for all with --spare.",
        )
    listening = bind(host, port)
    log_to_stderr(log_level)
    own_features = given_own(own or (), query_vectors or ())
    open_node = partial(_watched_node, device=device, n_jobs=threads, own=own_features)
    opened = None if spare else open_node(indexes[0])
    server = NodeServer(
        opened,
        folders=indexes if spare else (),
        open_node=open_node,
        token=token,
        batch_size=batch or batch_size_on(device),
        batch_window=window / 1000,
        queue=queue,
    )
    listening.listen()
    shown = f"[{host}]" if ":" in host else host
    what = f"a spare for {len(indexes)} indexes" if opened is None else f"{opened.index.n_docs:,} documents"
    address = f"{shown}:{listening.getsockname()[1]}"
    if ends_with_stdin:
        # The server that has started this process reads it.
        print(f"listening at {host}:{listening.getsockname()[1]}", flush=True)
    else:
        say(f"{what}, for `rankwell serve --nodes` at {address}", quiet=quiet)
    server.serve(listening, ends_with_stdin=ends_with_stdin)


def _watched_node(folder: Path, *, device: str, n_jobs: int | None, own: OwnFeatures | None) -> ShardNode:
    from rankwell.serving.shards.shard_node import ShardNode

    opened = ShardNode(folder, device=device, n_jobs=n_jobs, own=own)
    opened.watch()
    return opened
