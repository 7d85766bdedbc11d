"""A server with fixed answers, some of which no server gives on demand: late, partial, hostile.

What the page does with them is tested, not how they are found; `test_served_page.py` has the server itself.
"""

from __future__ import annotations

import json
import mimetypes
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

import rankwell.serving

PAGE = Path(rankwell.serving.__file__).parent / "page"
# The policy that index.html says it works with.
POLICY = " ".join(re.findall(r"default-src.*?\n\n", (PAGE / "index.html").read_text(), re.DOTALL)[0].split())
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>&amp;\u202eabc"
NAMES = [
    "pathlib.Path.glob",
    "glob.glob",
    "glob.iglob",
    "os.walk",
    "os.scandir",
    "os.listdir",
    "fnmatch.filter",
    "pathlib.Path.rglob",
    "shutil.copytree",
    "pathlib.Path.iterdir",
    "glob.escape",
    "fnmatch.fnmatch",
]
N_MATCHES = 23
RANKERS = [
    {"name": "bm25", "kind": "bm25", "default": False},
    {"name": "boosted", "kind": "rankboost", "features": 68, "cascade": False, "default": True},
    {"name": "lists", "kind": "listnet", "features": 136, "cascade": True, "default": False},
]
INDEX = {
    "documents": 14_281,
    "segments": 3,
    "streams": ["title", "signature", "body"],
    "statics": ["mentions", "length"],
    "keywords": ["module", "kind"],
    "language": "english",
    "generation": 7,
    "bytes": 18_400_000,
    "votes": True,
}


def result(number: int, rank: int, text: str = "") -> dict[str, Any]:
    name = NAMES[number % len(NAMES)] if number < len(NAMES) else f"module_{number}.function"
    caption = [
        {"text": "Return a list of path names that ", "hit": False},
        {"text": "match", "hit": True},
        {"text": " the given pattern, which must be a string containing a ", "hit": False},
        {"text": "path", "hit": True},
        {"text": f" specification. {text}", "hit": False},
    ]
    return {
        "rank": rank,
        "id": f"doc-{number}",
        "score": 2.5 - 0.137 * rank,
        "first_score": 14.2 - 0.6 * number,
        "title": name,
        "url": "https://docs.example.org/" + name if number % 2 == 0 else None,
        "caption": caption,
        "fields": {"title": name, "body": "Return a possibly empty list of path names.\nSee also os.walk."},
    }


def hostile_result() -> dict[str, Any]:
    hostile = result(0, 1, HOSTILE + "x" * 400)
    fields = {HOSTILE: HOSTILE + "!"}
    return hostile | {"title": HOSTILE, "id": HOSTILE, "url": "javascript:document.title='owned'", "fields": fields}


def search(given: dict[str, str]) -> tuple[int, Any]:
    query, offset, k = given.get("q", ""), int(given.get("offset", 0)), int(given.get("k", 10))
    if query.count('"') % 2 and given.get("plain") != "true":
        return 400, {
            "error": "the quotation mark at character 6 is not closed: close it, or leave it out.",
            "parameter": "q",
        }
    if given.get("ranker", "boosted") not in [each["name"] for each in RANKERS]:
        return 404, {
            "error": f"there is no ranker {given['ranker']!r}: the server has bm25, boosted, lists.",
            "parameter": "ranker",
        }
    answer: dict[str, Any] = {
        "query": query,
        "ranker": None if given.get("ranker") == "bm25" else given.get("ranker", "boosted"),
        "impression": "impression-1",
        "n_matches": N_MATCHES,
        "n_candidates": 1000,
        "n_ranked": 100,
        "took_ms": 12.4,
        "stages_ms": {"parse": 0.4, "select": 3.1, "rank": 6.9, "captions": 1.6},
        "cached": False,
        "coverage": {"shards": 1, "answered": 1},
        "degraded": None,
        "results": [result(number, number + 1) for number in range(offset, min(offset + k, N_MATCHES))],
    }
    if given.get("facet"):
        kinds = [("function", 12), ("class", 7), ('a "quoted" \\ kind', 3), (HOSTILE, 1)]
        values = [{"value": value, "n_docs": n_docs} for value, n_docs in kinds]
        answer["facets"] = {"module": {"values": [], "n_values": 0}, "kind": {"values": values, "n_values": 9}}
    if "filter" in given:
        answer |= {"n_matches": 12, "query": given["filter"]}
    if query == "hostile":
        answer |= {"results": [hostile_result(), result(1, 2)], "n_matches": 2}
    elif query == "nothing":
        answer |= {"results": [], "n_matches": 0, "n_ranked": 0}
    elif query == "late":
        reason = "The deadline of 500 ms passed after 40 of 100 documents were ranked."
        answer |= {"coverage": {"shards": 4, "answered": 3}, "degraded": {"reason": "deadline", "text": reason}}
    elif query == "known":
        answer |= {"cached": True, "stages_ms": {"cache": 0.21}, "took_ms": 0.25}
    return 200, answer


def compare(given: dict[str, str]) -> tuple[int, Any]:
    first, second = given["rankers"].split(",")
    orders = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [2, 0, 1, 3, 10, 4, 5, 11, 9, 6]]
    rankings = [
        {"ranker": name, "results": [result(number, rank) | {"fields": {}} for rank, number in enumerate(order, 1)]}
        for name, order in zip((first, second), orders, strict=True)
    ]
    places = [{number: place for place, number in enumerate(order, 1)} for order in orders]
    moved = {
        f"doc-{number}": {"from": places[0].get(number), "to": places[1].get(number)}
        for number in {*orders[0], *orders[1]}
        if places[0].get(number) != places[1].get(number)
    }
    answer = {"rankings": rankings, "moved": moved, "coverage": {"shards": 1, "answered": 1}, "degraded": None}
    if given["q"] == "late":
        text = "1 of 4 shards did not answer: 127.0.0.1:7073."
        answer |= {"coverage": {"shards": 4, "answered": 3}, "degraded": {"reason": "shards", "text": text}}
    return 200, answer


def explain(given: dict[str, str]) -> tuple[int, Any]:
    if given.get("ranker") == "bm25":
        return 400, {"error": "bm25 reads no features: choose a learned ranker.", "parameter": "ranker"}
    names = ["bm25_title", "tf_sum_body", "idf_signature", "stream_length_title", "mentions", "span_min_body"]
    features = [
        {"name": f"{names[i % 6]}_{i}", "value": 10.5 / (i + 1), "contribution": (-1) ** (i % 3) * 0.9**i}
        for i in range(30)
    ]
    features[1]["input"] = 0.731
    features[2]["transforms"] = [
        {"kind": "linear", "output": 3.5, "contribution": 0.01},
        {"kind": "bucket", "output": 2.0, "contribution": 0.8},
    ]
    formula = {"kind": "expression", "output": 1.25, "contribution": features[3]["contribution"]}
    features[3] |= {"name": "log1p(mentions)", "value": None, "input": None, "transforms": [formula]}
    features += [{"name": f"silent_{i}", "value": 0.0, "contribution": 0.0} for i in range(38)]
    score = 0.25 + sum(feature["contribution"] for feature in features)
    ranking_pass = {"lists": "first" if given["id"] == "doc-9" else "second"}.get(given.get("ranker", ""))
    answer = {"id": given["id"], "score": score, "bias": 0.25, "features": features, "ranking_pass": ranking_pass}
    if ranking_pass == "first":
        answer |= {"score": score - 20.0, "offset": -20.0}
    return 200, answer


ANSWERS = {
    "/search": search,
    "/compare": compare,
    "/explain": explain,
    "/rankers": lambda given: (200, RANKERS),
    "/index": lambda given: (200, INDEX),
}


class FakeServer(ThreadingHTTPServer):
    """Remembers what was posted, as (path, body), and what was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[tuple[str, Any]] = []
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}/"
        self._has_posted = threading.Condition()

    def keep_posted(self, path: str, body: Any) -> None:
        with self._has_posted:
            self.posted.append((path, body))
            self._has_posted.notify_all()

    def wait_for_posts(self, n_posts: int) -> None:
        """Wait until so many were posted: what a page sends when it is left may come after the next one is shown."""
        with self._has_posted:
            assert self._has_posted.wait_for(lambda: len(self.posted) >= n_posts, timeout=20), self.posted


class Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.path in ANSWERS:
            self.server.asked.append(f"{parts.path}?{unquote_plus(parts.query)}")
            status, answer = ANSWERS[parts.path](given)
            self._send(status, json.dumps(answer).encode(), "application/json")
            return
        file = PAGE / ("index.html" if parts.path == "/" else parts.path.removeprefix("/page/"))
        if file.is_file():
            self._send(200, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain")
        else:
            self._send(
                404,
                json.dumps({"error": f"there is nothing at {parts.path}", "parameter": None}).encode(),
                "application/json",
            )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keep_posted(self.path, json.loads(body))
        self._send(204, b"", "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: pytest shows what matters."""


@contextmanager
def fake_server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
