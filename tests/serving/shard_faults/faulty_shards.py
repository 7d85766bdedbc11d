"""Nodes with changed replies, and waiting until an aggregator is well again."""

import asyncio
import time

import msgspec
from tests.serving.node_network import ask

from rankwell.serving.batching import OverloadError


def with_body(received, **changes):
    return msgspec.structs.replace(received, body=msgspec.structs.replace(received.body, **changes))


def of_kind(kind, change):
    """Change the replies of one kind."""
    return lambda received: change(received) if isinstance(received.body, kind) else received


async def until(condition, within=10.0):
    """Wait for a condition; fails after some seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


async def until_whole_or_refused(aggregator):
    for _ in range(200):
        try:
            if not (await ask(aggregator)).missing:
                return
        except OverloadError:
            pass
        await asyncio.sleep(0.05)
    raise AssertionError("the shards are not back")


def aggregator_index(folders):
    from rankwell import Index

    return Index.open(folders[0].parent / "all")
