"""`rankwell index build --shards N`, and the commands that take what it builds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from rankwell.index.reader import Index


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [{"id": f"d{n}", "body": f"cats and dogs {'mat ' * (n % 5)}", "n": n} for n in range(40)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_shards_are_built_described_checked_and_searched(corpus: Path, rankwell: Command) -> None:
    build = ("index", "build", "docs.jsonl", "--out", "idx", "--shards", "3", "--workers", "1", "--language", "en")
    assert rankwell(*build).exit_code == 0
    report = json.loads(rankwell("index", "info", "idx", "--json").stdout)
    assert (report["n_docs"], report["n_shards"], report["streams"], report["statics"]) == (40, 3, ["body"], ["n"])
    assert report["n_bytes"] > 1000
    assert rankwell("index", "check", "idx").exit_code == 0
    one = ("index", "build", "docs.jsonl", "--out", "one", "--language", "en")
    assert rankwell(*one).exit_code == 0
    results = [json.loads(rankwell("search", name, "mats", "-k", "40", "--json").stdout) for name in ("idx", "one")]
    scores = [{hit["id"]: hit["score"] for hit in result["results"]} for result in results]
    assert scores[0] == scores[1]
    assert len(scores[0]) == 32


def test_overwriting_replaces_shards_by_shards_only(corpus: Path, rankwell: Command) -> None:
    build = ("index", "build", "docs.jsonl", "--out", "idx", "--language", "none")
    assert rankwell(*build, "--shards", "2", "--workers", "1").exit_code == 0
    assert "is an index already" in rankwell(*build, "--shards", "2").stderr
    assert "is a folder of shards, and the new one would be one index" in rankwell(*build, "--overwrite").stderr
    assert rankwell(*build, "--shards", "4", "--workers", "1", "--overwrite").exit_code == 0
    assert len(Index.open("idx").shards) == 4
    assert "is a folder of shards, which is built as a whole" in rankwell("index", "add", "idx", "docs.jsonl").stderr


def test_options_of_shards_need_shards_and_files(corpus: Path, rankwell: Command) -> None:
    build = ("index", "build", "docs.jsonl", "--out", "idx")
    assert "say with --shards how many" in rankwell(*build, "--workers", "2").stderr
    assert "say with --shards how many" in rankwell(*build, "--cluster", "local").stderr
    refused = rankwell("index", "build", "-", "--format", "jsonl", "--out", "idx", "--shards", "2", stdin="{}")
    assert "standard input does not allow" in refused.stderr


def test_the_kinds_of_fields_are_those_of_the_whole_corpus(corpus: Path, rankwell: Command) -> None:
    with (corpus / "docs.jsonl").open("a") as lines:
        lines.write('{"id": "bad", "n": "a text"}\n')
    build = ("index", "build", "docs.jsonl", "--out", "idx", "--shards", "2", "--workers", "1", "--language", "none")
    assert "field 'n' holds a text, but other documents have numbers" in rankwell(*build).stderr
    assert not (corpus / "idx" / "shards.json").exists()
    assert rankwell(*build, "--skip-bad-documents").exit_code == 0
    assert Index.open("idx").n_docs == 40
