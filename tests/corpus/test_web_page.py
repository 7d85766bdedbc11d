"""HTML as text."""

from __future__ import annotations

import time

import pytest

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
