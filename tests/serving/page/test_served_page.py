"""The search page and the server together: `rankwell serve` over a small index, and a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.server_process import said_first

from rankwell import Index, IndexWriter, LeastSquares, RankBoost
from rankwell.features.feature_set import make_feature_set
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features

pytest.importorskip("rankwell.serving.http.app", reason="the server needs the extra 'serve'")
pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> zebra"
WORDS = ("open", "read", "write", "close", "copy", "zip", "archive", "folder", "file", "path")
QUERIES = tuple(QueryText(str(number), f"{WORDS[number]} {WORDS[number + 1]}") for number in range(9))


def make_index(folder: Path) -> None:
    """80 documents of few words and one with markup, and two rankers trained on arbitrary judgments."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=12)) for _ in range(80)]
    documents = [{"id": f"d{number}", "title": text[:20], "body": text} for number, text in enumerate(texts)]
    with IndexWriter(folder / "index") as writer:
        writer.add([*documents, {"id": "hostile", "title": HOSTILE, "body": HOSTILE}])
        writer.commit()
    qrels = {query.id: {f"d{number}": float(rng.integers(0, 3)) for number in range(80)} for query in QUERIES}
    features = make_feature_set("full", ("title", "body"))
    train = judged_features(Index.open(folder / "index"), QUERIES, qrels, features, n_candidates=50).dataset
    RankBoost(n_rounds=5).fit(train).save(folder / "boosted.rank")
    LeastSquares().fit(train).save(folder / "linear.rank")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served_page")
    make_index(folder)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the server is."""
    options = ["--ranker", folder / "boosted.rank", "--ranker", folder / "linear.rank", "--port", "0"]
    options += ["--judgments", folder / "votes.qrels", "--use-log", folder / "use.log", "--timeout", "20000"]
    command = [sys.executable, "-m", "rankwell", "serve", str(folder / "index"), *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield said_first(r"http://\S+", process.stderr)[0] + "/"
        finally:
            process.terminate()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda message: failures.append(message.text) if "Policy" in message.text else None)
    page.goto(address)
    page.wait_for_selector("#ranker option", state="attached")
    yield page
    context.close()
    assert failures == []


def search_for(page: Any, query: str) -> None:
    page.fill("#query", query)
    page.press("#query", "Enter")
    page.wait_for_selector(".timing", timeout=30_000)


def test_search(page):
    search_for(page, "zip archive")
    assert page.locator(".result").count() == 10
    assert {word.lower() for word in page.locator("mark").all_inner_texts()} == {"zip", "archive"}
    assert re.fullmatch(r"\d+ matches, 1 to 10 shown", page.inner_text("#summary"))
    stages = [text.split()[0] for text in page.locator(".legend li").all_inner_texts()]
    assert {"parse", "select", "rank", "captions"} <= set(stages)
    page.click("text=Next →")
    page.wait_for_selector("#summary:has-text('11 to 20')")


def test_two_rankers_side_by_side(page):
    search_for(page, "zip archive")
    page.select_option("#against", "linear")
    page.wait_for_selector(".rankings", timeout=30_000)
    documents = "all => all.map(each => each.dataset.document)"
    first = page.locator(".ranking:nth-child(1) .result").evaluate_all(documents)
    second = page.locator(".ranking:nth-child(2) .result").evaluate_all(documents)
    signs = page.locator(".ranking:nth-child(2) .badge > [aria-hidden]").all_inner_texts()
    assert first != second
    for place, (document, sign) in enumerate(zip(second, signs, strict=True)):
        if document not in first:
            assert sign == "new" or sign.startswith("▲")
        else:
            steps = first.index(document) - place
            assert sign == ("=" if steps == 0 else f"▲ {steps}" if steps > 0 else f"▼ {-steps}")


def test_why_this_score(page):
    search_for(page, "zip archive")
    score = re.search(r"score (\S+)", page.inner_text(".result:first-child .scores"))[1]
    page.click(".result:first-child .why")
    page.wait_for_selector(".feature", timeout=30_000)
    assert page.inner_text(".sum strong") == f"Score {score}"


def test_an_error(page):
    page.fill("#query", "zip AND (")
    page.press("#query", "Enter")
    page.wait_for_selector("[role=alert] .notice")
    assert "'(' is not closed" in page.inner_text("[role=alert]")
    page.click("text=Search for the words as they are")
    page.wait_for_selector(".result")


def test_hostile_text_stays_text(page):
    search_for(page, "zebra")
    assert page.locator(".result .title").text_content() == HOSTILE
    assert page.locator("#results img").count() == 0
    assert page.title() == "zebra · Rankwell"


def test_a_click_and_a_vote_are_kept(page, folder):
    search_for(page, "copy folder")
    document = page.locator(".result").first.get_attribute("data-document")
    with page.expect_response("**/clicks") as clicked:
        page.click(".result:first-child .title")
    assert clicked.value.status == 204
    with page.expect_response("**/votes") as voted:
        page.click(".result:first-child .thumb.up")
    assert voted.value.status == 204
    (judged,) = read_qrels(folder / "votes.qrels").values()
    assert judged == {document: 1.0}
