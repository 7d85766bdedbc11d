"""What workers say to each other: whole arrays over TCP, each to each, in step.

Every worker calls the same methods in the same order. A message is a header of 16 bytes, which says the number of the
message between the two workers and how many bytes follow, and the array's bytes: nothing is unpickled, and a message
that is not the next one is an error. A connection is accepted from who can prove to know the run's secret.

Small arrays go from each worker to each. For large sums every worker adds up its own slice of all arrays, and then
sends the result to all (reduce-scatter and all-gather): a worker sends at most twice the array, whatever their number.
"""

from __future__ import annotations

import hmac
import secrets
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence

import numpy as np

HEADER = struct.Struct("<qq")
_INTRODUCTION = struct.Struct("<qq")
_NONCE = 32
# Sums of arrays up to this many bytes go directly from each to each: a second message would take longer.
DIRECT_BYTES = 2**15
_CONNECT_SECONDS = 60.0


class CompanionLostError(ConnectionError):
    """Another worker is gone: its number is `worker`."""

    def __init__(self, worker: int) -> None:
        super().__init__(f"worker {worker} is gone.")
        self.worker = worker


class Exchange:
    """One worker's connections to the others.

    Parameters
    ----------
    number, n_workers : int
    secret : bytes
        Known to the workers of this run only.
    host : str
        The address to listen at.

    Attributes
    ----------
    address : (str, int)
        Where this worker listens.
    bytes_sent : int
    seconds_waited : float64 array (n_workers,)
        How long this worker has waited for each other one.
    """

    def __init__(self, number: int, n_workers: int, secret: bytes, host: str) -> None:
        self.number, self.n_workers = number, n_workers
        self._secret = secret
        self._listener = socket.create_server((host, 0), backlog=n_workers)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._sockets: dict[int, socket.socket] = {}
        # Messages sent to each worker and received from each, since they were connected.
        self._n_sent, self._n_received = [0] * n_workers, [0] * n_workers
        self.bytes_sent = 0
        self.seconds_waited = np.zeros(n_workers)

    def connect(self, addresses: Sequence[tuple[str, int]], generation: int) -> None:
        """Connect to all workers. `generation` grows with every attempt, so that an old connection is not taken."""
        self.close()
        self._n_sent, self._n_received = [0] * self.n_workers, [0] * self.n_workers
        end = time.monotonic() + _CONNECT_SECONDS
        for other in range(self.number):
            self._sockets[other] = self._call(addresses[other], generation, end)
        while len(self._sockets) < self.n_workers - 1:
            self._listener.settimeout(max(0.01, end - time.monotonic()))
            self._answer(generation)
        for connection in self._sockets.values():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)

    def close(self) -> None:
        """Close the connections; who waits for this worker notices."""
        for connection in self._sockets.values():
            connection.close()
        self._sockets = {}

    def end(self) -> None:
        """Close the connections, and do not listen any more."""
        self.close()
        self._listener.close()

    def _call(self, address: tuple[str, int], generation: int, end: float) -> socket.socket:
        connection = socket.create_connection((address[0], address[1]), timeout=max(0.01, end - time.monotonic()))
        introduction = _INTRODUCTION.pack(generation, self.number)
        try:
            connection.sendall(introduction + self._proof(_receive(connection, _NONCE), introduction))
        except OSError:
            connection.close()
            raise
        return connection

    def _answer(self, generation: int) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(self._listener.gettimeout())
        try:
            nonce = secrets.token_bytes(_NONCE)
            connection.sendall(nonce)
            introduction = _receive(connection, _INTRODUCTION.size)
            proof = _receive(connection, len(self._proof(b"", b"")))
        except OSError:
            connection.close()
            return
        theirs, other = _INTRODUCTION.unpack(introduction)
        if hmac.compare_digest(proof, self._proof(nonce, introduction)) and theirs == generation:
            self._sockets[other] = connection
        else:
            connection.close()

    def _proof(self, nonce: bytes, introduction: bytes) -> bytes:
        return hmac.digest(self._secret, nonce + introduction, "sha256")

    def gather(self, values: np.ndarray) -> list[np.ndarray]:
        """Every worker's array, in the order of the workers: of this one's type, flat except for this one's own."""
        return self._gather(values, 0)

    def _gather(self, values: np.ndarray, expected: int) -> list[np.ndarray]:
        """See `gather`; `expected` bytes or more of each other worker."""
        sent = _bytes_of(values)
        received = self._swap(dict.fromkeys(self._sockets, sent), self._sockets, expected)
        return [
            values if other == self.number else received[other].view(values.dtype) for other in range(self.n_workers)
        ]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum of the workers' arrays of equal shape, added in the order of the workers."""
        if self.n_workers == 1:
            return values
        if values.nbytes <= DIRECT_BYTES:
            return _added(self._gather(values, values.nbytes)).reshape(values.shape)
        flat = values.reshape(-1)
        ends = [len(flat) * place // self.n_workers for place in range(self.n_workers + 1)]
        slices = {other: flat[ends[other] : ends[other + 1]] for other in range(self.n_workers)}
        own_bytes = slices[self.number].nbytes
        received = self._swap({other: _bytes_of(slices[other]) for other in self._sockets}, self._sockets, own_bytes)
        pieces = [
            slices[other] if other == self.number else received[other].view(values.dtype)
            for other in range(self.n_workers)
        ]
        shortest = len(flat) // self.n_workers * values.itemsize
        return np.concatenate(self._gather(_added(pieces), shortest)).reshape(values.shape)

    def largest(self, value: int) -> int:
        """The largest of the workers' integers."""
        own = np.array([value], dtype=np.int64)
        return max(int(found[0]) for found in self._gather(own, own.nbytes))

    def hand_on(self, values: np.ndarray) -> np.ndarray | None:
        """What the worker before this one gives to `pass_on`, of the type of `values`; None for the first."""
        if self.number == 0:
            return None
        return self._swap({}, [self.number - 1], values.nbytes)[self.number - 1].view(values.dtype)

    def pass_on(self, values: np.ndarray) -> None:
        """Send an array to the next worker, if there is one."""
        if self.number + 1 < self.n_workers:
            self._swap({self.number + 1: _bytes_of(values)}, ())

    def announce(self, values: np.ndarray, sender: int) -> np.ndarray:
        """The array of one worker, for all."""
        if sender == self.number:
            sent = _bytes_of(values)
            self._swap(dict.fromkeys(self._sockets, sent), ())
            return values
        return self._swap({}, [sender], values.nbytes)[sender].view(values.dtype)

    def trade(self, values: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Give each other worker an array of its own; returns what they gave to this one, as bytes."""
        return self._swap({other: _bytes_of(array) for other, array in values.items()}, self._sockets)

    def _swap(
        self, outgoing: Mapping[int, memoryview], senders: Sequence[int] | Mapping[int, object], expected: int = 0
    ) -> dict[int, np.ndarray]:
        """Send one message to some workers and receive one, of `expected` bytes or more, from some, whichever is
        possible first."""
        unsent = {}
        for other, content in outgoing.items():
            unsent[other] = [memoryview(HEADER.pack(self._n_sent[other], len(content))), content]
            self._n_sent[other] += 1
        arriving = {other: _Arrival(self._n_received[other], expected) for other in senders}
        for other in senders:
            self._n_received[other] += 1
        waiting = dict(arriving)
        for other in list(unsent):
            self._send(other, unsent)
        for other in list(waiting):
            self._receive(other, waiting)
        while unsent or waiting:
            began = time.perf_counter()
            ready, writable, _ = select.select(
                [self._socket(other) for other in waiting], [self._socket(other) for other in unsent], []
            )
            seconds = time.perf_counter() - began
            for other in waiting:
                self.seconds_waited[other] += seconds / len(waiting)
            for other in [other for other in unsent if self._sockets[other] in writable]:
                self._send(other, unsent)
            for other in [other for other in waiting if self._sockets[other] in ready]:
                self._receive(other, waiting)
        return {other: arrival.content for other, arrival in arriving.items()}

    def _socket(self, other: int) -> socket.socket:
        if other not in self._sockets:
            raise CompanionLostError(other)
        return self._sockets[other]

    def _send(self, other: int, unsent: dict[int, list[memoryview]]) -> None:
        try:
            n_sent = self._socket(other).sendmsg(unsent[other])
        except BlockingIOError:
            return
        except OSError as cause:
            self._lose(other, cause)
        self.bytes_sent += n_sent
        left = []
        for view in unsent[other]:
            skipped = min(n_sent, len(view))
            n_sent -= skipped
            if skipped < len(view):
                left.append(view[skipped:])
        if left:
            unsent[other] = left
        else:
            del unsent[other]

    def _receive(self, other: int, waiting: dict[int, _Arrival]) -> None:
        try:
            done = waiting[other].receive(self._socket(other))
        except BlockingIOError:
            return
        except (OSError, ValueError) as cause:
            self._lose(other, cause)
        if done:
            del waiting[other]

    def _lose(self, other: int, cause: Exception) -> None:
        self.close()
        raise CompanionLostError(other) from cause


class _Arrival:
    """A message on its way in, of `expected` bytes or more: so many are received in one piece with the header.

    Not more, since the next message may already be there.
    """

    def __init__(self, number: int, expected: int) -> None:
        self._number = number
        self._buffer = np.empty(HEADER.size + expected, dtype=np.uint8)
        self._filled = 0

    @property
    def content(self) -> np.ndarray:
        # The header's 16 bytes keep what follows aligned.
        return self._buffer[HEADER.size :]

    def receive(self, connection: socket.socket) -> bool:
        """Take what has arrived; whether the message is complete."""
        while self._filled < len(self._buffer):
            n_bytes = connection.recv_into(self._buffer.data[self._filled :])
            if n_bytes == 0:
                raise ConnectionError("the connection was closed.")
            is_begun = self._filled >= HEADER.size
            self._filled += n_bytes
            if not is_begun and self._filled >= HEADER.size:
                self._resize(*HEADER.unpack_from(self._buffer.data))
        return True

    def _resize(self, number: int, size: int) -> None:
        if number != self._number or not self._filled - HEADER.size <= size:
            raise ValueError(f"message {number} of {size} bytes came where {self._number} was expected.")
        if size != len(self._buffer) - HEADER.size:
            buffer = np.empty(HEADER.size + size, dtype=np.uint8)
            buffer[: self._filled] = self._buffer[: self._filled]
            self._buffer = buffer


def _bytes_of(values: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _added(arrays: Sequence[np.ndarray]) -> np.ndarray:
    total = arrays[0].reshape(-1).copy()
    for array in arrays[1:]:
        total += array.reshape(-1)
    return total


def _receive(connection: socket.socket, n_bytes: int) -> bytes:
    content = b""
    while len(content) < n_bytes:
        piece = connection.recv(n_bytes - len(content))
        if not piece:
            raise ConnectionError("the connection was closed.")
        content += piece
    return content
