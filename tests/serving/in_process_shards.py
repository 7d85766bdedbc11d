"""An aggregator over shards in this process: every message is encoded and decoded as between processes."""

import asyncio

import msgspec
from starlette.testclient import TestClient

from rankwell.errors import ParameterError, RankwellError
from rankwell.serving.deadline import Deadline
from rankwell.serving.http.aggregator_service import AggregatorService
from rankwell.serving.http.app import make_app
from rankwell.serving.shards import messages
from rankwell.serving.shards.aggregator import Aggregator
from rankwell.serving.shards.circuit_breaker import CircuitBreaker
from rankwell.serving.shards.node_link import NodeError
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.shard_node import NodeRequest, ShardNode


class InProcessLink:
    """A node, asked as `NodeLink` asks one."""

    def __init__(self, node):
        self.node, self.facts, self.is_up = node, node.describe(), True
        self.prepared, self.breaker, self.n_waiting, self.last_error = set(), CircuitBreaker(), 0, ""
        self.pace = CircuitBreaker()
        self.name = self.facts.folder
        self.asked, self.n_failures, self.refused = [], {}, {}

    async def watch(self):
        while True:
            self.facts = self.node.describe()
            await asyncio.sleep(0.01)

    async def call(self, body, deadline, check):
        body = msgspec.msgpack.decode(msgspec.msgpack.encode(body), type=messages.Request)
        self.asked.append(body)
        (reply,) = self.node.answer([NodeRequest(body, deadline)])
        if isinstance(reply, ParameterError):
            raise NodeError("mistake", str(reply), messages.Failure("mistake", str(reply), reply.parameter))
        if isinstance(reply, RankwellError):
            raise NodeError(getattr(reply, "kind", "failed"), str(reply))
        if isinstance(reply, Exception):
            raise reply
        return check(msgspec.msgpack.decode(msgspec.msgpack.encode(reply), type=messages.Reply)), 0.0

    def begin(self, body, deadline, check):
        return asyncio.ensure_future(self.call(body, deadline, check))

    async def give(self, body, name):
        body = msgspec.msgpack.decode(msgspec.msgpack.encode(body), type=messages.Request)
        self.node.prepare(body) if isinstance(body, messages.Prepare) else self.node.put_ranker(body)
        self.prepared.add(name)


def aggregator_of(folders, rankers=None, **settings):
    """An aggregator over the indexes in these folders; it is not started."""
    return Aggregator([Shard([InProcessLink(ShardNode(folder))]) for folder in folders], rankers, **settings)


def run_with(aggregator, ask):
    """What the coroutine `ask(aggregator)` gives, while the aggregator runs."""

    async def run():
        await aggregator.start()
        try:
            return await ask(aggregator)
        finally:
            await aggregator.stop()

    return asyncio.run(run())


def in_time():
    return Deadline.after(30.0)


def shards_client(folders, rankers=None, *, token=None, **settings):
    """The HTTP calls of shards in this process."""
    service = AggregatorService(aggregator_of(folders, rankers, **settings), timeout=30.0)
    client = TestClient(make_app(service, token=token), raise_server_exceptions=False)
    client.service = service
    return client
