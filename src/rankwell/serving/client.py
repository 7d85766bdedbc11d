"""A client of `rankwell serve`, with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from rankwell.errors import ParameterError, ServerError

# Parameters of the calls that are called otherwise here.
_PARAMETERS = {"q": "query", "id": "document", "facet": "facets"}


class Client:
    """Calls a server; answers are dictionaries as `/openapi.json` of the server describes them.

    Each thread has a connection of its own, which stays open between calls.

    Parameters
    ----------
    address : str
        As `rankwell serve` prints it.
    token : str, optional
        What `put_ranker` and `remove_ranker` need.
    timeout : float
        Seconds that the network may take; the server's own deadline is `timeout_ms` of `search`.

    Raises
    ------
    ServerError
        From every call that failed, with the server's message, its status, and when to try again.

    Examples
    --------
    >>> import rankwell
    >>> with rankwell.Client("http://127.0.0.1:8080") as client:  # where `rankwell serve` says that it is
    ...     [result["id"] for result in client.search("calling dentists")["results"]]
    ['n2']
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8080", *, token: str | None = None, timeout: float = 10.0
    ) -> None:
        self.address = address
        self._parts, self._timeout = _parts_of(address), timeout
        self._token = None if token is None else _checked_token(token)
        self._own = threading.local()
        self._opened: weakref.WeakSet[_OwnConnection] = weakref.WeakSet()
        self._opening = threading.Lock()

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        offset: int = 0,
        ranker: str | None = None,
        plain: bool = False,
        timeout_ms: float | None = None,
        filter: str | None = None,
        sort: str | Sequence[str] | None = None,
        facets: Iterable[str] | Mapping[str, Sequence[Any] | None] = (),
        stop_after: int | None = None,
        typos: bool = False,
        match: str = "any",
    ) -> dict[str, Any]:
        """The best documents for a query, or the first ones by fields.

        Parameters
        ----------
        k, offset : which documents of the ranking
        ranker : its name; by default the server's default
        plain : whether the query is words and nothing else
        timeout_ms : the time the answer may take
        filter : what documents must meet besides, as ``"year:>2000 kind:book"``
        sort : ``"year"``, ``"year:desc"`` or several, in place of a ranker
        facets : fields to count over all documents that match, or a mapping of fields to edges of ranges
        stop_after : look only at the first documents in the index's static order, of which about so many match
        typos : whether words that are written nearly as the query's are found too
        match : whether documents need ``"any"`` or ``"all"`` of the words
        """
        asked = {"q": query, "k": k, "offset": offset, "ranker": ranker, "timeout_ms": timeout_ms}
        ordered = sort if sort is None or isinstance(sort, str) else ",".join(sort)
        more = {"sort": ordered, "facet": _written_facets(facets), "stop_after": stop_after}
        return self._get("/search", **asked, **more, **_settings(plain, filter, typos, match))

    def similar(
        self,
        document: str,
        k: int = 10,
        *,
        offset: int = 0,
        filter: str | None = None,
        timeout_ms: float | None = None,
    ) -> dict[str, Any]:
        """The documents that are most like the one with that id."""
        return self._get("/similar", id=document, k=k, offset=offset, filter=filter, timeout_ms=timeout_ms)

    def explain(
        self,
        query: str,
        document: str,
        *,
        ranker: str | None = None,
        plain: bool = False,
        filter: str | None = None,
        typos: bool = False,
        match: str = "any",
    ) -> dict[str, Any]:
        """What the score of a document consists of; plain, filter, typos, match : as of the search that showed it"""
        settings = _settings(plain, filter, typos, match)
        return self._get("/explain", q=query, id=document, ranker=ranker, **settings)

    def compare(
        self,
        query: str,
        rankers: Sequence[str],
        k: int = 10,
        *,
        plain: bool = False,
        filter: str | None = None,
        typos: bool = False,
        match: str = "any",
    ) -> dict[str, Any]:
        """The results of several rankers, and which documents moved; other parameters are those of `search`."""
        settings = _settings(plain, filter, typos, match)
        return self._get("/compare", q=query, rankers=",".join(rankers), k=k, **settings)

    def features(
        self,
        query: str,
        document: str,
        *,
        ranker: str | None = None,
        plain: bool = False,
        filter: str | None = None,
        typos: bool = False,
        match: str = "any",
    ) -> dict[str, float | None]:
        """The features of a document, by name; other parameters are those of `search`."""
        settings = _settings(plain, filter, typos, match)
        return self._get("/features", q=query, id=document, ranker=ranker, **settings)["features"]

    def rank(
        self,
        query: str | None = None,
        documents: Sequence[str] | None = None,
        *,
        features: Sequence[Sequence[float | None]] | None = None,
        ranker: str | None = None,
        plain: bool = False,
        filter: str | None = None,
        typos: bool = False,
        match: str = "any",
    ) -> list[float]:
        """The scores of documents for a query, or of rows of features; other parameters are those of `search`."""
        body: dict[str, Any] = {"query": query, "documents": documents, "features": features, "ranker": ranker}
        body |= {"plain": plain, "filter": filter, "typos": typos, "match": match}
        return self._call("POST", "/rank", {name: value for name, value in body.items() if value is not None})["scores"]

    def rankers(self) -> list[dict[str, Any]]:
        return self._get("/rankers")

    def index(self) -> dict[str, Any]:
        return self._get("/index")

    def click(self, impression: str, document: str) -> None:
        """Log a click on a result of `search`, whose answer names the impression."""
        self._call("POST", "/clicks", {"impression": impression, "document": document})

    def vote(self, query: str, document: str, vote: int) -> None:
        """Vote for a result: 1 is good, -1 is bad, 0 takes the vote back."""
        self._call("POST", "/votes", {"query": query, "document": document, "vote": vote})

    def put_ranker(self, name: str, path: str) -> None:
        """Add or replace a ranker by a file on the server."""
        _check_unicode("name", name)
        self._call("POST", f"/rankers/{quote(name, safe='')}", {"path": path})

    def remove_ranker(self, name: str) -> None:
        _check_unicode("name", name)
        self._call("DELETE", f"/rankers/{quote(name, safe='')}")

    def close(self) -> None:
        """Close the connections of all threads; a call after that opens one again."""
        with self._opening:
            opened = list(self._opened)
        for own in opened:
            own.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, path: str, **parameters: Any) -> Any:
        given = {name: value for name, value in parameters.items() if value is not None}
        for name, value in given.items():
            _check_unicode(_PARAMETERS.get(name, name), value)
        return self._call("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        status, retry_after, answer = self._send(method, path, content, headers)
        if status == 204:
            return None
        try:
            decoded = json.loads(answer)
        except ValueError as cause:
            raise ServerError(f"{self.address} did not answer with JSON.", status=status) from cause
        if status != 200:
            message = decoded.get("error") if isinstance(decoded, dict) else None
            raise ServerError(message or f"{self.address} answered {status}.", status=status, retry_after=retry_after)
        return decoded

    def _send(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, float | None, bytes]:
        """Status, Retry-After and body. A connection that the server closed meanwhile is opened again once."""
        is_kept = getattr(self._own, "opened", None) is not None
        connection = self._connection()
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, content, headers)
            response = connection.getresponse()
            answer = response.read()
        except (http.client.HTTPException, OSError) as cause:
            # It is closed with what holds it.
            self._own.opened = None
            if is_kept and isinstance(cause, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError):
                return self._send(method, path, content, headers)
            raise ServerError(f"{self.address} does not answer: {cause}. Is the server running?") from cause
        after = response.headers.get("Retry-After", "")
        return response.status, float(after) if after.isdigit() else None, answer

    def _connection(self) -> http.client.HTTPConnection:
        opened: _OwnConnection | None = getattr(self._own, "opened", None)
        if opened is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            opened = _OwnConnection(kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout))
            self._own.opened = opened
            with self._opening:
                self._opened.add(opened)
        return opened.connection


class _OwnConnection:
    """The connection of one thread, which holds this alone: what it opened is closed when the thread ends."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


def _parts_of(address: str) -> SplitResult:
    """The parts of a server's address, checked."""
    wrong = ParameterError(f"must be like http://127.0.0.1:8080, got {address!r}.", parameter="address")
    try:
        parts = urlsplit(address)
        # What is wrong with a port or a host is not found before it is asked for.
        has_port = parts.port is None or parts.port > 0
        (parts.hostname or "").encode("idna")
    except ValueError as cause:
        raise wrong from cause
    # The path is sent as it is.
    is_plain = parts.path.isascii() and address.isprintable() and " " not in address
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port or not is_plain:
        raise wrong
    return parts


def _checked_token(token: str) -> str:
    if not token or not token.isascii() or not token.isprintable():
        raise ParameterError(
            "must be printable ASCII characters, and at least one, as a header can have them: got others.",
            parameter="token",
        )
    return token


def _check_unicode(name: str, value: Any) -> None:
    """Refuse texts that UTF-8 cannot have."""
    for text in [value] if isinstance(value, str) else value if isinstance(value, list) else []:
        if isinstance(text, str) and not _is_unicode(text):
            raise ParameterError(
                f"must be text that UTF-8 can have, got {text!r:.60}: half of a surrogate pair is no character.",
                parameter=name,
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _settings(plain: bool, filter: str | None, typos: bool, match: str) -> dict[str, str | None]:
    """What is asked for besides the text of a query; what is as by default is left out."""
    flags = {name: "true" if is_set else None for name, is_set in {"plain": plain, "typos": typos}.items()}
    return {**flags, "filter": filter, "match": None if match == "any" else match}


def _written_facets(facets: Iterable[str] | Mapping[str, Sequence[Any] | None]) -> list[str]:
    """Facets as the server reads them: FIELD, or FIELD=EDGE,EDGE,..."""
    if isinstance(facets, str):
        return [facets]
    if not isinstance(facets, Mapping):
        return list(facets)
    return [field if edges is None else f"{field}={','.join(map(str, edges))}" for field, edges in facets.items()]
