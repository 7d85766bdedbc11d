"""The search page in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.serving.page.fake_server import HOSTILE, FakeServer, fake_server

pytestmark = pytest.mark.browser
PHONE = {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with fake_server() as running:
        yield running


@pytest.fixture
def open_page(browser: Any, server: FakeServer) -> Iterator[Callable[..., Any]]:
    """Opens an address of the page. A script that fails or breaks the server's policy fails the test."""
    server.posted.clear()
    contexts, failures = [], []

    def open_at(address: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda message: failures.append(message.text) if "Policy" in message.text else None)
        page.goto(server.address + address)
        page.wait_for_selector("#ranker option", state="attached")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert failures == []


def texts(page: Any, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.textContent")


def wait_for_answer(page: Any) -> None:
    """Until what was asked for last is shown: an action sets busy at once, and results before it stay till then."""
    page.wait_for_selector("#results[aria-busy=false]", state="attached")


def search_for(page: Any, query: str) -> None:
    page.fill("#query", query)
    page.press("#query", "Enter")
    wait_for_answer(page)


def test_a_search_shows_ten_results_with_marked_captions(open_page):
    page = open_page()
    assert focused(page) == "query"
    search_for(page, "match path")
    assert len(texts(page, ".result")) == 10
    assert texts(page, ".result:first-child .title") == ["pathlib.Path.glob"]
    assert texts(page, ".result:first-child mark") == ["match", "path"]
    assert texts(page, "#summary") == ["23 matches, 1 to 10 shown"]
    assert page.url.endswith("?q=match+path")


def test_the_time_is_shown_by_stage(open_page):
    page = open_page("?q=match")
    page.wait_for_selector(".stage")
    # 12.4 - (0.4 + 3.1 + 6.9 + 1.6) = 0.4 ms belong to no stage.
    assert texts(page, ".legend li") == [
        "parse 0.40 ms",
        "select 3.10 ms",
        "rank 6.90 ms",
        "captions 1.60 ms",
        "other 0.40 ms",
    ]
    widths = page.eval_on_selector_all(".stage", "all => all.map(each => each.getBoundingClientRect().width)")
    assert widths[2] / widths[1] == pytest.approx(6.9 / 3.1, rel=0.02)
    assert texts(page, ".took") == ["12.4 ms · 1,000 candidates · 100 ranked by boosted"]


def test_an_answer_from_the_cache_says_so(open_page):
    page = open_page("?q=known")
    page.wait_for_selector(".stage")
    assert "from the cache" in page.inner_text(".took")
    assert texts(page, ".legend li")[0] == "cache 0.21 ms"


def test_a_partial_answer_is_marked_with_its_reason(open_page):
    page = open_page("?q=late")
    page.wait_for_selector(".result")
    notice = page.inner_text("#notices")
    assert notice.startswith("Partial answer: 3 of 4 shards answered.")
    assert "The deadline of 500 ms passed after 40 of 100 documents were ranked." in notice


def test_a_whole_answer_has_no_notice(open_page):
    page = open_page("?q=match")
    page.wait_for_selector(".result")
    assert page.inner_text("#notices") == ""


def test_no_results(open_page):
    page = open_page("?q=nothing")
    page.wait_for_selector(".timing")
    assert page.inner_text("#summary") == "Nothing matches “nothing”"
    assert page.locator(".result").count() == 0
    assert page.locator("#paging").is_hidden()


def test_pages_and_the_way_back(open_page):
    page = open_page("?q=match")
    for expected in ("11 to 20", "21 to 23"):
        page.click("text=Next →")
        page.wait_for_selector(f"#summary:has-text('{expected}')")
    assert focused(page) == "results-heading"
    assert page.locator("text=Next →").is_disabled()
    assert page.url.endswith("?q=match&offset=20")
    page.go_back()
    page.wait_for_selector("#summary:has-text('11 to 20')")
    page.go_back()
    page.wait_for_selector("#summary:has-text('1 to 10')")


def test_the_choice_of_a_ranker_is_in_the_address(open_page):
    page = open_page("?q=match")
    page.select_option("#ranker", "lists")
    page.wait_for_selector(".took:has-text('ranked by lists')")
    assert page.url.endswith("?q=match&ranker=lists")
    page.reload()
    page.wait_for_selector(".took:has-text('ranked by lists')")
    assert page.input_value("#ranker") == "lists"


def test_two_rankers_side_by_side(open_page):
    page = open_page("?q=match")
    page.select_option("#against", "lists")
    page.wait_for_selector(".rankings")
    assert texts(page, ".ranking > h3") == ["boosted", "lists"]
    # The second order is 2 0 1 3 10 4 5 11 9 6: document 2 was third and is first, 9 was tenth and is ninth.
    signs = texts(page, ".ranking:nth-child(2) .badge > [aria-hidden]")
    assert signs == ["▲ 2", "▼ 1", "▼ 1", "=", "new", "▼ 1", "▼ 1", "new", "▲ 1", "▼ 3"]
    assert page.locator(".ranking:nth-child(1) .badge").count() == 2  # 7 and 8 are gone
    assert page.inner_text("#summary") == "7 documents moved from boosted to lists, 2 new"
    first, second = (page.locator(f".ranking:nth-child({side})").bounding_box() for side in (1, 2))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]
    page.go_back()
    page.wait_for_selector("#summary:has-text('23 matches')")
    assert page.locator(".ranking").count() == 0


def test_why_this_score(open_page):
    page = open_page("?q=match")
    page.click(".result:nth-child(2) .why")
    page.wait_for_selector(".feature")
    assert page.get_by_role("dialog", name="Why this score").is_visible()
    assert page.inner_text(".of").startswith("glob.glob")
    spoken = [page.locator(f".feature:nth-child(2) .{part}").text_content() for part in ("value", "contribution")]
    assert spoken == ["value 5.25 → 0.731", "contribution −0.900"]
    boxes = page.eval_on_selector_all(
        ".extent", "all => all.slice(0, 2).map(each => each.getBoundingClientRect().toJSON())"
    )
    assert boxes[1]["width"] / boxes[0]["width"] == pytest.approx(0.9, rel=0.02)
    assert boxes[1]["x"] + boxes[1]["width"] == pytest.approx(boxes[0]["x"], abs=1)  # they meet at zero
    assert page.locator(".feature:nth-child(2) .transforms").count() == 0
    several = page.locator(".feature:nth-child(3) .transforms li").all_text_contents()
    assert several == ["linear 3.5 (+0.010)", "bucket 2 (+0.800)"]
    assert page.locator(".feature:nth-child(4) .value").text_content() == "value 1.25"
    assert page.locator(".feature:nth-child(4) .transforms li").all_text_contents() == ["expression 1.25"]
    page.click("text=Show 53 more features (38 contributed nothing)")
    assert page.locator(".feature").count() == 68


def test_the_panel_closes_with_escape_and_gives_the_focus_back(open_page):
    page = open_page("?q=match")
    page.click(".result:nth-child(2) .why")
    page.wait_for_selector(".feature")
    assert "why=doc-1" in page.url
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile(r"\?q=match$"))
    assert page.locator("#why").is_hidden()
    assert page.evaluate("document.activeElement.matches('.result:nth-child(2) .why')")
    page.go_forward()
    page.wait_for_selector(".feature")
    page.go_back()
    page.wait_for_selector("#why", state="hidden")


def test_a_score_that_cannot_be_explained(open_page):
    page = open_page("?q=match&ranker=bm25&why=doc-1&by=bm25")
    page.wait_for_selector("#why .notice")
    assert page.inner_text("#why .notice") == "bm25 reads no features: choose a learned ranker."


def test_an_error_is_shown_in_the_servers_words(open_page):
    page = open_page()
    page.fill("#query", 'match "path')
    page.press("#query", "Enter")
    page.wait_for_selector("[role=alert] .notice")
    words = "Error: the quotation mark at character 6 is not closed: close it, or leave it out."
    assert texts(page, "[role=alert] p") == [words]
    assert page.get_attribute("#query", "aria-invalid") == "true"
    page.click("text=Search for the words as they are")
    page.wait_for_selector(".result")
    assert page.inner_text("[role=alert]") == ""
    assert page.get_attribute("#query", "aria-invalid") == "false"


def test_an_unknown_ranker_in_the_address(open_page):
    page = open_page("?q=match&ranker=gone")
    page.wait_for_selector("[role=alert] .notice")
    assert "there is no ranker 'gone': the server has bm25, boosted, lists." in page.inner_text("[role=alert]")


def test_an_overloaded_server_is_asked_again(open_page):
    page = open_page()
    busy = {"error": "the queue is full: try again in 1 s.", "parameter": None}
    page.route("**/search?*", lambda route: route.fulfill(status=503, body=json.dumps(busy)), times=1)
    page.fill("#query", "match")
    page.press("#query", "Enter")
    page.wait_for_selector("text=the queue is full: try again in 1 s.")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".result")


def test_a_server_that_is_gone(open_page):
    page = open_page()
    page.route("**/search?*", lambda route: route.abort())
    page.fill("#query", "match")
    page.press("#query", "Enter")
    page.wait_for_selector("text=The server does not answer.")


def test_hostile_text_stays_text(open_page):
    page = open_page("?q=hostile", viewport=PHONE)
    page.wait_for_selector(".result")
    assert page.locator(".result:first-child .title").text_content() == HOSTILE
    page.click(".result:first-child .title")
    assert page.locator(".stored dd").first.text_content() == HOSTILE + "!"
    assert page.locator("#results img, #results script, #results [href^=javascript]").count() == 0
    page.click(".result:first-child .why")
    page.wait_for_selector(".feature")
    assert page.locator(".of bdi").text_content() == HOSTILE
    assert page.title() == "hostile · Rankwell"


def test_the_keyboard(open_page):
    page = open_page("?q=match")
    page.wait_for_selector(".result")
    for key, expected in [
        ("ArrowDown", "pathlib.Path.glob"),
        ("ArrowDown", "glob.glob"),
        ("ArrowUp", "pathlib.Path.glob"),
        ("ArrowUp", "query"),
        ("ArrowDown", "pathlib.Path.glob"),
        ("/", "query"),
    ]:
        page.keyboard.press(key)
        assert focused(page) == expected
    assert page.input_value("#query") == "match"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".result:nth-child(2) .stored").is_visible()


def test_arrows_lead_to_the_same_document_in_the_other_ranking(open_page):
    page = open_page("?q=match&against=lists")
    page.wait_for_selector(".rankings")
    page.focus("#query")
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert focused(page) == "pathlib.Path.glob"
    assert page.evaluate("document.activeElement.matches('.ranking:nth-child(2) .result:nth-child(2) *')")
    assert page.locator(".pointed").count() == 2


def test_a_click_is_posted_once_with_its_impression(open_page, server):
    page = open_page("?q=match")
    title = page.locator(".result:nth-child(2) .title")
    with page.expect_response("**/clicks"):
        title.click()
    title.click()
    title.click()
    assert server.posted == [("/clicks", {"impression": "impression-1", "document": "doc-1"})]


def test_a_click_that_leaves_the_page_is_posted(open_page, server):
    page = open_page("?q=match")
    page.route("https://docs.example.org/**", lambda route: route.fulfill(body="elsewhere"))
    page.click(".result:first-child .title")
    page.wait_for_url("https://docs.example.org/pathlib.Path.glob")
    server.wait_for_posts(1)
    assert server.posted == [("/clicks", {"impression": "impression-1", "document": "doc-0"})]


def test_votes_are_posted_and_stay_visible(open_page, server):
    page = open_page("?q=match")
    up, down = (page.locator(f".result:first-child .thumb.{direction}") for direction in ("up", "down"))
    for thumb in (up, down, down):
        with page.expect_response("**/votes"):
            thumb.click()
    with page.expect_response("**/votes"):
        up.click()
    page.wait_for_selector("#announcement:has-text('Vote recorded')", state="attached")
    assert [body["vote"] for _, body in server.posted] == [1, -1, 0, 1]
    assert server.posted[0] == ("/votes", {"query": "match", "document": "doc-0", "vote": 1})
    page.reload()
    page.wait_for_selector(".result")
    assert up.get_attribute("aria-pressed") == "true"
    assert down.get_attribute("aria-pressed") == "false"


def test_a_vote_is_shown_in_both_rankings(open_page):
    page = open_page("?q=match&against=lists")
    with page.expect_response("**/votes"):
        page.click(".ranking:nth-child(1) .result:first-child .thumb.down")
    pressed = page.locator(".thumb[aria-pressed=true]")
    assert pressed.count() == 2
    assert {pressed.nth(side).get_attribute("aria-label") for side in (0, 1)} == {"Bad result: pathlib.Path.glob"}


def test_a_vote_that_is_refused_is_taken_back(open_page):
    page = open_page("?q=match")
    full = {"error": "the judgments file cannot be written: the disk is full.", "parameter": None}
    page.route("**/votes", lambda route: route.fulfill(status=503, body=json.dumps(full)))
    page.click(".result:first-child .thumb.up")
    page.wait_for_selector("text=Your vote was not kept: the judgments file cannot be written: the disk is full.")
    assert page.get_attribute(".result:first-child .thumb.up", "aria-pressed") == "false"


def test_without_a_judgments_file_there_are_no_thumbs(open_page, server):
    page = open_page()
    page.route("**/index", lambda route: route.fulfill(json=route.fetch().json() | {"votes": False}))
    page.goto(server.address + "?q=match")
    page.wait_for_selector(".result")
    assert page.locator(".thumb").count() == 0


def test_thumbs_go_away_if_the_server_keeps_no_votes(open_page):
    page = open_page("?q=match")
    absent = {"error": "votes are not kept here: start the server with --judgments PATH.", "parameter": None}
    page.route("**/votes", lambda route: route.fulfill(status=404, body=json.dumps(absent)))
    page.click(".result:first-child .thumb.up")
    page.wait_for_selector("text=start the server with --judgments PATH.")
    assert page.locator(".thumb").count() == 0


def test_facts_of_the_index_and_the_rankers(open_page):
    page = open_page()
    page.wait_for_selector("#facts[open]")
    facts = page.inner_text("#facts-body")
    assert re.search(r"documents\s+14,281", facts)
    assert re.search(r"size\s+18.4 MB", facts)
    assert re.search(r"streams\s+title, signature, body", facts)
    assert re.search(r"boosted\s+rankboost\s+68\s+default", facts)


def test_facts_of_shards(open_page):
    page = open_page()
    node = {"address": "127.0.0.1:7070", "state": "down"}
    shards = [{"documents": 7000, "generation": 1, "nodes": [node]}, {"documents": 7281, "generation": 1, "nodes": []}]
    page.route("**/index", lambda route: route.fulfill(json=route.fetch().json() | {"shards": shards}))
    page.reload()
    page.click("#facts-body summary")
    facts = page.inner_text("#facts-body")
    assert "2 shards" in facts
    assert "7,000 documents at 127.0.0.1:7070 (down)" in facts


@pytest.mark.parametrize("width", [320, 375])  # 320: WCAG's reflow; 375: a common phone
@pytest.mark.parametrize(
    "address", ["", "?q=match", "?q=hostile", "?q=late", "?q=match&against=lists", "?q=match&why=doc-1&by=boosted"]
)
def test_a_phone_needs_no_horizontal_scrolling(open_page, address, width):
    page = open_page(address, viewport=PHONE | {"width": width}, has_touch=True)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert max(page.eval_on_selector_all("#why, #why-body", "all => all.map(each => each.scrollWidth)")) <= width


def luminance(colour: str) -> float:
    channels = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_page, scheme):
    page = open_page("?q=match", color_scheme=scheme)
    page.wait_for_selector(".result")
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (luminance(ground) < 0.05) == (scheme == "dark")
    for selector in (".caption", ".title", ".scores", ".took", ".legend li", "footer"):
        colour = page.eval_on_selector(selector, "each => getComputedStyle(each).color")
        dark, light = sorted([luminance(colour), luminance(ground)])
        assert (light + 0.05) / (dark + 0.05) >= 4.5, selector


def test_names_and_landmarks_for_screen_readers(open_page):
    page = open_page("?q=match")
    page.wait_for_selector(".result")
    for role, name in [
        ("search", None),
        ("main", None),
        ("contentinfo", None),
        ("searchbox", "Search the index"),
        ("combobox", "Ranker"),
        ("combobox", "Compare with"),
        ("navigation", "Pages of results"),
        ("button", "Why this score: glob.glob"),
        ("button", "Good result: glob.glob"),
        ("list", "Time by stage"),
    ]:
        assert page.get_by_role(role, name=name, exact=True).count() == 1, (role, name)
    assert page.get_by_role("status").first.inner_text() == "23 matches, 1 to 10 shown"
    assert page.get_by_role("heading", level=3).count() == 10


def test_nothing_moves_where_less_motion_is_wished(open_page):
    page = open_page("?q=match&why=doc-1&by=boosted", reduced_motion="reduce")
    page.wait_for_selector(".feature")
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.eval_on_selector("#why", "each => getComputedStyle(each).animationName") == "none"


def test_bm25_has_no_features_to_explain(open_page):
    page = open_page("?q=match&against=bm25")
    page.wait_for_selector(".rankings")
    assert page.locator(".ranking:nth-child(1) .why").count() == 10
    assert page.locator(".ranking:nth-child(2) .why").count() == 0


def test_pages_end_with_the_candidates_of_the_ranker(open_page):
    page = open_page()
    page.route("**/search?*", lambda route: route.fulfill(json=route.fetch().json() | {"n_candidates": 15}))
    search_for(page, "match")
    assert page.inner_text("#paging span") == "Page 1 of 2"
    page.click("text=Next →")
    page.wait_for_selector("text=Page 2 of 2")
    assert page.locator("text=Next →").is_disabled()


def test_facets_narrow_results_down_with_the_keyboard(open_page, server):
    page = open_page("?q=path")
    page.locator(".facets summary").focus()
    page.keyboard.press("Enter")
    assert texts(page, ".facets legend") == ["kind"]
    assert texts(page, ".facets label")[:2] == ["function\n12", "class\n7"]
    assert texts(page, ".facets .more") == ["5 more"]
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.locator(".facets summary", has_text="Narrowed down by 1").wait_for()
    assert '&filter=+kind:("function")&facet=module&facet=kind' in server.asked[-1]
    assert "only=kind%3Afunction" in page.url
    # The focus is still on the box, which takes the choice back.
    page.locator("[data-choice='kind:function']:focus").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.locator(".facets summary", has_text="Narrowed down by 2").wait_for()
    assert 'kind:("function" OR "a \\"quoted\\" \\\\ kind")' in server.asked[-1]
    page.go_back()
    page.locator(".facets summary", has_text="Narrowed down by 1").wait_for()
    search_for(page, "glob")
    assert "filter" not in server.asked[-1]
    assert page.title() == "glob · Rankwell"


def test_what_is_explained_and_compared_is_what_was_shown(open_page, server):
    page = open_page("?q=match&plain=true&only=kind:function")
    page.click(".result:nth-child(2) .why")
    page.wait_for_selector(".feature")
    assert server.asked[-1].startswith('/explain?q=match&plain=true&filter=+kind:("function")&id=doc-1')
    page = open_page("?q=match&plain=true&only=kind:function&against=lists")
    page.wait_for_selector(".ranking")
    assert server.asked[-1].startswith('/compare?q=match&plain=true&filter=+kind:("function")&k=10')
    assert page.inner_text("#summary").endswith(", narrowed down by 1")


def test_typing_errors_are_forgiven_if_that_is_chosen(open_page, server):
    page = open_page("?q=match")
    page.get_by_label("Forgive typing errors").check()
    wait_for_answer(page)
    assert "typos=true" in page.url
    assert "&typos=true" in server.asked[-1]
    page.click(".result:nth-child(2) .why")
    page.wait_for_selector(".feature")
    assert server.asked[-1].startswith("/explain?q=match&typos=true&id=doc-1")
    page = open_page("?q=match&typos=true")
    assert page.get_by_label("Forgive typing errors").is_checked()


def test_a_comparison_without_some_shards_is_marked(open_page):
    page = open_page("?q=late&against=lists")
    page.wait_for_selector(".ranking")
    notice = "Partial answer: 3 of 4 shards answered. 1 of 4 shards did not answer: 127.0.0.1:7073."
    assert page.inner_text(".partial") == notice
    page = open_page("?q=match&against=lists")
    page.wait_for_selector(".ranking")
    assert page.locator(".partial").count() == 0


def test_a_document_that_the_first_pass_did_not_keep(open_page):
    page = open_page("?q=match&ranker=lists&why=doc-9&by=lists")
    page.wait_for_selector(".feature")
    assert page.inner_text(".pass").startswith("The ranker's first pass did not keep this document for the second.")
    assert "−20.00 for its place below those kept" in page.inner_text(".sum")
    page = open_page("?q=match&ranker=lists&why=doc-1&by=lists")
    page.wait_for_selector(".feature")
    assert page.locator(".pass").count() == 0
