"""Messages of the library name options of the command that runs, not parameters of Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

from rankwell.cli.naming import in_words_of_options, name_settings, option_of
from rankwell.errors import Parameter, ParameterError

DOCUMENTS = '{"id": "a", "title": "one"}\n{"id": "b", "title": "two"}\n'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "rankboost", "--set", "n_rounds=0"), "error: --set n_rounds must be 1 or more, got 0."),
        (("train", "ranksvm", "--set", "tol=2"), "error: --set tol must be between 0 and 1, got 2.0."),
        (("train", "listnet", "--set", "device=tpu"), "error: --set device must be one of "),
        (
            ("train", "least-squares", "--init", "model.rank"),
            "cannot continue from an earlier model: leave out --init.",
        ),
        (("train", "rankboost", "--set", "early_stopping_rounds=2"), "to watch: pass --vali, or turn early stopping"),
        (("train", "rankboost", "--convention", "x"), "error: --convention must be one of "),
    ],
)
def test_train(rankwell: Command, files: Path, arguments: tuple[str, ...], said: str) -> None:
    outcome = rankwell(*arguments[:2], "train.txt", "--out", "new.rank", *arguments[2:])
    assert outcome.exit_code in (1, 2)
    assert said in outcome.stderr


def test_the_same_parameter_is_another_option_elsewhere(rankwell: Command, files: Path) -> None:
    training = ("train", "rankboost", "train.txt", "--out", "boosted.rank", "--set", "n_rounds=2", "--quiet")
    assert rankwell(*training).exit_code == 0
    outcome = rankwell("predict", "boosted.rank", "test.txt", "--out", "scores", "--rounds", "-1")
    assert outcome.stderr == "error: --rounds must be 0 or more, got -1.\n"
    outcome = rankwell("predict", "boosted.rank", "test.txt", "--out", "scores", "--device", "tpu")
    assert outcome.stderr.startswith("error: --device must be one of ")


def test_bad_lines(rankwell: Command, files: Path) -> None:
    Path("bad.txt").write_text("1 qid:1 1:2\nx qid:1 1:2\n")
    outcome = rankwell("evaluate", "bad.txt", "scores.txt")
    assert outcome.exit_code == 1
    assert "Correct the line, or pass --skip-bad-lines to leave such lines out." in outcome.stderr


def test_columns(rankwell: Command, files: Path) -> None:
    Path("data.csv").write_text("label,query,a\n1,1,2\n")
    outcome = rankwell("evaluate", "data.csv", "scores.txt")
    assert "has no column 'qid'. Say with --qid which of its columns it is: label, query, a." in outcome.stderr


def test_a_remedy_that_a_command_does_not_have_is_left_out(rankwell: Command, files: Path) -> None:
    Path("data.xyz").write_text("no data\n")
    outcome = rankwell("info", "data.xyz")
    assert outcome.exit_code == 1
    assert outcome.stderr.endswith("does not begin like such a file. Rename it.\n")


@pytest.mark.parametrize(
    ("options", "content", "said"),
    [
        (("--stemmer", "klingon"), DOCUMENTS, "error: --stemmer must be one of "),
        (("--stop-words", "englisch"), DOCUMENTS, "error: --stop-words must be english, or words separated by commas"),
        (("--encoding", "x"), DOCUMENTS, "error: --encoding must be a text encoding that Python knows"),
        (("--format", "x"), DOCUMENTS, "error: --format must be one of jsonl"),
        (
            (),
            '{"title": "one"}\n',
            "or name the field that holds it with --id-field. (--skip-bad-documents leaves bad documents",
        ),
        (("--format", "tsv", "--columns", "title"), "one\n", "no column is called 'id'"),
        (("--format", "tsv"), "title\nx\n", "Name the columns in the first line, or pass --columns."),
        (("--format", "tsv", "--statics", "x"), "id\ttitle\na\tb\n", "--statics names 'x', which is not among the"),
    ],
)
def test_index_build(rankwell: Command, files: Path, options: tuple[str, ...], content: str, said: str) -> None:
    Path("documents.jsonl").write_text(content)
    outcome = rankwell("index", "build", "documents.jsonl", "--out", "idx", *options)
    assert outcome.exit_code in (1, 2)
    assert said in outcome.stderr


def test_index_build_from_stdin(rankwell: Command, files: Path) -> None:
    outcome = rankwell("index", "build", "-", "--out", "idx", stdin=DOCUMENTS)
    assert "to tell its format by: pass --format jsonl or --format tsv." in outcome.stderr


def test_index_add(rankwell: Command, files: Path) -> None:
    Path("documents.jsonl").write_text(DOCUMENTS)
    assert rankwell("index", "build", "documents.jsonl", "--out", "idx").exit_code == 0
    outcome = rankwell("index", "add", "idx", "documents.jsonl", "--on-duplicate", "error")
    assert "delete the old one first, or pass --on-duplicate replace." in outcome.stderr
    outcome = rankwell("index", "add", "idx", "documents.jsonl", "--on-duplicate", "x")
    assert outcome.stderr == "error: --on-duplicate must be 'replace' or 'error', got 'x'.\n"


def test_what_is_logged_names_options_too(rankwell: Command, files: Path) -> None:
    Path("documents.jsonl").write_text(DOCUMENTS + '{"title": "three"}\n')
    outcome = rankwell("index", "build", "documents.jsonl", "--out", "idx", "--skip-bad-documents")
    assert outcome.exit_code == 0
    assert "left out: documents.jsonl, line 3: the field 'id' is missing." in outcome.stderr
    assert "or name the field that holds it with --id-field." in outcome.stderr


def test_features_and_search(rankwell: Command, files: Path) -> None:
    Path("documents.jsonl").write_text(DOCUMENTS)
    Path("queries.tsv").write_text("q\tone\n")
    Path("qrels").write_text("q 0 a 1\n")
    assert rankwell("index", "build", "documents.jsonl", "--out", "idx").exit_code == 0
    features = ("features", "idx", "queries.tsv", "qrels", "--out", "data.txt")
    outcome = rankwell(*features, "--candidates", "x")
    assert outcome.stderr.startswith("error: --candidates must be one of top, judged+top")
    outcome = rankwell(*features, "--top", "0")
    assert outcome.stderr == "error: --top must be at least 1, got 0.\n"
    outcome = rankwell("search", "idx", "one", "--match", "x")
    assert outcome.stderr == "error: --match must be 'any' or 'all', got 'x'.\n"
    outcome = rankwell("search", "idx", "one", "--b", "2")
    assert outcome.stderr == "error: --b must be between 0 and 1, got 2.0.\n"


def test_what_a_command_does_not_have_keeps_its_name(rankwell: Command) -> None:
    rankwell("info", "--json")
    assert option_of(Parameter("n_rounds", 3)) is None
    assert in_words_of_options(Parameter("n_rounds", 3)) == "n_rounds=3"
    assert in_words_of_options(ParameterError("must be 1.", parameter="n_rounds")) == "n_rounds must be 1."
    name_settings(["n_rounds", "hidden"])
    assert option_of(Parameter("n_rounds", 3)) == "--set n_rounds=3"
    assert option_of(Parameter("hidden", (15, 15))) == "--set hidden=15,15"
