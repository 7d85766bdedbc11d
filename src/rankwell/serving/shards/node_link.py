"""An aggregator's connection to one node: requests under way, and whether the node lives."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from rankwell.errors import RankwellError
from rankwell.serving.deadline import Deadline
from rankwell.serving.shards import messages
from rankwell.serving.shards.circuit_breaker import CLOSED, CircuitBreaker
from rankwell.serving.shards.frames import FrameError, FrameReceiver, decoded, encoded
from rankwell.serving.shards.replies import RubbishError, described

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


# What a node keeps only as long as there is no more of it than it has room for.
_GIVEN_UP = frozenset({"census", "ranker"})


class NodeError(RankwellError):
    """A node gave no answer.

    kind : "connection", "timeout", "rubbish", or that of the `Failure` it sent
    """

    def __init__(self, kind: str, text: str, failure: messages.Failure | None = None) -> None:
        self.kind, self.failure = kind, failure
        super().__init__(text)


class NodeLink:
    """The connection to a node, which is opened again when it is lost.

    Attributes
    ----------
    facts : what the node said about its index; None before it was reached
    is_up : whether it is connected, and answered when it was last asked
    prepared : the versions and rankers (by digest) that it has got from this aggregator, and still has
    pace : open for a while after another replica was quicker although it was asked later: others are asked first
    refused : why it did not take the versions and rankers that it was given last
    on_change : called when it has another state than before, or lacks what it was prepared with
    """

    def __init__(self, host: str, port: int, token: str = "") -> None:
        self.host, self.port, self._token = host, port, token
        self.on_change: Callable[[], None] = lambda: None
        self.facts: messages.Facts | None = None
        self.is_up = False
        self.prepared: set[messages.Version | str] = set()
        self.refused: dict[messages.Version | str, NodeError] = {}
        self.breaker = CircuitBreaker()
        self.pace = CircuitBreaker(most_failures=1)
        self.n_failures: dict[str, int] = {}
        self.last_error = "it was not reached yet"
        self._is_heard = False
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[messages.Received]] = {}
        self._transport: asyncio.WriteTransport | None = None
        self._receiver: FrameReceiver | None = None
        self._decoder = msgspec.msgpack.Decoder(messages.Received)

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, and the last question on it was answered."""
        return self._transport is not None and self._is_heard

    @property
    def n_waiting(self) -> int:
        """How many requests are under way."""
        return len(self._waiting)

    def move(self, host: str, port: int) -> None:
        """The node has another address now."""
        if (host, port) != (self.host, self.port):
            self.lost(NodeError("connection", "the node moved"))
            self.host, self.port = host, port
            self.breaker.succeed()

    async def watch(self) -> None:
        """Connect, and ask again and again whether the node lives, until cancelled."""
        failed = ""
        try:
            while True:
                try:
                    await self.look()
                    failed = ""
                except Exception as error:
                    # Whatever goes wrong, the node is looked at again; the same failure is not logged every time.
                    if repr(error) != failed:
                        _log.error("node %s cannot be looked at", self.name, exc_info=error)
                    failed = repr(error)
                    self.lost(NodeError("failed", failed))
                await asyncio.sleep(HEALTH_SECONDS)
        finally:
            self.lost(NodeError("connection", "the aggregator is about to stop"))

    async def look(self) -> None:
        """Ask once whether the node lives; connect first if there is no connection."""
        was_up, before = self.is_up, self.facts
        try:
            if self._transport is None:
                await self._connect()
            told = (await self._send(messages.Describe(), Deadline.after(_ANSWERS_WITHIN))).body
            self.facts, self.is_up, self._is_heard = self._checked(told), True, True
        except (NodeError, OSError, TimeoutError) as error:
            if isinstance(error, NodeError) and error.kind == "commit":
                # A spare that has no index yet.
                self.is_up, self._is_heard = False, True
            else:
                if self.is_up:
                    _log.warning("node %s does not answer: %s", self.name, error)
                self.lost(error if isinstance(error, NodeError) else NodeError("connection", str(error) or "timeout"))
        if self.is_up != was_up or _without_load(self.facts) != _without_load(before):
            self.on_change()

    def _checked(self, told: messages.Reply) -> messages.Facts:
        """What the node told about its index. Raises NodeError for what cannot be true."""
        if not isinstance(told, messages.Facts):
            raise _unexpected(told)
        # It is asked four times a second, and nearly always tells the same.
        if _without_load(told) == _without_load(self.facts):
            return told
        try:
            return described(told)
        except RubbishError as cause:
            raise NodeError("rubbish", str(cause)) from cause

    def begin(self, body: messages.Request, deadline: Deadline, check: Callable[[Any], T]) -> NodeCall[T]:
        """Send a request; its reply is to be waited for. Raises NodeError if it cannot be sent.

        check : makes what is wanted of a reply; raises RubbishError for what cannot be a reply to the request
        """
        given = deadline.remaining
        number, future = self._write(body, given)
        self.breaker.begin()
        return NodeCall(self, body, number, future, given, check)

    async def call(self, body: messages.Request, deadline: Deadline, check: Callable[[Any], T]) -> tuple[T, float]:
        """A reply as `check` makes it, and the seconds that the node worked on it. Raises NodeError."""
        call = self.begin(body, deadline, check)
        try:
            await asyncio.wait((call.future,), timeout=call.given)
        except asyncio.CancelledError:
            call.withdraw()
            raise
        return call.conclude()

    async def give(self, body: messages.Prepare | messages.PutRanker, name: messages.Version | str) -> NodeError | None:
        """Prepare the node with what requests call by this name; why it did not take it, None if it did."""
        try:
            await self.order(body)
        except NodeError as error:
            known = self.refused.get(name)
            # A replica that has not got the commit yet is asked again soon. The same refusal is not logged every time.
            if error.kind != "commit" and str(known) != str(error):
                what = "a ranker" if isinstance(body, messages.PutRanker) else "a commit"
                _log.warning("node %s did not take %s: %s", self.name, what, error)
            # Of a connection that is lost nothing is remembered.
            if self._transport is not None:
                self.refused[name] = error
            return error
        self.prepared.add(name)
        self.refused.pop(name, None)
        return None

    async def order(self, body: messages.Request) -> None:
        """A request that takes its time, and whose reply says nothing."""
        received = await self._send(body, Deadline.after(_PREPARES_WITHIN))
        if not isinstance(received.body, messages.Done):
            raise _unexpected(received.body)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        receiver = FrameReceiver(self._received, lambda error: self._ended(receiver, error))
        async with asyncio.timeout(_ANSWERS_WITHIN):
            self._transport, self._receiver = await loop.create_connection(lambda: receiver, self.host, self.port)
        hello = messages.Hello(messages.PROTOCOL, self._token)
        answer = (await self._send(hello, Deadline.after(_ANSWERS_WITHIN))).body
        if not isinstance(answer, messages.Done):
            raise _unexpected(answer)

    async def _send(self, body: messages.Request, deadline: Deadline) -> messages.Received:
        """The reply to a request that says nothing about the node's health to its breaker."""
        remaining = deadline.remaining
        number, future = self._write(body, remaining)
        try:
            async with asyncio.timeout(remaining):
                return await future
        except TimeoutError as cause:
            raise _too_late(remaining) from cause
        finally:
            self._waiting.pop(number, None)

    def _write(self, body: messages.Request, seconds: float) -> tuple[int, asyncio.Future[messages.Received]]:
        if self._transport is None:
            raise NodeError("connection", self.last_error)
        if seconds <= 0:
            raise NodeError("timeout", "no time was left")
        number = next(self._numbers)
        future: asyncio.Future[messages.Received] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._transport.write(encoded(messages.Sent(number, seconds, body)))
        return number, future

    def _received(self, body: bytes) -> None:
        received = decoded(body, self._decoder)
        future = self._waiting.get(received.number)
        # Nobody waits any more for a reply that came too late.
        if future is not None and not future.done():
            future.set_result(received)

    def _ended(self, receiver: FrameReceiver, error: Exception | None) -> None:
        """A connection has ended; it may be one that was given up before."""
        if receiver is not self._receiver or self._transport is None:
            return
        if isinstance(error, FrameError):
            rubbish = NodeError("rubbish", str(error))
            self._blame(rubbish)
            self.lost(rubbish)
        else:
            self.lost(NodeError("connection", str(error or "the connection was closed")))
        self.on_change()

    def failed(self, error: NodeError, given: float) -> None:
        """Count a failure of a request that had so many seconds."""
        self.n_failures[error.kind] = self.n_failures.get(error.kind, 0) + 1
        if error.kind in _INNOCENT or (error.kind == "timeout" and given < _ENOUGH_SECONDS):
            self.breaker.withdraw()
        else:
            self._blame(error)

    def _blame(self, error: NodeError) -> None:
        """Count a failure that is the node's own; from when on it is left alone is logged, with the last reason."""
        was_closed = self.breaker.state == CLOSED
        self.breaker.fail(at_once=error.kind == "rubbish")
        if was_closed and self.breaker.state != CLOSED:
            _log.warning("node %s is left alone for a while: %s", self.name, error)

    def lacks(self, kind: str, body: messages.Request) -> None:
        """The node has given up the ranker or the census that a request names: it is to get it again."""
        self.prepared.discard(getattr(body, "ranker" if kind == "ranker" else "version"))
        self.on_change()

    def forget(self, number: int) -> None:
        """A reply with this number is not waited for any more."""
        self._waiting.pop(number, None)

    def lost(self, error: NodeError) -> None:
        """Close the connection; whoever waits is told why."""
        self.is_up, self._is_heard, self.last_error = False, False, str(error)
        self.prepared.clear()
        self.refused.clear()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                # If its request timed out just now, nobody asks for the reason.
                future.exception()


@dataclass(frozen=True, eq=False)
class NodeCall(Generic[T]):
    """A request that was sent with `given` seconds; `conclude` when `future` is done, or when they are over."""

    link: NodeLink
    body: messages.Request
    number: int
    future: asyncio.Future[messages.Received]
    given: float
    check: Callable[[Any], T]

    def conclude(self) -> tuple[T, float]:
        """The reply as `check` makes it, and the seconds that the node worked on it. Raises NodeError."""
        self.link.forget(self.number)
        try:
            if not self.future.done():
                raise _too_late(self.given)
            received = self.future.result()
            if isinstance(received.body, messages.Failure):
                raise NodeError(received.body.kind, received.body.text, received.body)
            checked = self.check(received.body)
        except RubbishError as cause:
            error = NodeError("rubbish", str(cause))
            self.link.failed(error, self.given)
            self.link.lost(error)
            raise error from cause
        except NodeError as error:
            self.link.failed(error, self.given)
            if error.kind in _GIVEN_UP:
                self.link.lacks(error.kind, self.body)
            raise
        self.link.breaker.succeed()
        self.link.pace.succeed()
        return checked, received.seconds

    def withdraw(self) -> None:
        """Nobody waits for the reply any more."""
        self.link.forget(self.number)
        self.link.breaker.withdraw()


def _too_late(seconds: float) -> NodeError:
    return NodeError("timeout", f"no answer within {1000 * seconds:.0f} ms")


def _unexpected(body: messages.Reply) -> NodeError:
    if isinstance(body, messages.Failure):
        return NodeError(body.kind, body.text, body)
    return NodeError("rubbish", f"it answered {type(body).__name__}")


def _without_load(facts: messages.Facts | None) -> messages.Facts | None:
    """What a change of is a change of what is served."""
    return None if facts is None else msgspec.structs.replace(facts, load=messages.Load())
