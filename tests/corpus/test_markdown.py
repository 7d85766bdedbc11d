"""Markdown as text."""

from __future__ import annotations

import time

import pytest

from rankwell.corpus.markdown import split_markdown


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
    start = time.process_time()
    body = split_markdown(text)[1]
    assert time.process_time() - start < 2
    assert len(body) <= len(text)
