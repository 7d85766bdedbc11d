"""The text kernel against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.kernels.letor_text import lines as kernel
from rankwell.kernels.letor_text.reference import LineError, is_letor_line, parse_line, parse_text
from rankwell.kernels.letor_text.rows import gather_rows, gather_spans, spread_rows


def as_text(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8)


def destination(content: bytes, width: int, base: int = 1, limit: int = 100) -> tuple[kernel.Destination, np.ndarray]:
    n_lines = content.count(b"\n")
    to = kernel.Destination(
        features=np.full(n_lines * width, 7, dtype=np.float32),
        stride=width,
        width=width,
        base=base,
        limit=limit,
        labels=np.zeros(n_lines),
        qids=np.zeros(n_lines, dtype=np.int64),
        first_row=0,
        qid_spans=np.zeros((n_lines, 3), dtype=np.int32),
        comment_spans=np.zeros((n_lines, 2), dtype=np.int32),
        stamps=np.zeros(limit + 1, dtype=np.int32),
    )
    return to, np.array([0, 0, -1, 0, 0, -1, 0])


def read_block(content: bytes, width: int, base: int = 1, limit: int = 100) -> tuple[kernel.Destination, np.ndarray]:
    to, report = destination(content, width, base, limit)
    kernel.read_lines(as_text(content), to, report)
    return to, report


def test_a_block_is_read_up_to_a_line_that_is_not_plainly_good() -> None:
    content = b"2 qid:7 1:0.5 3:-1 # a b \n\n#only a comment\n-1 qid:-7 2:1e-1\n0 qid:8 1:x\n1 qid:9 1:1\n"
    to, report = read_block(content, width=3)
    assert report[kernel.POSITION] == content.index(b"0 qid:8")
    assert report[kernel.ROW] == 2
    assert report[kernel.LARGEST_INDEX] == 3
    assert report[kernel.HAS_QID] == 1
    np.testing.assert_array_equal(to.features[:6], np.array([0.5, 0, -1, 0, 0.1, 0], dtype=np.float32))
    assert to.labels[:2].tolist() == [2, -1]
    assert to.qids[:2].tolist() == [7, -7]
    start, end = to.comment_spans[0]
    assert content[start:end] == b"a b"
    assert to.comment_spans[1, 0] == to.comment_spans[1, 1]


def test_an_index_without_a_column_is_reported() -> None:
    to, report = read_block(b"1 2:5 9:1\n1 0:5\n", width=2)
    assert report[kernel.ROW] == 2
    assert report[kernel.LARGEST_INDEX] == 9
    assert report[kernel.WIDEST_LINE] == 0
    assert report[kernel.HAS_ZERO_INDEX] == 1
    assert to.features.tolist() == [0, 5, 0, 0]


@pytest.mark.parametrize(
    "line",
    [
        b"1 qid: 1:1",
        b"1 1:1 1:2",
        b"1 50:1 2:2 50:1",
        b"1 101:1",
        b"1 1:inf",
        b"1 1:1e39",
        b"1 1:1 qid:3",
        b"nan 1:1",
        b"1 1:",
        b"1 :1",
        b"1 1",
        b"1 1:1\x00",
        b"x",
        b"1\x00 1:1",
        b"1 -1:1",
        b"1 1:nul",
        b"1 1:nulll",
        b"1 1:-NULL",
        b"NULL 1:1",
        b"1 99999999999999999999999999:1",
    ],
)
def test_the_kernel_leaves_bad_lines_to_the_reference_which_refuses_them(line: bytes) -> None:
    _, report = read_block(line + b"\n", width=3)
    assert report[kernel.POSITION] == 0
    assert report[kernel.ROW] == 0
    with pytest.raises(LineError):
        parse_line(line, limit=100, has_qid=None)


@pytest.mark.parametrize(
    ("qid", "number"), [(b"0", 0), (b"12", 12), (b"-3", -3), (b"999999999999999999", 999999999999999999)]
)
def test_query_ids_written_as_integers_are(qid: bytes, number: int) -> None:
    to, report = read_block(b"1 qid:" + qid + b"\n", width=1)
    assert report[kernel.N_TEXT_QIDS] == 0
    assert to.qids[0] == number


@pytest.mark.parametrize(
    "qid", [b"007", b"-0", b"+1", b"a", b"1a", b"-", b"1000000000000000000", b"1:2", b"\xff", b"1.0"]
)
def test_other_query_ids_are_text(qid: bytes) -> None:
    content = b"1 qid:5 1:1\n1 qid:" + qid + b" 1:1\n"
    to, report = read_block(content, width=1)
    assert report[kernel.N_TEXT_QIDS] == 1
    row, start, end = to.qid_spans[0]
    assert row == 1
    assert content[start:end] == qid


@given(st.integers(0, 5), st.integers(0, 4), st.integers(0, 2), st.integers(0, 3), st.integers(0, 1), st.booleans())
def test_rows_are_spread_in_place(n_rows: int, width: int, slack: int, more: int, shift: int, in_place: bool) -> None:
    stride, new_width = width + slack, width + more + shift
    new_stride = max(stride, new_width)
    old = np.arange(1, n_rows * stride + 1, dtype=np.float32)
    expected = np.zeros((n_rows, new_width), dtype=np.float32)
    expected[:, shift : shift + width] = old.reshape(n_rows, stride)[:, :width]
    target = np.full(n_rows * new_stride, -1, dtype=np.float32)
    if in_place:
        target[: old.size] = old
    spread_rows(target if in_place else old, target, n_rows, width, stride, new_width, new_stride, shift)
    np.testing.assert_array_equal(target.reshape(n_rows, new_stride)[:, :new_width], expected)


def test_a_column_shifted_behind_the_width_is_dropped() -> None:
    values = np.array([1, 2, 0, 3, 4, 0], dtype=np.float32)
    spread_rows(values, values, 2, 3, 3, 3, 3, 1)
    assert values.tolist() == [0, 1, 2, 0, 3, 4]


def test_rows_are_gathered_over_a_gap_and_into_a_narrower_layout() -> None:
    values = np.arange(12, dtype=np.float32)
    gather_rows(values, 2, 2, 3, 3, 3)
    assert values[:9].tolist() == [0, 1, 2, 6, 7, 8, 9, 10, 11]
    gather_rows(values, 0, 3, 3, 0, 2)
    assert values[:6].tolist() == [0, 1, 6, 7, 9, 10]


def test_spans_are_gathered_end_to_end() -> None:
    out = np.zeros(5, dtype=np.uint8)
    gather_spans(as_text(b"one two three"), np.array([[4, 7], [0, 0], [11, 13]], dtype=np.int32), out)
    assert out.tobytes() == b"twoee"


@pytest.mark.parametrize(
    ("line", "column", "expected", "found"),
    [
        (b"x qid:1", 1, "a label (a finite number)", "'x'"),
        (b"  nan", 3, "a label (a finite number)", "'nan'"),
        (b"1e400 1:1", 1, "a label (a finite number)", "'1e400'"),
        (b"1 qid: 1:1", 7, "a query id after 'qid:'", "nothing"),
        (b"1 qid:3 x", 9, "index:value", "'x'"),
        (b"1 qid:3 1:0.5 2:a#c", 17, "a number that float32 can hold, or nan or NULL", "'a'"),
        (b"1 1:-inf", 5, "a number that float32 can hold, or nan or NULL", "'-inf'"),
        (b"1 1:1e39", 5, "a number that float32 can hold, or nan or NULL", "'1e39'"),
        (b"1 1:1_0", 5, "a number that float32 can hold, or nan or NULL", "'1_0'"),
        (b"1 1:", 5, "a number that float32 can hold, or nan or NULL", "nothing"),
        (b"1 7:1 3:1 7:2", 11, "feature 7 at most once in a line", "'7:2'"),
        (b"1 101:1", 3, "a feature index of at most 100", "'101:1'"),
        (b"1 1:1 qid:3", 7, "index:value", "'qid:3'"),
        (b"1 " + b"y" * 50, 3, "index:value", "'" + "y" * 40 + "'..."),
        (b"1 \xff:1", 3, "index:value", "'\\\\xff:1'"),
    ],
)
def test_a_bad_line_says_where_what_was_expected_and_what_stood_there(
    line: bytes, column: int, expected: str, found: str
) -> None:
    with pytest.raises(LineError) as caught:
        parse_line(line, limit=100, has_qid=None)
    assert (caught.value.column, caught.value.expected, caught.value.found) == (column, expected, found)


def test_query_ids_are_in_every_row_or_in_none() -> None:
    parsed = parse_text(b"1 qid:1 1:1\n1 1:1\n1\n1 qid:2\n", limit=9)
    assert [(line, bad.column, bad.found) for line, bad in parsed.bad_lines] == [(2, 3, "'1:1'"), (3, 2, "nothing")]
    parsed = parse_text(b"1 1:1\n1 qid:2\n", limit=9)
    assert [(line, bad.column) for line, bad in parsed.bad_lines] == [(2, 3)]


def test_a_line_of_letor_text_is_recognised() -> None:
    assert is_letor_line(b"1 qid:1 1:0.5 # x")
    assert not any(map(is_letor_line, [b"", b"# comment", b"0.5", b"label,qid,f1", b"{}"]))


def test_ordered_pairs_are_read_as_the_reference_reads_them() -> None:
    generator = np.random.default_rng(0)
    numbers = [
        "0",
        "7",
        "-3",
        "-0",
        "0.5",
        "-0.25",
        "12",
        "1234567",
        "12345678",
        "0.1234567",
        "0.12345678",
        "0.123456789",
    ]
    numbers += [
        "1234567.7654321",
        "1.",
        ".5",
        "5e1",
        "00.10",
        "+1",
        "nan",
        "9999999.9999999",
        "0.0000001",
        "1e-7",
        "3\t",
    ]
    lines = []
    for _ in range(400):
        n_pairs = int(generator.integers(0, 13))
        chosen = generator.choice(numbers, n_pairs)
        # Mostly one after another from 1 on; some begin elsewhere, leave one out, or have more blanks.
        first = int(generator.choice([1, 1, 1, 2, 0]))
        gap = int(generator.integers(0, 40))
        indices = [first + place + (place >= gap) for place in range(n_pairs)]
        blanks = generator.choice([" ", " ", " ", "  "], n_pairs)
        pairs = "".join(
            f"{index}:{number}{blank}" for index, number, blank in zip(indices, chosen, blanks, strict=True)
        )
        lines.append("2 qid:1 " + generator.choice([pairs, pairs.rstrip(" "), pairs + "# x"]))
    for base, width in ((0, 13), (0, 20), (1, 13), (1, 6)):
        own = [line for line in lines if base == 0 or " 0:" not in line]
        to, report = read_block("".join(line + "\n" for line in own).encode(), width, base=base)
        expected = np.zeros((len(own), width), np.float32)
        for row, line in enumerate(own):
            parsed = parse_line(line.encode(), limit=100, has_qid=None)
            assert parsed is not None
            for index, value in parsed.values.items():
                if index - base < width:
                    expected[row, index - base] = value
        assert report[kernel.ROW] == len(own)
        np.testing.assert_array_equal(to.features.reshape(-1, width).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("end", [b"1:2", b"1:2 2:3.5", b"1:2 2:3.5 ", b"1:2 2:3 3:12345678", b"1:2 1:3", b"1:2 2:3.x"])
def test_what_comes_after_the_text_is_not_read(end: bytes) -> None:
    line = b"1 qid:1 " + end
    content = line + b"\n"
    memory = np.frombuffer(content + b" 3:9" * 16, np.uint8)
    alone, own_report = read_block(content, width=3)
    to, report = destination(content, width=3)
    kernel.read_lines(memory[: len(content)], to, report)
    np.testing.assert_array_equal(report, own_report)
    np.testing.assert_array_equal(to.features, alone.features)
