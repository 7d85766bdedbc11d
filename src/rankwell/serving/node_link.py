"""An aggregator's connection to one node: requests under way, and whether the node lives."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from rankwell.errors import RankwellError
from rankwell.serving import shard_messages as messages
from rankwell.serving.circuit_breaker import CircuitBreaker
from rankwell.serving.deadline import Deadline
from rankwell.serving.frames import FrameError, decoded, encoded, read_frame

_log = logging.getLogger("rankwell.serving")

T = TypeVar("T")

HEALTH_SECONDS = 0.25
"""How often a node is asked whether it lives."""

# How long a node may take to say so.
_ANSWERS_WITHIN = 2.0
# Preparing a large index reads the lengths of all its documents.
_PREPARES_WITHIN = 60.0
# A request with less time than this says nothing about a node that did not answer it.
_ENOUGH_SECONDS = 0.05
# What a node has not got yet, or does not do: not its failure.
_INNOCENT = frozenset({"commit", "census", "ranker", "overload", "deadline", "mistake"})


class NodeError(RankwellError):
    """A node gave no answer.

    kind : "connection", "timeout", "rubbish", or that of the `Failure` it sent
    """

    def __init__(self, kind: str, text: str, failure: messages.Failure | None = None) -> None:
        self.kind, self.failure = kind, failure
        super().__init__(text)


class RubbishError(RankwellError):
    """A reply that cannot be true."""


class NodeLink:
    """The connection to a node, which is opened again when it is lost.

    Attributes
    ----------
    facts : what the node said about its index; None before it was reached
    is_up : whether it is connected, and answered when it was last asked
    prepared : the versions and rankers (by digest) that it has got from this aggregator
    """

    def __init__(self, host: str, port: int, token: str = "", *, on_change: Callable[[], None] = lambda: None) -> None:
        self.host, self.port, self._token, self._on_change = host, port, token, on_change
        self.facts: messages.Facts | None = None
        self.is_up = False
        self.prepared: set[messages.Version | str] = set()
        self.breaker = CircuitBreaker()
        self.n_failures: dict[str, int] = {}
        self.last_error = "it was not reached yet"
        self._is_heard = False
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[messages.Received]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._decoder = msgspec.msgpack.Decoder(messages.Received)

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, and the last question on it was answered."""
        return self._writer is not None and self._is_heard

    @property
    def n_waiting(self) -> int:
        """How many requests are under way."""
        return len(self._waiting)

    def move(self, host: str, port: int) -> None:
        """The node has another address now."""
        if (host, port) != (self.host, self.port):
            self._lost(NodeError("connection", "the node moved"))
            self.host, self.port = host, port
            self.breaker.succeed()

    async def watch(self) -> None:
        """Connect, and ask again and again whether the node lives, until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(HEALTH_SECONDS)
        finally:
            writer = self._writer
            self._lost(NodeError("connection", "the aggregator is about to stop"))
            if writer is not None:
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def look(self) -> None:
        """Ask once whether the node lives; connect first if there is no connection."""
        was_up, before = self.is_up, self.facts
        try:
            if self._writer is None:
                await self._connect()
            facts = (await self._send(messages.Describe(), Deadline.after(_ANSWERS_WITHIN))).body
            if not isinstance(facts, messages.Facts):
                raise _unexpected(facts)
            self.facts, self.is_up, self._is_heard = facts, True, True
        except (NodeError, OSError, TimeoutError) as error:
            if isinstance(error, NodeError) and error.kind == "commit":
                # A spare that has no index yet.
                self.is_up, self._is_heard = False, True
            else:
                if self.is_up:
                    _log.warning("node %s does not answer: %s", self.name, error)
                self._lost(error if isinstance(error, NodeError) else NodeError("connection", str(error) or "timeout"))
        if self.is_up != was_up or self.facts != before:
            self._on_change()

    async def call(self, body: messages.Request, deadline: Deadline, check: Callable[[Any], T]) -> tuple[T, float]:
        """A reply as `check` makes it, and the seconds that the node worked on it.

        check : raises RubbishError for what cannot be a reply to the request
        """
        self.breaker.begin()
        given = deadline.remaining
        try:
            received = await self._send(body, deadline)
            if isinstance(received.body, messages.Failure):
                raise NodeError(received.body.kind, received.body.text, received.body)
            checked = check(received.body)
        except RubbishError as cause:
            error = NodeError("rubbish", str(cause))
            self._failed(error, given)
            self._lost(error)
            raise error from cause
        except NodeError as error:
            self._failed(error, given)
            raise
        except asyncio.CancelledError:
            self.breaker.withdraw()
            raise
        self.breaker.succeed()
        return checked, received.seconds

    async def order(self, body: messages.Request) -> None:
        """A request that takes its time, and whose reply says nothing."""
        received = await self._send(body, Deadline.after(_PREPARES_WITHIN))
        if not isinstance(received.body, messages.Done):
            raise _unexpected(received.body)

    async def _connect(self) -> None:
        async with asyncio.timeout(_ANSWERS_WITHIN):
            reader, self._writer = await asyncio.open_connection(self.host, self.port)
        self._reading = asyncio.create_task(self._read(reader, self._writer))
        hello = messages.Hello(messages.PROTOCOL, self._token)
        answer = (await self._send(hello, Deadline.after(_ANSWERS_WITHIN))).body
        if not isinstance(answer, messages.Done):
            raise _unexpected(answer)

    async def _send(self, body: messages.Request, deadline: Deadline) -> messages.Received:
        if self._writer is None:
            raise NodeError("connection", self.last_error)
        number, remaining = next(self._numbers), deadline.remaining
        if remaining <= 0:
            raise NodeError("timeout", "no time was left")
        future: asyncio.Future[messages.Received] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._writer.write(encoded(messages.Sent(number, remaining, body)))
            async with asyncio.timeout(remaining):
                return await future
        except TimeoutError as cause:
            raise NodeError("timeout", f"no answer within {1000 * remaining:.0f} ms") from cause
        finally:
            self._waiting.pop(number, None)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        error = NodeError("connection", "the connection was lost")
        try:
            while (body := await read_frame(reader)) is not None:
                received = decoded(body, self._decoder)
                future = self._waiting.get(received.number)
                # Nobody waits any more for a reply that came too late.
                if future is not None and not future.done():
                    future.set_result(received)
        except FrameError as cause:
            error = NodeError("rubbish", str(cause))
            self.breaker.fail(at_once=True)
        except OSError as cause:
            error = NodeError("connection", str(cause))
        if self._writer is writer:
            self._lost(error)
            self._on_change()

    def _failed(self, error: NodeError, given: float) -> None:
        """Count a failure of a request that had so many seconds."""
        self.n_failures[error.kind] = self.n_failures.get(error.kind, 0) + 1
        if error.kind in _INNOCENT or (error.kind == "timeout" and given < _ENOUGH_SECONDS):
            self.breaker.withdraw()
        else:
            self.breaker.fail(at_once=error.kind == "rubbish")

    def _lost(self, error: NodeError) -> None:
        """Close the connection; whoever waits is told why."""
        self.is_up, self._is_heard, self.last_error = False, False, str(error)
        self.prepared.clear()
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                # If its request timed out just now, nobody asks for the reason.
                future.exception()


def _unexpected(body: messages.Reply) -> NodeError:
    if isinstance(body, messages.Failure):
        return NodeError(body.kind, body.text, body)
    return NodeError("rubbish", f"it answered {type(body).__name__}")
