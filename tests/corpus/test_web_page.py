"""HTML and Markdown as text."""

from __future__ import annotations

import time

import pytest

from rankwell.corpus.markdown import split_markdown
from rankwell.corpus.web_page import declared_encoding, split_page


@pytest.mark.parametrize(
    ("page", "title", "words"),
    [
        ("", "", []),
        ("just text", "", ["just", "text"]),
        ("<title>T</title><body><h1>Head</h1>text", "T", ["Head", "text"]),
        ("<p>one<p>two<br>three<td>four", "", ["one", "two", "three", "four"]),
        ("<p>wo<b>rd</b> w<wbr>o", "", ["word", "wo"]),
        ("a<script>if (x < y) </script>b<style>p {}</style>c", "", ["a", "b", "c"]),
        ("<head><title>T</title>text without a body", "T", ["text", "without", "a", "body"]),
        ("<title>T<p>not closed", "T", ["not", "closed"]),
        ("<svg><title>icon</title></svg>x<title>T</title>", "T", ["x"]),
        ("a &lt; b &eacute;&#233; &unknown;", "", ["a", "<", "b", "éé", "&unknown;"]),
        ("<!-- no --><![CDATA[x]]>y", "", ["y"]),
        ("<![CDATA[x > y]]>z", "", ["y]]>z"]),
        ("<![if !IE]>x<![endif]><!--[if IE]>y<![endif]-->z", "", ["xz"]),
        ("<![what is this[x]]>y", "", ["y"]),
        ("<!-- no --> <script><!-- no </script>x <!-- no > y", "", ["x", "y"]),
        ("<!-- <!-- no --> x", "", ["x"]),
        ("a <b", "", ["a"]),
        ("<p>a < b<i class='x", "", ["a", "<", "b"]),
        ("<svg><svg></svg>icon</svg>x<template>y<svg>z</template>w</svg>", "", ["x", "w"]),
    ],
)
def test_pages(page, title, words):
    found_title, text = split_page(page)
    assert found_title == title
    assert text.split() == words


@pytest.mark.parametrize(
    "page", ["<a " * 50_000, "<a b='" * 50_000, "<!--" * 50_000, "<?" * 50_000, "<template></p>" * 20_000 + "x"]
)
def test_pages_take_one_pass(page):
    assert split_page(page) == ("", "")


@pytest.mark.parametrize(
    "part", ["<![CDATA[>", "<![CDATA[", "<![if>", "<![if", "<![endif]-->", "<!---x>", "<!-- >", "<svg><![CDATA[ > "]
)
def test_a_megabyte_of_what_is_not_closed(part):
    """With one pass for each part these take minutes."""
    page = part * (2**20 // len(part))
    start = time.process_time()
    title, text = split_page(f"{page}<title>T</title>x")
    assert time.process_time() - start < 5
    assert title in ("", "T")
    assert "svg" in part or text.endswith("x")


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b'<meta charset="latin-1">', "iso8859-1"),
        (b"<META http-equiv=Content-Type content='text/html; charset=windows-1252'>", "cp1252"),
        (b"<meta charset=klingon>", None),
        (b"<meta charset=hex>", None),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<p>charset=latin-1", None),
    ],
)
def test_the_encoding_a_page_names(head, encoding):
    assert declared_encoding(head) == encoding


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("", "", ""),
        ("no heading", "", "no heading"),
        ("## Two ##\ntext", "Two", "\ntext"),
        ("# C#\ntext", "C#", "\ntext"),
        ("# #\ntext", "", "\ntext"),
        ("Title\n=====\ntext", "Title", "\ntext"),
        ("intro\n\n# Late\nmore", "Late", "intro\n\n\nmore"),
        ("---\ntitle: 'Front'\ntags: x\n---\n# Head\n", "Front", "# Head\n"),
        ('see [this](http://a.b/c) and ![that](d.png "e")', "", "see [this]  and ![that] "),
        ("[x][1]\n\n[1]: http://a.b\n", "", "[x][1]\n\n\n"),
        ("#hashtag", "", "#hashtag"),
    ],
)
def test_markdown(text, title, body):
    assert split_markdown(text) == (title, body)


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 100_000, "](" * 50_000, "=\n" * 50_000, "a\n" * 50_000, "---\n" + "x\n" * 50_000),
        *(f"# a{' ' * 50_000}b", f"# a{'#' * 50_000}b", f"---\ntitle: a{' ' * 50_000}b\n---\n"),
    ],
)
def test_markdown_takes_one_pass(text):
    assert len(split_markdown(text)[1]) <= len(text)
