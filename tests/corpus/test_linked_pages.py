"""Links among pages: anchors and scores, checked by hand on a small web; and all 125 features of such a web."""

import time

import numpy as np
import pytest

from rankwell.corpus.link_graph import LinkGraph, page_rank
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.page_links import PageLink, PageLinks, html_links, markdown_links
from rankwell.corpus.reading import read_corpus
from rankwell.corpus.site import Site, given_site, site_of_page
from rankwell.errors import ParameterError
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
        ("index.html", "", "HTTPS://Host.Example/page", "host.example/page.html"),
        ("index.html", "", "http://mirror.example/about.html", None),
        ("index.html", "", "https://mirror.example/", None),
        ("index.html", "", "//mirror.example/guide/start.html", None),
        ("deep/down.html", "/guide/x.html", "start.html", "guide/start.html"),
        ("guide/start.html", "../", "about.html", "about.html"),
        ("guide/start.html", "https://mirror.example/", "about.html", None),
        ("guide/start.html", "https://host.example/", "page.html", "host.example/page.html"),
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


@pytest.mark.parametrize(
    ("source", "base", "address", "target"),
    [
        ("guide/start.html", "", "https://example.org/docs/about.html", "about.html"),
        ("guide/start.html", "", "http://Example.org/docs/about", "about.html"),
        ("guide/start.html", "", "https://example.org/docs/", "index.html"),
        ("guide/start.html", "", "https://example.org/docs", "index.html"),
        ("guide/start.html", "", "https://example.org/docsabout.html", None),
        ("guide/start.html", "", "https://example.org/about.html", None),
        ("guide/start.html", "", "https://example.org/", None),
        ("guide/start.html", "", "https://example.org:8080/docs/about.html", None),
        ("guide/start.html", "", "https://www.example.org/guide/start.html", "guide/start.html"),
        ("guide/start.html", "", "https://github.com/", None),
        ("guide/start.html", "", "/docs/about.html", "about.html"),
        ("guide/start.html", "", "../about.html", "about.html"),
        ("guide/start.html", "https://example.org/docs/", "about.html", "about.html"),
        ("guide/start.html", "https://example.org/", "about.html", None),
    ],
)
def test_addresses_of_a_site(source, base, address, target):
    names = ["index.html", "about.html", "guide/start.html"]
    sites = [given_site("https://example.org/docs"), given_site("https://www.example.org/")]
    found = LinkGraph(names, sites).resolve(source, base, address)
    assert (None if found is None else names[found]) == target


def test_the_site_of_most_pages_is_their_own(tmp_path):
    canonical = "<link href='https://example.org/docs/{}' rel='canonical'>"
    (tmp_path / "index.html").write_text(
        canonical.format("")
        + "<a href='https://example.org/docs/a.html'>first</a> <a href='https://github.com/'>code</a>"
    )
    (tmp_path / "a.html").write_text(
        canonical.format("a") + "<a href='https://other.example/index.html'>no</a> <a href='/docs/'>home</a>"
    )
    (tmp_path / "b.html").write_text("<link rel=canonical href='https://other.example/b.html'><a href=a.html>a</a>")
    found = documents(tmp_path)
    assert {name: page.texts.get("anchor") for name, page in found.items()} == {
        "index.html": ["home"],
        "a.html": ["a", "first"],
        "b.html": None,
    }
    assert found["index.html"].numbers["outlinks"] == 1.0


def test_links_to_other_sites_are_left_out(tmp_path, caplog):
    (tmp_path / "index.html").write_text("home <a href='about.html'>us</a>")
    (tmp_path / "about.html").write_text("about")
    (tmp_path / "links.md").write_text(
        "[code](https://github.com/) [Python](https://python.org/about.html) [its home](https://python.org/index.html)"
    )
    found = documents(tmp_path)
    assert found["about.html"].texts["anchor"] == ["us"]
    assert "anchor" not in found["index.html"].texts
    assert found["links.md"].numbers["outlinks"] == 0.0
    assert "links to python.org were left out, 2 of which have the paths of pages of the corpus" in caplog.text
    assert "pass site='https://python.org/'" in caplog.text
    given = documents(tmp_path, site=("https://python.org/",))
    assert given["about.html"].texts["anchor"] == ["us", "Python"]
    assert given["index.html"].texts["anchor"] == ["its home"]


@pytest.mark.parametrize("address", ["example.org", "ftp://example.org/", "https:///docs/", "http://[x", ""])
def test_a_site_is_an_address(address):
    with pytest.raises(ParameterError, match=r"site must be an address like https://example\.org/docs/, got"):
        CorpusOptions(site=(address,))


@pytest.mark.parametrize(
    ("name", "base", "canonical", "site"),
    [
        ("a/b.html", "", "https://example.org/a/b.html", Site("example.org")),
        ("a/b.html", "", "https://example.org/x/a/b", Site("example.org", "x/")),
        ("a/index.html", "", "https://example.org/x/a/", Site("example.org", "x/")),
        ("a/index.html", "", "https://example.org/a", Site("example.org")),
        ("index.html", "", "https://example.org/x/", Site("example.org", "x/")),
        ("index.html", "", "https://example.org", Site("example.org")),
        ("index.html", "", "https://example.org/x", None),
        ("b.html", "", "https://example.org/ab.html", None),
        ("b.html", "", "/b.html", None),
        ("b.html", "", "http://[broken/b.html", None),
        ("a/b.html", "https://example.org/x/a/", "", Site("example.org", "x/")),
        ("b.html", "https://example.org/x/other.html", "", Site("example.org", "x/")),
        ("a/b.html", "https://example.org/x/", "", None),
        ("a/b.html", "../", "", None),
        ("b.html", "https://base.example/", "https://example.org/b.html", Site("example.org")),
    ],
)
def test_the_site_that_a_page_names(name, base, canonical, site):
    assert site_of_page(name, base, canonical) == site


def test_links_of_html():
    page = """<link rel=icon href=i.png><link rel="shortlink canonical" href="https://e.org/p">
    <base href="/docs/"><!-- <a href="comment">c</a> --><script>'<a href="script">s</a>'</script>
    <A HREF=one>1 &amp; <i>2</i></A><a name="x">no address</a>
    <a href='two'>not closed <a href="three">3</a><a href="open"""
    assert html_links(page) == PageLinks(
        [PageLink("one", "1 & 2"), PageLink("two", "not closed"), PageLink("three", "3")],
        base="/docs/",
        canonical="https://e.org/p",
    )


def test_links_of_markdown():
    text = (
        "[a](x.md) [b [c]](y.md 'title') [ref][R] [shortcut] [undefined][u] ![picture](z.png)\n"
        "[![i](z.png)](w.md)\n\n```\n[code](c.md)\n```\n[r]: r.md\n[Shortcut]: <s.md>\n"
    )
    assert [link.address for link in markdown_links(text).links] == ["x.md", "y.md", "r.md", "s.md", "w.md"]


@pytest.mark.parametrize(
    "text",
    [
        "<a ",
        "<a href=x>",
        "<link rel='",
        "<link rel=canonical>",
        "<!--",
        "<script>",
        "[",
        "[a](",
        "[a][",
        "`",
        "``a`",
        "```\n",
        "![",
        "<a href='",
        "](",
    ],
)
def test_hostile_pages_take_linear_time(text):
    start = time.process_time()
    for links in (html_links, markdown_links):
        links(text * 50_000 + ">")
    assert time.process_time() - start < 10.0


def test_a_ring_is_even():
    np.testing.assert_allclose(page_rank(np.arange(5), (np.arange(5) + 1) % 5, 5), 0.2)
