from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankwell import LeastSquares, RankingDataset
from rankwell.cli.app import app
from rankwell.index.writer import IndexWriter
from rankwell.scoring.ranker_file import RankerFile, write_ranker_file

DOCUMENTS = [
    {"id": "wheat", "title": "Wheat exports", "body": "Exports of wheat fell."},
    {"id": "oil", "title": "Oil prices", "body": "Crude oil prices rose again."},
    {"id": "gas", "title": "Gas", "body": "Gas and oil prices, and more about gas."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "index"
    with IndexWriter(path) as writer:
        writer.add(DOCUMENTS)
        writer.commit()
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["search", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_a_table_with_ids_scores_and_captions(index: Path) -> None:
    code, stdout, _ = run(index, "oil", "prices", "-q")
    assert code == 0
    lines = [line.split() for line in stdout.splitlines() if line.strip()[:2] in ("1 ", "2 ")][-2:]
    assert [line[1] for line in lines] == ["oil", "gas"]
    assert "Gas and oil prices, and more about gas." in stdout
    assert "2 of 2 documents that match, of 3 in the index" in stdout


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["oil -gas"], ["oil"]),
        (['"oil prices, and"'], ["gas"]),
        (["wheat", "oil", "--match", "all"], []),
        (["gas", "--stream", "title"], ["gas"]),
        (["prices", "-k", 1], ["oil"]),
        (["prices", "--weights", "title=5,body"], ["oil", "gas"]),
        (["--", "-gas oil"], ["oil"]),
    ],
)
def test_json(index: Path, arguments: list[object], ids: list[str]) -> None:
    code, stdout, _ = run(index, "--json", *arguments)
    assert code == 0
    rows = json.loads(stdout)["results"]
    assert [row["id"] for row in rows] == ids
    assert [row["rank"] for row in rows] == list(range(1, len(ids) + 1))


def test_a_query_that_is_too_long_says_so(index: Path) -> None:
    _, _, stderr = run(index, " ".join(f"w{n}" for n in range(10_000)))
    assert "the query is too long: only its first 1,024 different words were used" in stderr


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "the query has no words to look for."),
        ("!?", "the query has no words to look for."),
        ("zebra", "no document has 'zebra'."),
        ("+zebra +oil", "no document has 'zebra'."),
        ('"gas oil prices"', "each word is in some document, but no document matches the whole query."),
    ],
)
def test_why_nothing_was_found(index: Path, query: str, reason: str) -> None:
    code, stdout, stderr = run(index, query, "--json")
    assert (code, json.loads(stdout)["results"]) == (0, [])
    assert " ".join(stderr.split()) == f"nothing was found: {reason}"
    assert run(index, query, "--json", "--quiet")[2] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["oil", "--stream", "author"], "no stream 'author'"),
        (["oil", "--match", "some"], "match must be 'any' or 'all', got 'some'"),
        (["oil", "--weights", "title=x"], "--weights must be like title=3,body=1, got 'title=x'"),
        (["oil", "--weights", "title", "--stream", "title"], "--stream or --weights, not both"),
    ],
)
def test_wrong_arguments_are_one_line(index: Path, arguments: list[str], message: str) -> None:
    code, _, stderr = run(index, *arguments)
    assert code == 2
    assert message in " ".join(stderr.split())


def test_no_index(tmp_path: Path) -> None:
    code, _, stderr = run(tmp_path / "nowhere", "oil")
    assert code == 1
    assert "nowhere" in stderr


def test_a_ranker_orders_what_bm25_finds(index: Path, tmp_path: Path) -> None:
    """A ranker that prefers long documents: `gas` has 9 words, `oil` 7."""
    lengths = LeastSquares(normalize="none").fit(RankingDataset([[9.0], [7.0]], [1, 0], group=[2]))
    description = replace(lengths.description_, feature_names=("length.whole",))
    write_ranker_file(tmp_path / "length.rank", RankerFile("least-squares", lengths.get_params(), description))
    code, stdout, _ = run(index, "oil", "--ranker", tmp_path / "length.rank", "--json")
    assert code == 0
    assert [row["id"] for row in json.loads(stdout)["results"]] == ["gas", "oil"]
    by_bm25 = json.loads(run(index, "oil", "--json")[1])["results"]
    assert [row["id"] for row in by_bm25] == ["oil", "gas"]
    first_only = run(index, "oil", "--ranker", tmp_path / "length.rank", "--candidates", 1, "--json")[1]
    assert [row["id"] for row in json.loads(first_only)["results"]] == ["oil"]


def test_json_has_totals_and_stored_fields(index: Path) -> None:
    report = json.loads(run(index, "--json", "prices", "-k", 1)[1])
    assert (report["n_docs"], report["n_matches"], len(report["results"])) == (3, 2, 1)
    assert report["results"][0]["fields"] == DOCUMENTS[1]


def test_a_run_of_many_queries(index: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("q1\toil prices\nq2\t-gas oil\nq3\tzebra\n")
    code, _, stderr = run(index, "--queries", tmp_path / "queries.tsv", "--run", tmp_path / "run")
    assert code == 0, stderr
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert [line[:4] for line in lines] == [
        ["q1", "Q0", "oil", "1"],
        ["q1", "Q0", "gas", "2"],
        ["q2", "Q0", "oil", "1"],
    ]
    assert float(lines[0][4]) == json.loads(run(index, "--json", "oil prices")[1])["results"][0]["score"]
    assert "nothing was found for 1 of 3 queries" in stderr
    code, stdout, _ = run(index, "--queries", tmp_path / "queries.tsv", "--run", "-", "--prose", "-k", 1)
    assert [line.split()[2] for line in stdout.splitlines()] == ["oil", "gas"]


def test_a_run_without_the_queries_that_cannot_be_read(index: Path, tmp_path: Path) -> None:
    queries, out = tmp_path / "queries.tsv", tmp_path / "run"
    queries.write_text("q1\toil\n\nq2\t(oil\nq3\tgas\nq4\toil^x\n")
    code, _, stderr = run(index, "--queries", queries, "--run", out)
    assert code == 1
    assert f"warning: {queries}, line 3, query 'q2': the query cannot be read, column 1: '(' is not closed" in stderr
    assert f"{queries}, line 5, query 'q4': the query cannot be read, column 4: a boost is written" in stderr
    assert "2 of 4 queries cannot be read and are not in the run. Correct them, or read the queries as prose" in stderr
    assert {line.split()[0] for line in out.read_text().splitlines()} == {"q1", "q3"}
    code, _, stderr = run(index, "--queries", queries, "--run", tmp_path / "other", "--filter", "(oil")
    assert code == 2
    assert "the filter cannot be read" in stderr
    assert not (tmp_path / "other").exists()


def test_a_sorted_run_has_falling_scores(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("q1\tshoes paper\nq2\t*\n")
    code, stdout, stderr = run(shop, "--queries", tmp_path / "queries.tsv", "--run", "-", "--sort", "price")
    assert code == 0
    assert "scores in the run count down to 1" in stderr
    for query, words in (("q1", "shoes paper"), ("q2", "*")):
        shown = json.loads(run(shop, words, "--sort", "price", "--json")[1])["results"]
        lines = [line.split() for line in stdout.splitlines() if line.startswith(query)]
        assert [line[2] for line in lines] == [row["id"] for row in shown]
        assert [float(line[4]) for line in lines] == list(range(len(shown), 0, -1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queries", "x", "--run", "y", "--json"], "a run has documents and scores only: leave out --json, or give"),
        (["--queries", "x", "--run", "y", "--facet", "a", "--json"], "leave out --facet and --json, or give one QUERY"),
        ([], "give a QUERY, or --queries FILE and --run FILE"),
        (["oil", "--run", "x"], "got --run without --queries"),
        (["oil", "--queries", "x"], "give a QUERY or --queries, not both"),
        (["--queries", "x"], "--queries needs --run FILE"),
    ],
)
def test_a_query_or_queries(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    (tmp_path / "x").write_text("q1\toil\n")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["search", str(index), *arguments])
    assert result.exit_code != 0
    assert message in str(result.exception) + result.stderr


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    rows = [
        {
            "id": "1",
            "title": "Red running shoes",
            "price": 80,
            "brand": "Acme",
            "tags": ["a", "b"],
            "day": "2024-05-01",
        },
        {"id": "2", "title": "Blue trail shoes", "price": 120, "brand": "Bolt", "tags": ["a"], "day": "2023-11-15"},
        {"id": "3", "title": "Résumé paper", "price": 9.5, "brand": "Acme", "day": "2022"},
    ]
    (folder / "shop.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    options = ["--keywords", "brand,tags", "--dates", "day", "--fold-accents", "--language", "none", "-q"]
    command = ["index", "build", str(folder / "shop.jsonl"), "--out", str(folder / "idx"), *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    (folder / "synonyms.txt").write_text("sneakers => shoes\n", "utf-8")
    return folder / "idx"


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["shoes", "--filter", "price:<100"], ["1"]),
        (["*", "--filter", "brand:Acme", "--filter", "-tags:*"], ["3"]),
        (["*", "--sort", "brand:desc,price"], ["2", "3", "1"]),
        (["day:2024-05"], ["1"]),
        (["resume"], ["3"]),
        (["shoos", "--typos"], ["1", "2"]),
        (["sneakers", "--synonyms", "SYNONYMS"], ["1", "2"]),
        (["shoes (", "--plain"], ["1", "2"]),
    ],
)
def test_filters_sort_and_the_rest(shop: Path, arguments: list[str], ids: list[str]) -> None:
    written = [str(shop.parent / "synonyms.txt") if one == "SYNONYMS" else one for one in arguments]
    code, stdout, _ = run(shop, "--json", *written)
    assert code == 0
    found = json.loads(stdout)
    assert [row["id"] for row in found["results"]] == ids
    assert found["n_matches"] == len(ids)


def test_facets(shop: Path) -> None:
    _, stdout, _ = run(shop, "--json", "*", "--facet", "brand", "--facet", "price=0,50,100")
    assert json.loads(stdout)["facets"] == {
        "brand": [{"value": "Acme", "n_docs": 2}, {"value": "Bolt", "n_docs": 1}],
        "price": [{"value": [0, 50], "n_docs": 1}, {"value": [50, 100], "n_docs": 1}],
    }
    _, stdout, _ = run(shop, "*", "--facet", "brand", "-q")
    assert "Acme" in stdout


def test_where_the_querys_words_are(shop: Path) -> None:
    row = json.loads(run(shop, "--json", "paper")[1])["results"][0]
    assert [row["caption"][start:stop] for start, stop in row["highlights"]] == ["paper"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shoes (red"], "the query cannot be read, column 7: '(' is not closed"),
        (["colour:red"], "there is no field 'colour'; the fields are title, day, price, brand, tags"),
        (["shoes", "--filter", "brand:[a TO b]"], "the filter cannot be read, column 7"),
        (["shoes", "--filter", "price:"], "the filter cannot be read, column 7: field 'price' has nothing after"),
        (["shoes", "--filter", "day:"], "as in day:2024-05"),
        (["shoes^abc"], "a boost is written ^ and a number, as in oil^2 or oil^0.5, got '^abc'"),
        (["shoes", "--sort", "title"], "--sort must be fields as year or year:desc; 'title' holds text"),
        (["shoes", "--facet", "title"], "--facet must be of"),
        (
            ["shoes", "--facet", "price=a,b"],
            "--facet of field 'price' cannot have the edges ['a', 'b']: 'a' is",
        ),
        (
            ["shoes", "--candidates", 100],
            "--candidates would have no effect without --ranker FILE: add it, or",
        ),
        (["shoes", "--device", "gpu", "--tag", "x"], "--tag would have no effect without --run FILE"),
        (["shoes", "--device", "cpu", "--candidates", 5], "--candidates and --device would have no effect without"),
        (
            ["--like", "1", "--match", "all"],
            "documents are ordered by BM25: leave out --match.",
        ),
        (["shoes", "--match", "most"], "--match must be 'any' or 'all', got 'most'"),
        (["shoes", "--sort", "price", "--ranker", "x.rank"], "give --sort or --ranker, not both"),
    ],
)
def test_what_cannot_be_read_is_named(shop: Path, arguments: list[str], message: str) -> None:
    code, _, stderr = run(shop, *arguments)
    assert code == 2
    assert message in " ".join(stderr.split())


def test_like_a_document(index: Path) -> None:
    code, stdout, _ = run(index, "--like", "oil", "--json")
    assert code == 0
    assert [row["id"] for row in json.loads(stdout)["results"]] == ["gas"]
    assert json.loads(stdout)["n_matches"] == 1
    assert "1 of 1 documents that match, of 3 in the index" in run(index, "--like", "oil")[1]
    code, _, stderr = run(index, "--like", "nothing")
    assert code == 1
    assert "there is no document with the id 'nothing'" in stderr
    code, _, stderr = run(index, "oil", "--like", "oil", "--typos")
    assert code == 2
    assert "--like takes the place of a query" in stderr
    assert "leave out a QUERY and --typos" in stderr


def test_facets_of_documents_like_another(shop: Path) -> None:
    found = json.loads(run(shop, "--like", "1", "--facet", "brand", "--json")[1])
    assert ([row["id"] for row in found["results"]], found["n_matches"]) == (["2"], 1)
    assert found["facets"] == {"brand": [{"value": "Bolt", "n_docs": 1}]}


def test_a_search_that_stops_early_says_so(index: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"id": str(n), "body": "oil" if n % 2 else "oil prices", "rank": n % 7}) for n in range(40)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    arguments = ["index", "build", str(tmp_path / "docs.jsonl"), "--out", str(tmp_path / "idx"), "--language", "none"]
    built = CliRunner().invoke(app, [*arguments, "--static-order", "rank"])
    assert built.exit_code == 0, built.stderr
    assert "static order" in built.stdout
    code, stdout, _ = run(tmp_path / "idx", "oil", "-k", 2, "--stop-after", 6, "--json")
    assert code == 0
    answer = json.loads(stdout)
    assert (answer["n_matches"], answer["n_examined"], answer["stopped_early"]) == (None, 6, True)
    # 5 of the 40 documents have the highest rank, 6: 6, 13, 20, 27 and 34; the first of rank 5 is 5.
    assert {int(row["id"]) for row in answer["results"]} <= {6, 13, 20, 27, 34, 5}
    assert (
        "of the first 6 documents by falling rank, of 40" in run(tmp_path / "idx", "oil", "-k", 2, "--stop-after", 6)[1]
    )
    answer = json.loads(run(tmp_path / "idx", "oil", "--stop-after", 1000, "--json")[1])
    assert (answer["n_matches"], answer["stopped_early"]) == (40, False)
    assert "--stop-after needs an index whose documents have a static order" in run(index, "oil", "--stop-after", 5)[2]
    assert "--stop-after" in run(index, "--like", "oil", "--stop-after", 5)[2]


def test_a_static_order_that_no_document_has_is_noted(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "body": "oil"}\n')
    arguments = ["index", "build", str(tmp_path / "docs.jsonl"), "--out", str(tmp_path / "idx"), "--language", "none"]
    built = CliRunner().invoke(app, [*arguments, "--static-order", "rnak"])
    assert built.exit_code == 0
    assert "warning: no document has the field 'rnak', which --static-order names" in built.stderr
