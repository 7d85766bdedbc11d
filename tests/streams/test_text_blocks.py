"""Streams cut into blocks of whole lines."""

from __future__ import annotations

import pytest

from rankwell.kernels.letor_text.lines import count_lines_without_row
from rankwell.streams.decompression import ByteStream
from rankwell.streams.text_blocks import TextBlocks


@pytest.mark.parametrize(
    "content", [b"\n", b"a", b"a\n#\n\nb", b"\n\n\nab\n", b"#a\n#\n", b"first\nsecond\n\n# third\n \nsixth\n" * 7]
)
@pytest.mark.parametrize("block_bytes", [12, 2**20])
def test_lines_and_rows_are_counted(tmp_path, content: bytes, block_bytes: int) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    lines = content.removesuffix(b"\n").split(b"\n")
    next_line = 1
    with ByteStream(str(path)) as stream:
        blocks = TextBlocks(stream, block_bytes=block_bytes)
        for block in blocks.read(lambda line, longest: pytest.fail(f"line {line} is too long")):
            own = lines[next_line - 1 : next_line - 1 + block.n_lines]
            assert bytes(block.text) == b"".join(line + b"\n" for line in own)
            assert block.first_line == next_line
            without_row = [line for line in own if line == b"" or line.startswith(b"#")]
            assert count_lines_without_row(block.text) == len(without_row)
            next_line += block.n_lines
    assert next_line == len(lines) + 1
