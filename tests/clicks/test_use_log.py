"""A use log gives back what was shown and clicked, survives a crash, and refuses what is not a log."""

import multiprocessing

import pytest

from rankwell.clicks import Impression, UseLog, read_impressions
from rankwell.errors import DataError, FileFormatError, ParameterError


def test_what_was_shown_and_clicked_comes_back(tmp_path):
    with UseLog(tmp_path / "use.jsonl") as log:
        first = log.add_shown("q1", ["déjà vu", "b", "c"])
        second = log.add_shown("q1", ["b", "c"])
        log.add_click(second, "c")
        log.add_click(first, "déjà vu")
        log.add_click(first, "déjà vu")
    one, other = read_impressions(tmp_path / "use.jsonl")
    assert (one.query_id, one.document_ids, one.clicked) == ("q1", ("déjà vu", "b", "c"), {"déjà vu"})
    assert (other.document_ids, other.clicked) == (("b", "c"), {"c"})


def test_half_a_line_is_ignored_and_cut_off_with_a_word(tmp_path, caplog):
    path = tmp_path / "use.jsonl"
    with UseLog(path) as log:
        log.add_shown("q1", ["a"])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"shown": "77", "que')
    assert len(list(read_impressions(path))) == 1
    UseLog(path).close()
    assert path.read_bytes() == whole
    ignored, cut = [record.getMessage() for record in caplog.records]
    assert 'line 2 is incomplete, and is ignored: b\'{"shown": "77", "que\'' in ignored
    assert 'its last line is incomplete, and is cut off: b\'{"shown": "77", "que\'' in cut


def test_a_whole_last_line_without_an_end_counts_and_is_kept(tmp_path, caplog):
    path = tmp_path / "use.jsonl"
    text = '{"shown": "1", "query": "q", "documents": ["a", "b"]}\n{"clicked": "1", "document": "b"}'
    path.write_text(text)
    assert [impression.clicked for impression in read_impressions(path)] == [{"b"}]
    with UseLog(path) as log:
        assert path.read_text() == text + "\n"
        log.add_click("1", "a")
    assert [impression.clicked for impression in read_impressions(path)] == [{"a", "b"}]
    assert not caplog.records


def add_impressions(path):
    with UseLog(path) as log:
        for _ in range(200):
            log.add_click(log.add_shown("q", ["a", "b"]), "b")


def test_processes_share_a_log(tmp_path):
    path = tmp_path / "use.jsonl"
    others = [multiprocessing.get_context("spawn").Process(target=add_impressions, args=(path,)) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    impressions = list(read_impressions(path))
    assert len(impressions) == 400
    assert all(impression.clicked == {"b"} for impression in impressions)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "line 2 is not JSON"),
        ("[" * 100_000, "line 2 is not JSON"),
        ("[1]", "line 2 must be a JSON object"),
        ("{}", "line 2 is neither"),
        ('{"shown": 7, "query": "q", "documents": []}', "line 2 has 7 as 'shown', which must be a string"),
        (
            '{"shown": "x", "query": "q", "documents": "d"}',
            "line 2 has 'd' as 'documents', which must be a list of ids",
        ),
        ('{"shown": "x", "query": "q", "documents": ["d", "d"]}', "line 2 has a document twice"),
        (
            '{"shown": "0", "query": "q", "documents": ["d"]}',
            "line 2 shows the impression '0', which was logged before",
        ),
        ('{"clicked": "1", "document": "d"}', "line 2 is a click on 'd', which was not shown in '1'"),
        ('{"clicked": "0", "document": "e"}', "line 2 is a click on 'e', which was not shown in '0'"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = tmp_path / "use.jsonl"
    path.write_text('{"shown": "0", "query": "q", "documents": ["d"]}\n' + line + "\n")
    with pytest.raises(FileFormatError, match=message) as error:
        list(read_impressions(path))
    assert "Correct the line, or pass on_bad_line='skip' to leave such lines out." in str(error.value)


def test_bad_lines_are_left_out_and_counted(tmp_path, caplog):
    path = tmp_path / "use.jsonl"
    lines = [
        '{"shown": "a", "query": "q", "documents": ["d1", "d2"]}',
        '{"clicked": "z", "document": "d1"}',
        "nonsense",
        '{"clicked": "a", "document": "d9"}',
        '{"shown": "a", "query": "r", "documents": ["d2"]}',
        '{"clicked": "a", "document": "d2"}',
        '{"shown": "b", "query": "my query", "documents": ["d2", "d1"]}',
    ]
    path.write_text("\n".join(lines) + "\n")
    impressions = list(read_impressions(path, on_bad_line="skip"))
    assert impressions == [
        Impression("q", ("d1", "d2"), frozenset({"d2"})),
        Impression("my query", ("d2", "d1"), frozenset()),
    ]
    (warning,) = caplog.messages
    assert warning == (
        f"4 bad lines were left out; the first is {path}, line 2 is a click on 'd1', which was not shown in 'z' before."
    )
    assert list(read_impressions(path, on_bad_line="skip", for_judgments=True)) == impressions[:1]
    path.write_text(lines[0] + "\n" + lines[-1] + "\n")
    with pytest.raises(
        FileFormatError, match=r"line 2 has a query that no judgment can name: .*'my query' must not be"
    ):
        list(read_impressions(path, for_judgments=True))
    with pytest.raises(ParameterError, match="on_bad_line must be 'error' or 'skip', got 'warn'"):
        list(read_impressions(path, on_bad_line="warn"))


def test_a_page_shows_a_document_once(tmp_path):
    with (
        UseLog(tmp_path / "use.jsonl") as log,
        pytest.raises(ParameterError, match="must not contain a document twice"),
    ):
        log.add_shown("q", ["a", "a"])


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match="cannot write"):
        UseLog(tmp_path / "absent" / "use.jsonl")
