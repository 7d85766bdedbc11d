"""Generated and mutated text: for any content, the reader does what the reference does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rankwell.data.dataset import RankingDataset
from rankwell.data.letor import MOST_FEATURES, BadLineError, read_letor
from rankwell.data.letor_blocks import INTEGER
from rankwell.errors import DataError
from rankwell.kernels.letor_text.reference import ParsedText, parse_text
from rankwell.streams.decompression import CODECS, ByteStream

SIGNATURES = tuple(signature for _, signature in CODECS.values())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "data.txt"


def read_text(path: Path, text: bytes, block_bytes: int, n_features: int | None, on_bad_line: str) -> RankingDataset:
    path.write_bytes(text)
    with ByteStream(str(path)) as stream:
        return read_letor(
            stream, n_features=n_features, on_bad_line=on_bad_line, block_bytes=block_bytes, longest_line=2**20
        )


def check(path: Path, text: bytes, block_bytes: int, n_features: int | None = None) -> ParsedText:
    """Demand the reference's rows and bad lines of the reader, in both of its modes."""
    expected = parse_text(text, limit=MOST_FEATURES if n_features is None else n_features)
    indices = {index for values in expected.values for index in values}
    counts_from_zero_and_is_too_wide = n_features is not None and {0, n_features} <= indices
    if not expected.labels or counts_from_zero_and_is_too_wide:
        with pytest.raises(DataError):
            read_text(path, text, block_bytes, n_features, "skip")
    else:
        compare(read_text(path, text, block_bytes, n_features, "skip"), expected, n_features)
    if expected.bad_lines:
        with pytest.raises(DataError) as caught:
            read_text(path, text, block_bytes, n_features, "error")
        if isinstance(caught.value, BadLineError):
            line, bad = expected.bad_lines[0]
            error = caught.value
            assert (error.line, error.column, error.expected, error.found) == (
                line,
                bad.column,
                bad.expected,
                bad.found,
            )
        else:
            assert counts_from_zero_and_is_too_wide
    return expected


def compare(data: RankingDataset, expected: ParsedText, n_features: int | None) -> None:
    order = np.arange(data.n_docs) if data.doc_idx is None else np.argsort(data.doc_idx)
    features = expected.dense_features(n_features)
    assert data.features.shape == features.shape
    np.testing.assert_array_equal(data.features[order].view(np.uint32), features.view(np.uint32))
    np.testing.assert_array_equal(data.labels[order].view(np.uint64), np.array(expected.labels).view(np.uint64))
    assert data.skipped_lines == len(expected.bad_lines)
    comments = [comment.decode("utf-8", "surrogateescape") for comment in expected.comments]
    if any(comments):
        assert data.comments is not None
        assert [data.comments[int(row)] for row in order] == comments
    else:
        assert data.comments is None
    if expected.qids:
        assert data.qid_of_rows()[order].tolist() == expected_ids(expected.qids)
    else:
        assert data.query_ptr.tolist() == [0, data.n_docs]


def expected_ids(qids: list[bytes]) -> list[int] | list[str]:
    if all(INTEGER.fullmatch(qid) for qid in qids):
        return [int(qid) for qid in qids]
    return [qid.decode("utf-8", "surrogateescape") for qid in qids]


numbers = st.one_of(
    st.floats(width=32).map(str),
    st.floats().map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,22}([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["nan", "-NAN", "NULL", "inf", "", "1_0", "0x1", "1e39", "-0", "1e-46"]),
)
blanks = st.sampled_from([" ", " ", "  ", "\t", " \r", "\v", "\f "])
labels = st.one_of(st.integers(0, 4).map(str), numbers)
qids = st.one_of(
    st.integers(0, 3).map(lambda number: f"qid:{number}"),
    st.sampled_from(["", "", "qid:", "qid:a", "qid:07", "qid:-0"]),
)
features = st.builds(
    lambda index, value: f"{index}:{value}",
    st.one_of(st.integers(0, 12), st.sampled_from(["65536", "65537", "x", "", "-1", "99999999999999999999"])),
    numbers,
)
comments = st.sampled_from(["", "", "#", "# a comment ", "#b#c", " #\tü\r"])
lines = st.one_of(
    st.builds(
        lambda label, blank, qid, tokens, comment: blank.join([label, qid, *tokens]) + comment,
        labels,
        blanks,
        qids,
        st.lists(features, max_size=4),
        comments,
    ).map(str.encode),
    st.binary(max_size=20),
)


@settings(max_examples=150)
@given(
    text=st.lists(lines, max_size=8).map(b"\n".join),
    block_bytes=st.sampled_from([8, 33, 2**12]),
    n_features=st.sampled_from([None, None, 12]),
)
@example(text=b"1 0:1 80:2 80:3\n1 1:4 2:5", block_bytes=8, n_features=None)
@example(text=b"1 12:1\n1 0:1", block_bytes=8, n_features=12)
def test_generated_text(scratch: Path, text: bytes, block_bytes: int, n_features: int | None) -> None:
    assume(not text.startswith(SIGNATURES))
    check(scratch, text, block_bytes, n_features)


@settings(max_examples=100)
@given(text=st.binary(max_size=200), block_bytes=st.sampled_from([8, 64]))
def test_any_bytes(scratch: Path, text: bytes, block_bytes: int) -> None:
    assume(not text.startswith(SIGNATURES))
    check(scratch, text, block_bytes)


def plain_line(generator: np.random.Generator, has_qid: bool) -> bytes:
    """A good line, in one of the styles that are about."""
    n_features = int(generator.integers(0, 12))
    indices = np.sort(generator.permutation(20)[:n_features]) + 1
    if generator.random() < 0.1:
        generator.shuffle(indices)
    form = ["%.6f", "%g", "%.17g", "%.9e", "%d", "%+.2f", "%.22f"][generator.integers(7)]
    scale = 10.0 ** generator.integers(-8, 9)
    tokens = [f"{index}:{form % (scale * generator.normal())}" for index in indices]
    qid = [f"qid:{generator.integers(5)}"] if has_qid else []
    comment = ["", "", f" #docid = GX-{generator.integers(99)}", "# "][generator.integers(4)]
    return (" ".join([str(generator.integers(5)), *qid, *tokens]) + comment).encode()


ALPHABET = [bytes([byte]) for byte in b" \t\r\v\f#:.+-eE0123456789nNaAiIfFqQdD_,x\x00\x7f\xff"]
PIECES = [*ALPHABET, b"\n", b"nan", b"null", b"inf", b"qid:", b"1e", b"99999999999", b"0:", b"  ", b"1:1 1:1"]
PIECES += [b"\xef\xbb\xbf"]


def mutated(generator: np.random.Generator, line: bytes) -> bytes:
    for _ in range(int(generator.integers(1, 4))):
        place = int(generator.integers(len(line) + 1))
        length = int(generator.integers(1, 4))
        piece = PIECES[generator.integers(len(PIECES))]
        kind = generator.integers(5)
        if kind == 0:
            line = line[:place] + line[place + length :]
        elif kind == 1:
            line = line[:place] + piece + line[place:]
        elif kind == 2:
            line = line[:place] + piece + line[place + len(piece) :]
        elif kind == 3:
            line = line[:place] + line[max(0, place - 9) : place] + line[place:]
        else:
            line = line[:place]
    return line


def mutated_texts(seed: int, n_lines: int, lines_each: int) -> Iterator[bytes]:
    """Texts of plain lines, most of which were mutated; a few are kept so that rules that span lines have work."""
    generator = np.random.default_rng(seed)
    for _ in range(0, n_lines, lines_each):
        has_qid = generator.random() < 0.8
        plain = [plain_line(generator, has_qid) for _ in range(lines_each)]
        yield b"\n".join(mutated(generator, line) if generator.random() < 0.8 else line for line in plain)


def check_mutated(scratch: Path, seed: int, n_lines: int) -> tuple[int, int]:
    """How many rows and how many bad lines there were."""
    n_rows = n_bad_lines = 0
    for number, text in enumerate(mutated_texts(seed, n_lines, lines_each=100)):
        expected = check(scratch, text, [64, 1000, 2**20][number % 3], [None, None, 20][number % 3])
        n_rows += len(expected.labels)
        n_bad_lines += len(expected.bad_lines)
    return n_rows, n_bad_lines


def test_mutated_lines(scratch: Path) -> None:
    n_rows, n_bad_lines = check_mutated(scratch, seed=1, n_lines=3_000)
    assert n_rows > 500
    assert n_bad_lines > 500


@pytest.mark.slow
def test_a_hundred_thousand_mutated_lines(scratch: Path) -> None:
    seed = int(os.environ.get("RANKWELL_FUZZ_SEED", "2"))
    n_rows, n_bad_lines = check_mutated(scratch, seed, n_lines=200_000)
    assert n_rows + n_bad_lines > 150_000
    assert min(n_rows, n_bad_lines) > 30_000
