"""`rankwell serve` over shards: its own node processes, or nodes elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

from rankwell.cli.console import say

if TYPE_CHECKING:
    from rankwell.index.text.synonyms import Synonyms
    from rankwell.serving.shards.node_link import NodeLink
    from rankwell.serving.shards.supervision import NodeProcess

NODE_TOKEN_VARIABLE = "RANKWELL_NODE_TOKEN"


@dataclass(frozen=True)
class Places:
    """Where the nodes are: links by shard, spares, and the processes among them that are the server's own."""

    shards: list[list[NodeLink]]
    spares: list[NodeLink]
    processes: list[NodeProcess]


def start_places(
    folders: Sequence[Path], replicas: int, spares: int, threads: int | None, options: Sequence[str]
) -> Places:
    """Processes on this machine, which are not started yet; threads : of each, by default its share of the cores"""
    from rankwell.index.reader import Index
    from rankwell.kernels.threads import available_cores
    from rankwell.serving.shards.node_link import NodeLink
    from rankwell.serving.shards.supervision import NodeProcess

    for folder in folders:
        # What is wrong with an index is told by this process, before others are started.
        Index.open(folder)
    token = secrets.token_hex(16)
    n_threads = threads or max(1, available_cores() // (len(folders) * replicas))
    of_all = [*options, "--threads", str(n_threads)]
    processes: list[NodeProcess] = []

    def started(arguments: Sequence[str]) -> NodeLink:
        link = NodeLink("127.0.0.1", 0, token)
        processes.append(NodeProcess([*arguments, *of_all], link, token))
        return link

    shards = [[started([str(folder)]) for _ in range(replicas)] for folder in folders]
    spare_links = [started([*map(str, folders), "--spare"]) for _ in range(spares)]
    return Places(shards, spare_links, processes)


def given_places(nodes: str, spare_nodes: str, token: str) -> Places:
    """Nodes that were started elsewhere."""
    from rankwell.serving.shards.node_addresses import parse_shards, parse_spares
    from rankwell.serving.shards.node_link import NodeLink

    shards = [[NodeLink(*address, token) for address in replicas] for replicas in parse_shards(nodes)]
    return Places(shards, [NodeLink(*address, token) for address in parse_spares(spare_nodes)], [])


def serve_shards(
    places: Places,
    rankers: Mapping[str, Path],
    n_candidates: int,
    most: int,
    around: Mapping[str, Any],
    token: str | None,
    listening: socket,
    address: str,
    feature_log: Path | None,
    synonyms: Synonyms | None,
    *,
    quiet: bool,
) -> None:
    """Serve until SIGTERM; around : the service's use, cache and timeout"""
    from rankwell.serving.http.aggregator_service import AggregatorService
    from rankwell.serving.http.app import make_app
    from rankwell.serving.http.server import run
    from rankwell.serving.shards.aggregator import Aggregator
    from rankwell.serving.shards.shard import Shard
    from rankwell.serving.shards.spares import Spares
    from rankwell.serving.shards.supervision import Supervisor

    shards = [Shard(links) for links in places.shards]
    aggregator = Aggregator(
        shards,
        rankers,
        n_candidates=n_candidates,
        spares=Spares(places.spares),
        synonyms=synonyms,
        feature_log=feature_log,
    )

    def say_ready() -> None:
        snapshot = aggregator.snapshot
        missing = len(shards) - len(snapshot.collection.facts)
        note = f" ({missing} of {len(shards)} shards are missing)" if missing else f" in {len(shards)} shards"
        n_docs = snapshot.collection.census.n_docs
        say(f"serving {n_docs:,} documents{note} by {snapshot.default} at {address}", quiet=quiet)

    supervisor = Supervisor(places.processes) if places.processes else None
    service = AggregatorService(aggregator, supervisor=supervisor, most=most, on_ready=say_ready, **around)
    listening.listen()
    run(make_app(service, token=token), listening)
    if service.failure is not None:
        raise service.failure
