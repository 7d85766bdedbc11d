"""Rankers that were written by hand, over HTTP: of one index, and of its shards."""

from math import log, log1p

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from starlette.testclient import TestClient
from tests.serving.in_process_shards import shards_client

from rankwell import IndexWriter, MadeRanker
from rankwell.serving.http.app import make_app
from rankwell.serving.http.service import SearchService
from rankwell.serving.node import Node

FORMULA = "0.1 * log1p(static.visits) + bm25.body"
WRITTEN = f"""
inputs:
  - linear: {{feature: bm25.title, scale: 2, offset: 1}}
  - log-linear: {{feature: static.visits, scale: 0.3}}
  - bucket: {{feature: static.age, edges: [1, 7, 30], values: [3, 2, 1, 0]}}
  - linear: {{feature: static.age, scale: -0.01}}
  - expression: {FORMULA}
  - constant: 3
"""
VISITS, AGES = [7, 0, 40, 3, 90, 12], [0, 5, 20, 100, 2, 7]


def write(folder, numbers):
    with IndexWriter(folder) as writer:
        for number in numbers:
            fields = {"title": f"oil report {number}", "body": "crude oil " * (1 + number % 3)}
            writer.add([{"id": f"d{number}", **fields, "visits": VISITS[number], "age": AGES[number]}])
        writer.commit()
    return folder


@pytest.fixture(scope="module", params=["one index", "shards"])
def client(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    (folder / "written.yaml").write_text(WRITTEN)
    MadeRanker.from_yaml(folder / "written.yaml").save(folder / "written.rank")
    rankers = {"written": folder / "written.rank"}
    if request.param == "one index":
        service = SearchService(Node(write(folder / "whole", range(6)), rankers), timeout=30.0)
        made = TestClient(make_app(service), raise_server_exceptions=False)
    else:
        made = shards_client([write(folder / "a", range(3)), write(folder / "b", range(3, 6))], rankers, n_candidates=6)
    with made as client:
        yield client


def explained(client, number):
    response = client.get("/explain", params={"q": "oil crude", "id": f"d{number}"})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("number", range(6))
def test_the_parts_of_a_written_ranker_sum_to_the_score_that_was_shown(client, number):
    results = client.get("/search", params={"q": "oil crude"}).json()["results"]
    shown = {result["id"]: result for result in results}[f"d{number}"]
    answer = explained(client, number)
    assert (answer["score"], answer["rank"]) == (shown["score"], shown["rank"])
    assert answer["bias"] + sum(part["contribution"] for part in answer["features"]) == pytest.approx(answer["score"])
    parts = {part["name"]: part for part in answer["features"]}
    assert parts["3"]["contribution"] == 3.0
    assert (parts["3"]["value"], parts["3"]["input"]) == (None, None)
    values = client.get("/features", params={"q": "oil crude", "id": f"d{number}"}).json()["features"]
    formula = 0.1 * log1p(VISITS[number]) + values["bm25.body"]
    assert parts[FORMULA]["contribution"] == pytest.approx(formula, rel=1e-6)
    assert (parts[FORMULA]["value"], parts[FORMULA]["input"]) == (None, None)
    assert parts["bm25.title"]["value"] == parts["bm25.title"]["input"] == values["bm25.title"]
    if VISITS[number]:
        assert parts["static.visits"]["contribution"] == pytest.approx(0.3 * log(VISITS[number] + 1))


@pytest.mark.parametrize("number", range(6))
def test_an_explanation_has_the_transforms_and_what_they_gave(client, number):
    visits, age = VISITS[number], AGES[number]
    parts = {part["name"]: part for part in explained(client, number)["features"]}
    transforms = {name: [tuple(one.values()) for one in part["transforms"]] for name, part in parts.items()}
    title = 2 * parts["bm25.title"]["value"] + 1
    assert transforms["bm25.title"] == [("linear", pytest.approx(title), pytest.approx(title))]
    assert transforms["3"] == [("expression", 3.0, 3.0)]
    ((kind, output, added),) = transforms[FORMULA]
    assert (kind, output) == ("expression", added)
    bucket = [3.0, 2.0, 1.0, 0.0][(age > 1) + (age > 7) + (age > 30)]
    old = pytest.approx(-0.01 * age)
    assert {one[0]: one[1:] for one in transforms["static.age"]} == {"linear": (old, old), "bucket": (bucket,) * 2}
    if visits:
        clicks = pytest.approx(0.3 * log(visits + 1))
        assert transforms["static.visits"] == [("log-linear", clicks, clicks)]
