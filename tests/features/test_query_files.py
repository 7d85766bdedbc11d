"""Files of queries and judgments, and what is wrong in bad ones."""

import gzip

import pytest

import rankwell
from rankwell.errors import DataError
from rankwell.features.qrels import read_qrels
from rankwell.features.queries import QueryText, read_queries


def test_queries_are_read(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("\ufeff1\tred fox\n\n b \tdog\tand cat \n", encoding="utf-8")
    assert read_queries(path) == [QueryText("1", "red fox"), QueryText("b", "dog\tand cat")]
    compressed = tmp_path / "queries.tsv.gz"
    compressed.write_bytes(gzip.compress(b"7\tx\r\n"))
    assert read_queries(compressed) == [QueryText("7", "x")]


def test_operators_of_prose_mean_nothing(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text('1\tthe "red fox" -- e-mail +1\n')
    assert read_queries(path) == [QueryText("1", 'the "red fox" -- e-mail +1')]
    assert read_queries(path, operators=False) == [QueryText("1", "the  red fox     e mail  1")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\tred\nno tab\n", "line 2 must be a query's id, a tab and its text, got b'no tab'"),
        (b"\tred\n", "line 1 must be a query's id"),
        (b"1\ta\n2\tb\n1\tc\n", "line 3 repeats the id '1' of line 1"),
        (b"1\t\xff\n", "line 1 is not UTF-8"),
        (b"\n", "contains no query"),
    ],
)
def test_bad_queries_are_refused(tmp_path, content, message):
    path = tmp_path / "queries.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_queries(path)


def test_judgments_are_read(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("1 0 d1 2\n2\tQ0\td1\t-1\n\n1 0 d2 0\n1 0 d1 2\n")
    assert read_qrels(path) == {"1": {"d1": 2, "d2": 0}, "2": {"d1": -1}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 0 d1\n", "line 1 must be: query iteration document relevance, got b'1 0 d1'"),
        (b"1 0 d1 1\n1 0 d1 2\n", "line 2 judges document 'd1' of query '1' as 2, an earlier line as 1"),
        (b"1 0 d1 high\n", "line 1: the relevance must be a finite number, got 'high'"),
        (b"1 0 d1 nan\n", "line 1: the relevance must be a finite number, got 'nan'"),
        (b"1 0 \xff 1\n", "line 1 is not UTF-8"),
        (b"", "contains no judgment"),
    ],
)
def test_bad_judgments_are_refused(tmp_path, content, message):
    path = tmp_path / "qrels.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_qrels(path)


def test_queries_as_json_lines(tmp_path):
    """As ir_datasets exports them, and as BEIR's collections have them."""
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query_id": "1", "text": "red  fox"}\n\n{"_id": 7, "text": "dog", "metadata": {}}\n')
    assert read_queries(path) == [QueryText("1", "red fox"), QueryText("7", "dog")]


TOPICS = """\
<top>
<num> Number: 051
<title> Topic: Airbus &amp; Subsidies

<desc> Description:
Document will discuss government assistance.
</top>

<top>
<num> Number: MB01
<title>
BBC World Service
staff cuts
</title>
</top>
"""


def test_topics_of_trec(tmp_path):
    path = tmp_path / "topics.51-100"
    path.write_text(TOPICS)
    assert read_queries(path) == [
        QueryText("51", "Airbus & Subsidies"),
        QueryText("MB01", "BBC World Service staff cuts"),
    ]
    path.write_text('<xml><topic number="201" type="single">\n<query>raspberry pi</query>\n</topic></xml>')
    assert read_queries(path) == [QueryText("201", "raspberry pi")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"query_id": "1", "text": "a"}\n{"text": "b"}\n', "line 2 must be an object with an id"),
        ('{"query_id": "1"}\n', "line 1 must be an object with an id"),
        ('{"query_id": ["1"], "text": "a"}\n', "line 1 must be an object with an id"),
        ('{"query_id": "1", "text": "a"\n', "line 1 is not JSON"),
        ('{"_id": "1", "text": "a"}\n[1]\n', "line 2 must be an object"),
        ('{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}\n', "line 2 repeats the id '1' of line 1"),
        ("\n<top>\n<title> a\n</top>\n", "line 2: a topic must have a number"),
        ("<top>\n<num> Number: 1\n</top>\n", "line 1: a topic must have a number"),
        ("<html></html>", "contains no query"),
    ],
)
def test_bad_queries_of_other_formats_are_refused(tmp_path, content, message):
    (tmp_path / "queries").write_text(content)
    with pytest.raises(DataError, match=message):
        read_queries(tmp_path / "queries")


def test_judgments_of_beir(tmp_path):
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n2\td1\t0\n")
    assert read_qrels(tmp_path / "test.tsv") == {"1": {"d1": 2}, "2": {"d1": 0}}
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t0\td1\t2\n")
    with pytest.raises(DataError, match="line 2 must be: query-id corpus-id score"):
        read_qrels(tmp_path / "test.tsv")


def test_judgments_and_runs_are_written(tmp_path):
    qrels = {"1": {"d1": 2.0, "d2": 0.0}, "b": {"d1": 0.5}}
    rankwell.write_qrels(qrels, tmp_path / "qrels.txt")
    assert rankwell.read_qrels(tmp_path / "qrels.txt") == qrels
    run = {"1": {"d9": 0.1, "d1": 0.30000000000000004}, "b": {"d1": -5.0}}
    rankwell.write_run(run, tmp_path / "run.txt", tag="mine")
    assert (tmp_path / "run.txt").read_text().splitlines()[0] == "1 Q0 d1 1 0.30000000000000004 mine"
    assert rankwell.read_run(tmp_path / "run.txt") == run
    for bad in ({"two words": {"d": 1.0}}, {"1": {"": 1.0}}):
        with pytest.raises(DataError, match="separates fields by blanks"):
            rankwell.write_run(bad, tmp_path / "run.txt")
    assert rankwell.read_run(tmp_path / "run.txt") == run


def test_runs_are_measured_in_python():
    """A judged query that the run lacks counts as 0, and one without judgments not at all."""
    qrels = {"1": {"d1": 1, "d2": 1}, "2": {"d1": 1}}
    run = {"1": {"d1": 0.5, "d3": 0.25, "d2": 0.125}, "3": {"d1": 1.0}}
    evaluation = rankwell.evaluate(qrels, run, metrics="map,p@2", convention="trec")
    assert evaluation.mean == {"map": (1 + 2 / 3) / 2 / 2, "p@2": 1 / 2 / 2}
    assert evaluation.query_ids.tolist() == ["1", "2"]
    with pytest.raises(DataError, match="scores must be a run"):
        rankwell.evaluate(qrels, [0.5, 0.25])
