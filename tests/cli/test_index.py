"""`rankwell index`: build, add, delete, merge, info, check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from rankwell.index.reader import Index

DOCUMENTS = [
    {"id": "cat", "title": "The cat", "body": "cats sat on the mat", "year": 1990},
    {"id": "dog", "title": "The dog", "body": "the dog ate the cat"},
    {"id": "cow", "body": "a cow", "year": 2001},
]


def write_lines(path: Path, *documents: dict[str, object]) -> None:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in documents))


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with docs.jsonl."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "docs.jsonl", *DOCUMENTS)
    return tmp_path


@pytest.fixture
def built(corpus: Path, rankwell: Command) -> Path:
    assert rankwell("index", "build", "docs.jsonl", "--out", "docs.idx", "--stop-words", "english").exit_code == 0
    return corpus / "docs.idx"


def test_build_and_info(built: Path, rankwell: Command) -> None:
    report = json.loads(rankwell("index", "info", "docs.idx", "--json").stdout)
    assert (report["n_docs"], report["n_deleted"], report["generation"]) == (3, 0, 1)
    assert (report["streams"], report["statics"]) == (["title", "body"], ["year"])
    # cat | cats sat mat | dog | dog ate cat | cow: the, on and a are stop words.
    assert [(one["n_docs"], one["n_words"]) for one in report["segments"]] == [(3, 9)]
    lines = [line.split(maxsplit=1) for line in rankwell("index", "info", "docs.idx").stdout.splitlines()]
    text = {name: value.strip() for name, value in lines}
    assert text["documents"] == "3"
    assert text["streams"] == "title, body"
    assert text["segments"] == "1 of 3 documents"


def test_build_refuses_an_index_unless_told_to_overwrite_it(built: Path, rankwell: Command) -> None:
    write_lines(built.parent / "other.jsonl", {"id": "ox", "body": "an ox"})
    refused = rankwell("index", "build", "other.jsonl", "--out", "docs.idx")
    assert refused.exit_code == 1
    assert "docs.idx is an index already. Pass --overwrite" in refused.stderr
    assert Index.open(built).n_docs == 3
    assert rankwell("index", "build", "other.jsonl", "--out", "docs.idx", "--overwrite").exit_code == 0
    assert [Index.open(built).id_of(doc) for doc in range(Index.open(built).n_docs)] == ["ox"]


def test_a_broken_corpus_leaves_the_index_as_it_was(built: Path, rankwell: Command) -> None:
    (built.parent / "bad.jsonl").write_text('{"id": "ox", "body": "an ox"}\n{"id": "elk", "bo\n')
    for arguments in (["add", "docs.idx", "bad.jsonl"], ["build", "bad.jsonl", "--out", "docs.idx", "--overwrite"]):
        outcome = rankwell("index", *arguments)
        assert outcome.exit_code == 1
        assert "bad.jsonl, line 2" in outcome.stderr
        assert "--skip-bad-documents" in outcome.stderr
        assert Index.open(built).n_docs == 3
        assert Index.open(built).generation == 1
    assert rankwell("index", "build", "bad.jsonl", "--out", "new.idx").exit_code == 1
    assert not (built.parent / "new.idx").exists()
    assert rankwell("index", "add", "docs.idx", "bad.jsonl", "--skip-bad-documents").exit_code == 0
    assert Index.open(built).n_docs == 4


def test_bad_documents_are_named_and_counted(corpus: Path, rankwell: Command) -> None:
    (corpus / "bad.jsonl").write_text('{"id": "ox", "bo\n{"id": "elk", "year": "1990"}\n{"id": "dog"}\n')
    refused = rankwell("index", "build", "docs.jsonl", "bad.jsonl", "--out", "docs.idx")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    skipped = rankwell(
        "index", "build", "docs.jsonl", "bad.jsonl", "--out", "docs.idx", "--skip-bad-documents", "--quiet"
    )
    assert skipped.exit_code == 0
    *named, count = skipped.stderr.splitlines()
    assert [line.partition(" ")[0] for line in named] == ["left"] * 3
    assert [line.partition("bad.jsonl, line ")[2][0] for line in named] == ["1", "2", "3"]
    assert count == "3 bad documents were left out."
    assert Index.open(corpus / "docs.idx").n_docs == 3
    assert rankwell("index", "check", "docs.idx").exit_code == 0


def test_add_replaces_or_refuses(built: Path, rankwell: Command) -> None:
    write_lines(built.parent / "more.jsonl", {"id": "cat", "body": "nine lives"}, {"id": "ox", "body": "an ox"})
    refused = rankwell("index", "add", "docs.idx", "more.jsonl", "--on-duplicate", "error")
    assert refused.exit_code == 1
    assert "more.jsonl, line 1: the index docs.idx has a document with id 'cat'" in refused.stderr
    assert "pass --on-duplicate replace" in refused.stderr
    assert rankwell("index", "add", "docs.idx", "more.jsonl", "--on-duplicate", "maybe").exit_code == 2
    report = json.loads(rankwell("index", "add", "docs.idx", "more.jsonl", "--json").stdout)
    assert (report["n_docs"], report["generation"]) == (4, 2)
    index = Index.open(built)
    assert index.stored(index.find("cat")) == {"id": "cat", "body": "nine lives"}


def test_the_same_id_twice_names_both_places(corpus: Path, rankwell: Command) -> None:
    write_lines(corpus / "twice.jsonl", *DOCUMENTS, DOCUMENTS[1])
    outcome = rankwell("index", "build", "twice.jsonl", "--out", "docs.idx")
    assert outcome.exit_code == 1
    assert "twice.jsonl, line 4: id 'dog' exists already, at twice.jsonl, line 2" in outcome.stderr


def test_delete(built: Path, rankwell: Command) -> None:
    outcome = rankwell("index", "delete", "docs.idx", "cat", "nobody", "--json")
    assert json.loads(outcome.stdout)["n_docs"] == 2
    assert outcome.stderr.strip() == "1 of 2 ids are not in the index."
    (built.parent / "ids.txt").write_text("dog\n\n")
    assert rankwell("index", "delete", "docs.idx", "--ids-from", "ids.txt").exit_code == 0
    assert Index.open(built).n_docs == 1
    assert Index.open(built).find("cow") >= 0
    assert "no ids to delete" in rankwell("index", "delete", "docs.idx").stderr


def test_ids_of_a_file_that_is_not_text(built: Path, rankwell: Command) -> None:
    (built.parent / "ids.txt").write_bytes(b"cat\ndog\xff\n")
    refused = rankwell("index", "delete", "docs.idx", "--ids-from", "ids.txt")
    assert (refused.exit_code, Index.open(built).n_docs) == (1, 3)
    assert "ids.txt, line 2: 0xff is not UTF-8, but ids are. Convert" in refused.stderr
    assert "cannot read nothing.txt" in rankwell("index", "delete", "docs.idx", "--ids-from", "nothing.txt").stderr
    assert rankwell("index", "delete", "docs.idx", "--ids-from", "-", stdin=b"\xef\xbb\xbfcat\r\ncow").exit_code == 0
    assert Index.open(built).n_docs == 1


def test_words_are_those_of_live_documents(built: Path, rankwell: Command) -> None:
    rankwell("index", "delete", "docs.idx", "cow")
    report = json.loads(rankwell("index", "info", "docs.idx", "--json").stdout)
    # cat | cats sat mat | dog | dog ate cat, and on disk still: cow.
    assert (report["n_docs"], report["n_words"], report["segments"][0]["n_words"]) == (2, 8, 9)
    assert "words         8\n" in rankwell("index", "info", "docs.idx").stdout


def test_a_file_that_a_writer_removes_while_its_size_is_asked_for(built: Path, rankwell: Command) -> None:
    (built / "segment-00000009.table").symlink_to("removed")
    assert rankwell("index", "info", "docs.idx").exit_code == 0


def test_merge(built: Path, rankwell: Command) -> None:
    write_lines(built.parent / "more.jsonl", {"id": "ox", "body": "an ox"})
    rankwell("index", "add", "docs.idx", "more.jsonl")
    rankwell("index", "delete", "docs.idx", "cat")
    assert len(Index.open(built).segments) == 2
    report = json.loads(rankwell("index", "merge", "docs.idx", "--json").stdout)
    assert [(one["n_docs"]) for one in report["segments"]] == [3]
    assert report["n_deleted"] == 0


def test_check(built: Path, rankwell: Command) -> None:
    sound = rankwell("index", "check", "docs.idx")
    assert sound.exit_code == 0
    assert sound.stdout.startswith("sound: generation 1, 1 segments, ")
    assert json.loads(rankwell("index", "check", "docs.idx", "--json").stdout)["sound"] is True
    file = built / "segment-00000001.arrays"
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    broken = rankwell("index", "check", "docs.idx")
    assert broken.exit_code == 1
    assert "segment-00000001.arrays was altered after it was written: page 0 of 1" in broken.stdout
    report = json.loads(rankwell("index", "check", "docs.idx", "--json").stdout)
    assert report["sound"] is False
    assert len(report["problems"]) == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["index", "build", "", "--out", "docs.idx"], "CORPUS..."),
        (["index", "build", "docs.jsonl", "--out", ""], "--out"),
        (["index", "info", ""], "INDEX"),
        (["search", "", "cat"], "INDEX"),
        (["features", "", "queries.tsv", "qrels.txt", "--out", "train.txt"], "IDX QUERIES QRELS"),
    ],
)
def test_an_empty_path_is_not_the_current_folder(
    corpus: Path, rankwell: Command, arguments: list[str], name: str
) -> None:
    refused = rankwell(*arguments)
    assert refused.exit_code == 2
    assert name in refused.stderr
    assert "the path is empty. Give the path of a file or folder" in refused.stderr
    assert [file.name for file in corpus.iterdir()] == ["docs.jsonl"]


@pytest.mark.parametrize(
    "arguments", [["info"], ["check"], ["merge"], ["delete", "a"], ["add", "docs.jsonl"]], ids=lambda one: one[0]
)
def test_what_is_not_an_index(corpus: Path, rankwell: Command, arguments: list[str]) -> None:
    command, *rest = arguments
    outcome = rankwell("index", command, "nothing.idx", *rest)
    assert outcome.exit_code == 1
    assert "there is no index nothing.idx" in outcome.stderr
    assert not (corpus / "nothing.idx").exists()


ENGLISH = "The results of this study were intended as a basis for the theory that was shown to be in use"


@pytest.mark.parametrize(
    ("options", "language", "said"),
    [
        ([], "en", "language: English (en), detected"),
        (["--language", "none"], None, ""),
        (["--language", "german"], "de", ""),
        (["--stemmer", "english"], None, ""),
    ],
)
def test_the_language_is_detected_or_given(
    corpus: Path, rankwell: Command, options: list[str], language: str | None, said: str
) -> None:
    write_lines(corpus / "docs.jsonl", {"id": 1, "body": ENGLISH})
    outcome = rankwell("index", "build", "docs.jsonl", "--out", "docs.idx", *options)
    assert outcome.exit_code == 0
    assert said in outcome.stderr
    assert ("detected" in outcome.stderr) == bool(said)
    index = Index.open(corpus / "docs.idx")
    assert index.analysis.language == language
    assert len(index.search("theories +studies")) == (index.analysis.stemmer == "english")
    assert bool(index.analysis.common_words) == (language is not None)


def test_text_of_no_language_is_indexed_as_it_is_written(corpus: Path, rankwell: Command) -> None:
    write_lines(corpus / "docs.jsonl", {"id": 1, "body": "AB-1234"})
    outcome = rankwell("index", "build", "docs.jsonl", "--out", "docs.idx")
    assert "language: not recognised" in outcome.stderr
    assert Index.open(corpus / "docs.idx").analysis.stemmer is None


def test_a_language_and_a_stemmer_exclude_each_other(corpus: Path, rankwell: Command) -> None:
    outcome = rankwell("index", "build", "docs.jsonl", "--out", "docs.idx", "--language", "en", "--stemmer", "german")
    assert outcome.exit_code == 2
    assert "--language chooses the stemmer" in outcome.stderr
    outcome = rankwell("index", "build", "docs.jsonl", "--out", "docs.idx", "--language", "xx")
    assert "--language must be one of ar," in outcome.stderr


def test_common_words_are_found_in_phrases_and_ignored_beside_others(corpus: Path, rankwell: Command) -> None:
    write_lines(
        corpus / "docs.jsonl",
        {"id": "exact", "body": f"the bank of england. {ENGLISH}"},
        {"id": "other", "body": f"a bank in england. {ENGLISH}"},
        {"id": "none", "body": ENGLISH},
    )
    rankwell("index", "build", "docs.jsonl", "--out", "docs.idx", "--language", "en")
    index = Index.open(corpus / "docs.idx")
    assert index.search('"bank of england"').ids == ["exact"]
    assert sorted(index.search("the bank of england").ids) == ["exact", "other"]
    assert len(index.search("the of")) == 3


def test_links_in_a_folder_are_skipped_unless_asked(rankwell: Command, files: Path) -> None:
    (files / "secret.txt").write_text("root:x:0")
    (files / "corpus").mkdir()
    (files / "corpus" / "own.txt").write_text("a word")
    (files / "corpus" / "passwd.txt").symlink_to(files / "secret.txt")
    outcome = rankwell("index", "build", "corpus", "--out", "plain")
    assert "1 links were skipped, the first is corpus/passwd.txt. Pass --follow-links to read" in outcome.stderr
    assert "root" not in rankwell("search", "plain", "root").stdout
    rankwell("index", "build", "corpus", "--out", "followed", "--follow-links")
    assert "root:x:0" in rankwell("search", "followed", "root").stdout


def test_keyword_fields_and_dates_can_be_named_later(tmp_path: Path, rankwell: Command) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text('{"id": "1", "body": "x"}\n')
    new.write_text('{"id": "2", "body": "x", "kind": "a b", "day": "2024-05-31"}\n')
    index = str(tmp_path / "idx")
    rankwell("index", "build", str(old), "--out", index)
    added = rankwell("index", "add", index, str(new), "--keywords", "kind", "--dates", "day", "--json")
    assert json.loads(added.stdout)["keywords"] == ["kind"]
    found = rankwell("search", index, "x", "--filter", 'kind:"a b" day:2024', "--json")
    assert [row["id"] for row in json.loads(found.stdout)["results"]] == ["2"]


def test_fields_that_no_document_has_are_named(tmp_path: Path, rankwell: Command) -> None:
    corpus, index = tmp_path / "docs.jsonl", str(tmp_path / "idx")
    corpus.write_text('{"id": "1", "title": "a", "brand": "Acme", "year": 3}\n{"id": "2", "title": "b"}\n')
    named = ["--streams", "text", "--statics", "yaer", "--keywords", "brand,brnd", "--dates", "day"]
    built = rankwell("index", "build", str(corpus), "--out", index, *named, "--static-order", "year", "-q")
    assert built.exit_code == 0
    warnings = [line.partition(" The fields of the documents are ")[::2] for line in built.stderr.splitlines()]
    assert warnings == [
        (f"warning: no document has the field {name}", "title, year, brand.")
        for name in (
            "'text', which --streams names.",
            "'yaer', which --statics names; is it 'year'?",
            "'brnd', which --keywords names; is it 'brand'?",
            "'day', which --dates names.",
        )
    ]
    added = rankwell("index", "add", index, str(corpus), "--keywords", "brand,colour", "-q")
    assert "no document has the field 'colour', which --keywords names" in added.stderr
    assert "'brand'," not in added.stderr
    built = rankwell("index", "build", str(corpus), "--out", index, "--static-order", "year", "--overwrite")
    assert "1 of 2 documents have no 'year', which --static-order names: they are last." in built.stderr


def test_a_corpus_that_is_not_there(tmp_path: Path, rankwell: Command) -> None:
    outcome = rankwell("index", "build", str(tmp_path / "nosuch"), "--out", str(tmp_path / "idx"))
    assert outcome.exit_code == 1
    assert f"cannot read {tmp_path / 'nosuch'}: No such file or directory" in outcome.stderr
    assert not (tmp_path / "idx").exists()


def test_a_forward_index(tmp_path: Path, rankwell: Command) -> None:
    corpus, index = tmp_path / "docs.jsonl", str(tmp_path / "idx")
    corpus.write_text('{"id": "1", "title": "a", "body": "x y"}\n{"id": "2", "title": "b", "body": "x"}\n')
    for names, streams in (("all", ["title", "body"]), ("body", ["body"])):
        built = rankwell("index", "build", str(corpus), "--out", index, "--forward", names, "--overwrite", "--json")
        assert json.loads(built.stdout)["forward"] == streams
        assert f"forward       {', '.join(streams)}\n" in rankwell("index", "info", index).stdout
        assert rankwell("index", "check", index).stdout.startswith("sound")
    misspelt = rankwell("index", "build", str(corpus), "--out", index, "--forward", "boddy", "--overwrite")
    assert "no document has the field 'boddy', which --forward names; is it 'body'?" in misspelt.stderr
    assert json.loads(rankwell("search", index, "--like", "1", "--json").stdout)["results"][0]["id"] == "2"
