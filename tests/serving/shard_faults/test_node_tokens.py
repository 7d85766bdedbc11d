"""Who has not said the token: refused, bounded, and in nobody's way."""

import asyncio
import gc

import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.node_network import Node
from tests.serving.shard_faults.faulty_shards import until

from rankwell.serving.shards import messages
from rankwell.serving.shards.frames import encoded, read_frame


def test_a_wrong_token_is_refused_and_told(folders):
    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        node.token = "wrong"
        link = node.link()
        await link.look()
        assert not link.is_up
        assert "token is missing or wrong" in link.last_error
        await node.die()

    asyncio.run(run())


def test_who_has_not_said_the_token_cannot_send_much(folders):
    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", node._behind)
        writer.write((1 << 20).to_bytes(4, "big") + b"x" * 100)
        assert await reader.read() == b""
        writer.close()
        await node.die()

    asyncio.run(run())


def test_who_does_not_say_the_token_is_not_kept(folders, monkeypatch):
    monkeypatch.setattr("rankwell.serving.shards.node_server._HELLO_SECONDS", 0.5)

    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        silent = [await asyncio.open_connection("127.0.0.1", node._behind) for _ in range(5)]
        # Half a frame is no word either.
        silent[0][1].write(b"\x00\x00")
        link = node.link()
        await link.look()
        async with asyncio.timeout(10.0):
            assert [await reader.read() for reader, _ in silent] == [b""] * 5
        await link.look()
        assert link.is_up
        for _, writer in silent:
            writer.close()
        await node.die()

    asyncio.run(run())


def test_many_who_do_not_say_the_token_do_not_keep_out_who_does(folders, monkeypatch):
    monkeypatch.setattr("rankwell.serving.shards.node_server._MOST_STRANGERS", 3)
    monkeypatch.setattr("rankwell.serving.shards.node_server._HELLO_SECONDS", 60.0)

    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        silent = [await asyncio.open_connection("127.0.0.1", node._behind) for _ in range(10)]
        link = node.link()
        await link.look()
        assert link.is_up
        await until(lambda: sum(reader.at_eof() or reader.exception() is not None for reader, _ in silent) == 8)
        assert len(node.server._connections) == 3
        for _, writer in silent:
            writer.close()
        await node.die()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_a_reply_to_an_aggregator_that_is_gone_is_no_error(folders, name):
    """As after SIGSTOP and SIGCONT: what came before is answered when the connection is closed already."""
    loops = pytest.importorskip(name)
    wrong = []

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: wrong.append(context))
        node = Node(folders[0], batch_window=0.2)
        await node.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", node._behind)
        writer.write(encoded(messages.Sent(0, 5.0, messages.Hello(messages.PROTOCOL, ""))))
        assert await read_frame(reader)
        for number in range(3):
            find = messages.Find(messages.Version("", ""), ["d0"])
            writer.write(encoded(messages.Sent(number, 5.0, find)))
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await asyncio.sleep(0.5)
        await node.die()
        gc.collect()

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        runner.run(run())
    assert wrong == []
