"""Links among pages: anchors and scores, checked by hand on a small web; and all 125 features of such a web."""

import time

import numpy as np
import pytest

from rankwell.corpus.link_graph import LinkGraph, page_rank
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.page_links import PageLink, html_links, markdown_links
from rankwell.corpus.reading import read_corpus
from rankwell.features.feature_set import make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.index.reader import Index
from rankwell.index.writer import IndexWriter

HOME = "<title>Home</title><p>Welcome. See <a href='guide/start.html'>how to <b>start</b></a> or <a href=/about>us</a>."
START = """<title>Start</title>First steps. <a href="../index.html">Home</a>, <a href="#top">up</a>,
<a href="https://elsewhere.example/x">elsewhere</a>, <a href="advanced.md?x=1#part">the <img alt="hard"> part</a>"""
ADVANCED = """# Advanced
Back to [the start](start.html "Start"), [home][h] and [Home][H]; not ![a picture](start.html), `[code](start.html)`.

[h]: ../index.html
"""
ABOUT = "<title>About</title>Nobody links from here."


@pytest.fixture
def web(tmp_path):
    for name, text in {
        "index.html": HOME,
        "guide/start.html": START,
        "guide/advanced.md": ADVANCED,
        "about.html": ABOUT,
        "notes.txt": "index.html",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def documents(folder, **options):
    return {document.id: document for batch in read_corpus(folder, CorpusOptions(**options)) for document in batch}


def test_anchors_by_hand(web):
    found = documents(web)
    assert found["guide/start.html"].texts["anchor"] == ["the start", "how to start"]
    assert found["guide/advanced.md"].texts["anchor"] == ["the hard part"]
    assert found["about.html"].texts["anchor"] == ["us"]
    # Files are read in the order of their names.
    assert found["index.html"].texts["anchor"] == ["home", "Home", "Home"]
    assert "anchor" not in found["notes.txt"].texts
    assert found["notes.txt"].numbers == {}


def test_numbers_by_hand(web):
    found = documents(web)
    links = {name: (page.numbers["inlinks"], page.numbers["outlinks"]) for name, page in found.items() if page.numbers}
    assert links == {
        "index.html": (2, 2),
        "guide/start.html": (2, 2),
        "guide/advanced.md": (1, 2),
        "about.html": (1, 0),
    }
    # The equations of link_graph for four pages, h(ome), s(tart), a(dvanced), o (about): o spreads its score over all.
    n, d = 4, 0.85
    equations = np.eye(4) - d * np.array(
        [
            [0, 1 / 2, 1 / 2, 1 / n],
            [1 / 2, 0, 1 / 2, 1 / n],
            [0, 1 / 2, 0, 1 / n],
            [1 / 2, 0, 0, 1 / n],
        ]
    )
    expected = n * np.linalg.solve(equations, np.full(4, (1 - d) / n))
    scores = [found[name].numbers["link_score"] for name in
              ("index.html", "guide/start.html", "guide/advanced.md", "about.html")]  # fmt: skip
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    assert np.mean(scores) == pytest.approx(1.0)


def test_links_can_be_left_alone(web):
    found = documents(web, links=False)
    assert all("anchor" not in document.texts and not document.numbers for document in found.values())


def test_pages_without_links_stay_as_they_were(tmp_path):
    (tmp_path / "a.html").write_text("<title>A</title>text")
    (tmp_path / "b.md").write_text("# B\ntext [outside](https://elsewhere.example/)")
    assert all(not document.numbers for document in documents(tmp_path).values())


def test_all_125_features_of_a_web(web):
    with IndexWriter(web / "idx") as writer:
        for batch in read_corpus(web):
            writer.add(batch)
        writer.commit()
    index = Index.open(web / "idx")
    feature_set = make_feature_set("mslr", index.schema.streams, index.schema.statics)
    assert len(feature_set) >= 125
    qrels = {"1": {"guide/start.html": 1}}
    features = judged_features(index, [QueryText("1", "start home")], qrels, feature_set, source="top").dataset
    first = features.features[:, :125]
    assert np.isfinite(first).all()
    # One feature of each of the four streams that a link, a title, a text and a path give.
    of_start = first[features.comments.index("guide/start.html")]
    named = dict(zip(feature_set.names, of_start.tolist(), strict=False))
    assert named["tf_sum.anchor"] == 2.0
    assert named["tf_sum.title"] == 1.0
    assert named["tf_sum.url"] == 1.0
    assert named["tf_sum.body"] == 1.0


@pytest.mark.parametrize(
    ("source", "base", "address", "target"),
    [
        ("index.html", "", "guide/start.html", "guide/start.html"),
        ("guide/start.html", "", "../about.html", "about.html"),
        ("guide/start.html", "", "/about", "about.html"),
        ("guide/start.html", "", "./", "guide/index.md"),
        ("guide/start.html", "", "..", "index.html"),
        ("guide/start.html", "", "/", "index.html"),
        ("index.html", "", "guide", "guide/index.md"),
        ("index.html", "", "a%20b.html", "a b.html"),
        ("index.html", "", "host.example/x", None),
        ("index.html", "", "https://host.example/page", "host.example/page.html"),
        ("index.html", "", "//host.example/page.html#x", "host.example/page.html"),
        ("index.html", "", "http://mirror.example/about.html", "about.html"),
        ("deep/down.html", "/guide/x.html", "start.html", "guide/start.html"),
        ("index.html", "", "../../etc/passwd", None),
        ("index.html", "", "mailto:a@b.example", None),
        ("index.html", "", "javascript:about.html", None),
        ("index.html", "", "#part", None),
        ("index.html", "", "", None),
        ("index.html", "", "http://[broken", None),
    ],
)
def test_addresses(source, base, address, target):
    names = ["index.html", "about.html", "guide/start.html", "guide/index.md", "a b.html", "host.example/page.html"]
    found = LinkGraph(names).resolve(source, base, address)
    assert (None if found is None else names[found]) == target


def test_links_of_html():
    page = """<base href="/docs/"><!-- <a href="comment">c</a> --><script>'<a href="script">s</a>'</script>
    <A HREF=one>1 &amp; <i>2</i></A><a name="x">no address</a>
    <a href='two'>not closed <a href="three">3</a><a href="open"""
    assert html_links(page) == (
        "/docs/",
        [PageLink("one", "1 & 2"), PageLink("two", "not closed"), PageLink("three", "3")],
    )


def test_links_of_markdown():
    text = (
        "[a](x.md) [b [c]](y.md 'title') [ref][R] [shortcut] [undefined][u] ![picture](z.png)\n"
        "[![i](z.png)](w.md)\n\n```\n[code](c.md)\n```\n[r]: r.md\n[Shortcut]: <s.md>\n"
    )
    assert [link.address for link in markdown_links(text)[1]] == ["x.md", "y.md", "r.md", "s.md", "w.md"]


@pytest.mark.parametrize(
    "text",
    ["<a ", "<a href=x>", "<!--", "<script>", "[", "[a](", "[a][", "`", "``a`", "```\n", "![", "<a href='", "]("],
)
def test_hostile_pages_take_linear_time(text):
    start = time.process_time()
    for links in (html_links, markdown_links):
        links(text * 50_000 + ">")
    assert time.process_time() - start < 10.0


def test_a_ring_is_even():
    np.testing.assert_allclose(page_rank(np.arange(5), (np.arange(5) + 1) % 5, 5), 0.2)
