"""The process of a node: a shard behind a queue, asked by aggregators over connections that stay open."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rankwell.errors import DataError, ParameterError, RankwellError
from rankwell.serving.batching import Batcher, OverloadError
from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.frames import MOST_BYTES_UNKNOWN, FrameError, decoded, encoded, read_frame
from rankwell.serving.shards.missing import MissingError
from rankwell.serving.shards.shard_node import NodeRequest, ShardNode
from rankwell.serving.short_pauses import short_pauses

_log = logging.getLogger("rankwell.serving")

# How long a connection may take to say the token, and how many may be open that have not said it.
_HELLO_SECONDS = 2.0
_MOST_STRANGERS = 64
# So many different failures are logged once each.
_FAILURES_REMEMBERED = 1000
# How long requests that have come may take after SIGTERM.
_DRAINING_SECONDS = 30.0
# Python's 5 ms would let the ranking thread delay every reply by that much.
_SWITCH_SECONDS = 0.0005


class NodeServer:
    """A shard and its connections.

    Parameters
    ----------
    node : ShardNode, or None for a spare, which gets an index when an aggregator asks for it
    folders : the indexes that a spare may open; open_node : makes the node of one of them
    token : what the first message of a connection must contain; empty: nothing
    batch_size, batch_window, queue : as of `Batcher`
    """

    def __init__(
        self,
        node: ShardNode | None,
        *,
        folders: Sequence[Path] = (),
        open_node: Callable[[Path], ShardNode] = ShardNode,
        token: str = "",
        batch_size: int = 16,
        batch_window: float = 0.0,
        queue: int = 256,
    ) -> None:
        self.node, self._open_node, self._folders, self._token = node, open_node, folders, token
        self._n_batches = self._n_requests = 0
        self._batcher: Batcher[NodeRequest, messages.Reply] = Batcher(
            self._answer, most=batch_size, window=batch_window, capacity=queue, on_batch=self._count_batch
        )
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        # The oldest first.
        self._strangers: dict[asyncio.StreamWriter, None] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._logged: set[str] = set()
        self._decoder = msgspec.msgpack.Decoder(messages.Sent)

    def serve(self, listening: socket.socket, *, ends_with_stdin: bool = False) -> None:
        """Serve until SIGTERM or SIGINT, or until stdin ends if a parent holds it open; what has come is answered."""
        with short_pauses(_SWITCH_SECONDS), asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve(listening, ends_with_stdin))

    async def _serve(self, listening: socket.socket, ends_with_stdin: bool) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        if ends_with_stdin:
            # A parent that was killed cannot tell its children to end, but its end of the pipe is closed.
            loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1) else stopping.set())
        await self.listen(listening)
        await stopping.wait()
        await self.stop()

    async def listen(self, listening: socket.socket) -> None:
        """Accept connections from now on."""
        self._server = await asyncio.start_server(self._connected, sock=listening)

    async def stop(self) -> None:
        """Accept no more connections, answer what has come, and end."""
        if self._server is not None:
            self._server.close()
        if self._running:
            await asyncio.wait(self._running, timeout=_DRAINING_SECONDS)
        for writer in list(self._connections):
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._batcher.close()
        if self.node is not None:
            self.node.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            if await self._is_welcome(reader, writer):
                while (body := await read_frame(reader)) is not None:
                    sent = decoded(body, self._decoder)
                    task = asyncio.create_task(self._reply(sent, writer))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
        except (FrameError, OSError) as error:
            _log.warning("a connection was ended: %s", error)
        finally:
            self._connections.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _is_welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the first message has the token and a protocol that is known."""
        body = await self._first_frame(reader, writer)
        sent = None if body is None else decoded(body, self._decoder)
        if sent is None:
            return False
        hello, refused = sent.body, ""
        if not isinstance(hello, messages.Hello) or not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            refused = "the token is missing or wrong: give the node and the aggregator the same one."
        elif hello.protocol != messages.PROTOCOL:
            refused = (
                f"this node speaks protocol {messages.PROTOCOL}, not {hello.protocol}: use one release everywhere."
            )
        reply = messages.Failure("refused", refused) if refused else messages.Done()
        writer.write(encoded(messages.Received(sent.number, 0.0, reply)))
        await writer.drain()
        return not refused

    async def _first_frame(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        """What a connection says first; None if it was closed before. One that says nothing is not kept."""
        if len(self._strangers) >= _MOST_STRANGERS:
            # An aggregator says the token at once: who has waited for longest is none.
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
        self._strangers[writer] = None
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                return await read_frame(reader, MOST_BYTES_UNKNOWN)
        except TimeoutError as cause:
            raise FrameError(f"it did not say the token within {_HELLO_SECONDS:g} s.") from cause
        finally:
            self._strangers.pop(writer, None)

    async def _reply(self, sent: messages.Sent, writer: asyncio.StreamWriter) -> None:
        started = time.perf_counter()
        body: messages.Reply
        try:
            body = await self._work(sent)
        except Exception as error:
            body = self._failure(error)
        if writer.is_closing():
            # Who asked is gone. uvloop's transports raise RuntimeError then, asyncio's own only log.
            return
        with contextlib.suppress(OSError):
            writer.write(encoded(messages.Received(sent.number, time.perf_counter() - started, body)))
            await writer.drain()

    async def _work(self, sent: messages.Sent) -> messages.Reply:
        loop, body = asyncio.get_running_loop(), sent.body
        if isinstance(body, messages.Open):
            return await loop.run_in_executor(None, self._open, body)
        node = self._the_node()
        if isinstance(body, messages.Describe):
            return self._described(node)
        # Whatever takes long and is rare does not hold up queries.
        if isinstance(body, messages.Prepare):
            return await loop.run_in_executor(None, node.prepare, body)
        if isinstance(body, messages.PutRanker):
            return await loop.run_in_executor(None, node.put_ranker, body)
        if sent.seconds <= 0:
            return messages.Failure("deadline", "no time was left.")
        return await asyncio.wrap_future(self._batcher.submit(NodeRequest(body, Deadline.after(sent.seconds))))

    def _answer(self, requests: Any) -> Any:
        return self._the_node().answer(requests)

    def _count_batch(self, size: int) -> None:
        self._n_batches, self._n_requests = self._n_batches + 1, self._n_requests + size

    def _described(self, node: ShardNode) -> messages.Facts:
        """The node's facts, with what its queue has had to do."""
        facts = node.describe()
        load = msgspec.structs.replace(
            facts.load, n_batches=self._n_batches, n_requests=self._n_requests, n_waiting=self._batcher.length
        )
        return msgspec.structs.replace(facts, load=load)

    def _the_node(self) -> ShardNode:
        if self.node is None:
            raise MissingError("commit", "of any index: it is a spare")
        return self.node

    def _open(self, asked: messages.Open) -> messages.Reply:
        """Take the index of that folder, or of one with the same name; the one before is given up."""
        wanted = Path(asked.folder)
        same = [one for one in self._folders if one.absolute() == wanted]
        folder = next(iter(same or [one for one in self._folders if one.name == wanted.name]), None)
        if folder is None:
            known = ", ".join(map(str, self._folders)) or "none, since it is not a spare"
            raise ParameterError(f"must be an index that this spare has ({known}), got {wanted}.", parameter="folder")
        if self.node is None or self.node.index.path != folder:
            replaced, self.node = self.node, self._open_node(folder)
            if replaced is not None:
                replaced.close()
        return messages.Done()

    def _failure(self, error: Exception) -> messages.Failure:
        if isinstance(error, MissingError):
            return messages.Failure(error.kind, str(error))
        if isinstance(error, OverloadError):
            return messages.Failure("overload", str(error), retry_after=error.retry_after)
        if isinstance(error, ParameterError):
            return messages.Failure("mistake", str(error), error.parameter)
        if isinstance(error, DataError):
            return messages.Failure("mistake", str(error))
        self._log_failure(error)
        return messages.Failure("failed", str(error))

    def _log_failure(self, error: Exception) -> None:
        """Log a failure of the node itself, as of a file that is damaged: the same one once."""
        if repr(error) in self._logged:
            return
        if len(self._logged) >= _FAILURES_REMEMBERED:
            self._logged.clear()
        self._logged.add(repr(error))
        # What Rankwell raises on purpose says where it comes from.
        trace = None if isinstance(error, RankwellError) else error
        _log.error("a request failed, and others like it may: %s", error, exc_info=trace)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
