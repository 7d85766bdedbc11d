"""Nodes, an aggregator and what is between them, in one process but over real connections, which tests can disturb."""

import asyncio
import socket
from contextlib import asynccontextmanager

import msgspec
import numpy as np
from tests.features.random_hits import random_documents
from tests.features.small_index import text_of
from tests.serving.served_index import STREAMS

from rankwell import IndexWriter
from rankwell.serving.answer import SearchRequest
from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.aggregator import Aggregator
from rankwell.serving.shards.frames import encoded, read_frame
from rankwell.serving.shards.node_link import NodeLink
from rankwell.serving.shards.node_server import NodeServer
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.shard_node import ShardNode
from rankwell.serving.shards.spares import Spares


def make_shards(folder, n_shards):
    """Indexes of the documents of `served_index`, in `folder/shard-N`, and of all in their order in `folder/all`."""
    rng = np.random.default_rng(4)
    documents = []
    for number, words in enumerate(random_documents(rng, 80, streams=STREAMS)):
        texts = {stream: text_of(own) for stream, own in words.items()}
        documents.append({"id": f"d{number}", **dict.fromkeys(STREAMS, ""), **texts})
    parts = [documents[start::n_shards] for start in range(n_shards)]
    folders = [folder / f"shard-{number}" for number in range(n_shards)]
    whole = [one for part in parts for one in part]
    for place, part in zip((*folders, folder / "all"), (*parts, whole), strict=True):
        with IndexWriter(place) as writer:
            writer.add(part)
            writer.commit()
    return folders


class Node:
    """A node behind a proxy.

    change : gets every reply on its way and returns another one, bytes in place of a frame, or None to lose it
    """

    def __init__(self, folder, *, token="", folders=(), **options):
        self.folder, self.token, self.folders, self.options = folder, token, folders, options
        self.change = None
        self.delay = 0.0
        self.n_requests = 0
        self.port, self.server, self.proxy = 0, None, None
        self._writers = []

    async def start(self):
        node = None if self.folders else ShardNode(self.folder)
        if node is not None:
            node.watch(0.05)
        self.server = NodeServer(node, folders=self.folders, token=self.token, **self.options)
        behind = _listening(0)
        self._behind = behind.getsockname()[1]
        await self.server.listen(behind)
        self.proxy = await asyncio.start_server(self._connected, sock=_listening(self.port))
        self.port = self.proxy.sockets[0].getsockname()[1]

    async def die(self):
        """All connections end at once, and there is no more listening."""
        self.proxy.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        await self.server.stop()
        # What was aborted is closed in the next rounds of the loop.
        await asyncio.sleep(0.01)

    def link(self):
        return NodeLink("127.0.0.1", self.port, self.token)

    async def _connected(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._behind)
        self._writers += [writer, far_writer]
        await asyncio.gather(self._forward(reader, far_writer), self._back(far_reader, writer), return_exceptions=True)
        far_writer.close()
        writer.close()

    async def _forward(self, reader, writer):
        while (body := await read_frame(reader)) is not None:
            self.n_requests += 1
            writer.write(len(body).to_bytes(4, "big") + body)
        writer.close()

    async def _back(self, reader, writer):
        while (body := await read_frame(reader)) is not None:
            received = msgspec.msgpack.decode(body, type=messages.Received)
            if self.delay and not isinstance(received.body, messages.Facts | messages.Done):
                await asyncio.sleep(self.delay)
            sent = received if self.change is None else self.change(received)
            if sent is not None:
                writer.write(sent if isinstance(sent, bytes) else encoded(sent))
        writer.close()


def _listening(port):
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    return listening


@asynccontextmanager
async def network(shards, rankers=None, *, spares=(), n_candidates=30, patience=10.0):
    """An aggregator over nodes; shards : for each shard its replicas"""
    nodes = [node for replicas in shards for node in replicas] + list(spares)
    for node in nodes:
        await node.start()
    try:
        async with _aggregator(shards, rankers, spares, n_candidates, patience) as aggregator:
            yield aggregator
    finally:
        for node in nodes:
            await node.die()


@asynccontextmanager
async def _aggregator(shards, rankers, spares, n_candidates, patience):
    aggregator = Aggregator(
        [Shard([node.link() for node in replicas]) for replicas in shards],
        rankers,
        n_candidates=n_candidates,
        spares=Spares([node.link() for node in spares], patience=0.2),
    )
    try:
        await aggregator.start(patience)
        yield aggregator
    finally:
        await aggregator.stop()


async def ask(aggregator, query="w1 w2", *, seconds=5.0, **options):
    return await aggregator.answer(SearchRequest(query, Deadline.after(seconds), **options))


async def forget_counts(aggregator):
    """Serve the same collection as if no query had come yet: its words are counted again."""
    await aggregator._replace_collection()


async def until_whole(aggregator, within=10.0, **options):
    """The first answer of all shards; fails after some seconds."""
    until = Deadline.after(within)
    while True:
        answer = await ask(aggregator, **options)
        if not answer.missing:
            return answer
        assert not until.is_over, answer.missing
        await asyncio.sleep(0.05)


def shown(answer):
    return [(result.id, result.score, result.first_score, result.caption) for result in answer.results]
