"""The HTTP application: its calls, and the page.

Starlette with msgspec: parameters and bodies are structs with limits, which also give the OpenAPI description.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rankwell.errors import DataError
from rankwell.serving.http import messages
from rankwell.serving.http.endpoint import RequestError, Work, make_endpoint
from rankwell.serving.http.openapi import Call, describe
from rankwell.serving.http.query_service import QueryService
from rankwell.serving.named_rankers import BM25_ALONE
from rankwell.serving.unknown_document import unknown_document

PAGE = Path(__file__).parents[1] / "page"

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def make_app(service: QueryService, *, token: str | None = None, page: Path = PAGE) -> Starlette:
    """The application over a service, which it closes at the end.

    Parameters
    ----------
    token : str, optional
        What calls that change something need in their header Authorization; without one, there are no such calls.
    page : the folder of the page's files
    """
    works = _searching(service) | _using(service) | (_changing(service) if token else {}) | _watching(service)
    description = msgspec.json.encode(describe(list(works)))
    routes = [
        Route(call.path, make_endpoint(call, work, service, token), methods=[call.method])
        for call, work in works.items()
    ]

    async def openapi(request: Request) -> Response:
        return Response(description, media_type="application/json")

    async def index_page(request: Request) -> Response:
        if not (page / "index.html").is_file():
            raise HTTPException(404, "there is no page here. /openapi.json describes the calls.")
        return FileResponse(page / "index.html", headers=_HEADERS)

    routes += [Route("/openapi.json", openapi), Route("/", index_page)]
    static = Mount("/page", StaticFiles(directory=page, check_dir=False))

    @asynccontextmanager
    async def closing(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    handlers: Any = {HTTPException: _no_such_call}
    return Starlette(routes=[*routes, static], exception_handlers=handlers, lifespan=closing)


def _searching(service: QueryService) -> dict[Call, Work]:
    errors = (422, 503)
    search = Call("GET", "/search", "The best documents for a query.", messages.SearchParameters)
    similar = Call("GET", "/similar", "The documents that are most like one.", messages.SimilarParameters)
    compare = Call("GET", "/compare", "A query's results by several rankers.", messages.CompareParameters)
    explain = Call("GET", "/explain", "What a document's score consists of.", messages.DocumentParameters)
    features = Call("GET", "/features", "The features of a document for a query.", messages.DocumentParameters)
    rank = Call("POST", "/rank", "The scores of given documents or features.", body=messages.RankBody)
    of_body = (400, 404, 413, 415)
    return {
        replace(search, answer=messages.SearchAnswer, errors=errors): lambda asked, body, _: service.search(asked),
        replace(similar, answer=messages.SearchAnswer, errors=(404, *errors)): (
            lambda asked, body, _: service.similar(asked)
        ),
        replace(compare, answer=messages.CompareAnswer, errors=errors): lambda asked, body, _: service.compare(asked),
        replace(explain, answer=messages.ExplainAnswer, errors=(404, *errors)): (
            lambda asked, body, _: service.explain(asked)
        ),
        replace(features, answer=messages.FeaturesAnswer, errors=(404, *errors)): (
            lambda asked, body, _: service.features(asked)
        ),
        replace(rank, answer=messages.ScoresAnswer, errors=of_body + errors): lambda asked, body, _: service.rank(body),
    }


def _using(service: QueryService) -> dict[Call, Work]:
    errors = (400, 404, 413, 415, 422, 507)

    async def click(asked: None, body: messages.ClickBody, request: Request) -> None:
        if not service.use.has_log:
            raise RequestError(404, "clicks are not logged here: start the server with --use-log PATH.")
        if not service.use.was_shown(body.impression, body.document):
            text = f"document {body.document!r} was not shown in the impression {body.impression!r}, or long ago."
            raise RequestError(404, text, "impression")
        service.use.click(body.impression, body.document)

    async def vote(asked: None, body: messages.VoteBody, request: Request) -> None:
        if service.use.votes is None:
            raise RequestError(404, "votes are not kept here: start the server with --judgments PATH.")
        if not await service.has_document(body.document):
            raise unknown_document(body.document)
        service.use.votes.add(body.query, body.document, body.vote)

    return {
        Call("POST", "/clicks", "Log a click on a result.", body=messages.ClickBody, errors=errors): click,
        Call("POST", "/votes", "Keep a vote for a result.", body=messages.VoteBody, errors=errors): vote,
    }


def _changing(service: QueryService) -> dict[Call, Work]:
    async def put(asked: None, body: messages.RankerBody, request: Request) -> None:
        try:
            await service.put_ranker(request.path_params["name"], body.path)
        except DataError as error:
            # Features that the index lacks: there is such a file, but it cannot be used.
            raise RequestError(422, str(error), "path") from error

    async def remove(asked: None, body: None, request: Request) -> None:
        name, files = request.path_params["name"], service.snapshot.files
        if name != BM25_ALONE and name not in files:
            known = ", ".join(files) or "none"
            raise RequestError(404, f"there is no ranker {name!r}; those that can be removed are: {known}.", "name")
        await service.remove_ranker(name)

    path = "/rankers/{name}"
    return {
        Call(
            "POST", path, "Add or replace a ranker.", body=messages.RankerBody,
            errors=(400, 413, 415, 422, 503), needs_token=True,
        ): put,
        Call("DELETE", path, "Remove a ranker.", errors=(404, 422, 503), needs_token=True): remove,
    }  # fmt: skip


def _watching(service: QueryService) -> dict[Call, Work]:
    async def rankers(asked: Any, body: None, request: Request) -> Any:
        return service.rankers()

    async def index(asked: Any, body: None, request: Request) -> Any:
        return service.index()

    async def alive(asked: Any, body: None, request: Request) -> Any:
        return messages.StateAnswer("ok")

    async def ready(asked: Any, body: None, request: Request) -> Any:
        if not service.is_ready():
            raise RequestError(503, "no shard answers now.", retry_after=1.0)
        return messages.StateAnswer("ok")

    async def metrics(asked: Any, body: None, request: Request) -> Any:
        return Response(service.metrics.text(), media_type=_METRICS_TYPE)

    return {
        Call("GET", "/rankers", "The rankers.", answer=list[messages.RankerAnswer]): rankers,
        Call("GET", "/index", "Facts about the index.", answer=messages.IndexAnswer): index,
        Call("GET", "/healthz", "Whether the process works.", answer=messages.StateAnswer): alive,
        Call("GET", "/readyz", "Whether queries are answered.", answer=messages.StateAnswer, errors=(503,)): ready,
        Call("GET", "/metrics", "Metrics for Prometheus.", media_type="text/plain"): metrics,
    }


def _no_such_call(request: Request, error: HTTPException) -> Response:
    text = error.detail
    if error.status_code == 404 and text == "Not Found":
        text = f"there is nothing at {request.url.path}. /openapi.json describes the calls."
    content = msgspec.json.encode(messages.ErrorAnswer(text))
    return Response(content, error.status_code, error.headers, media_type="application/json")
