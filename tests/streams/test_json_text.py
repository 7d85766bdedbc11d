"""JSON that others wrote: whatever is wrong is a ValueError."""

import pytest

from rankwell.streams.json_text import DEEPEST, parse_json


def test_json_is_read():
    assert parse_json('{"a": [1, 2.5, null, "x"]}') == {"a": [1, 2.5, None, "x"]}
    assert parse_json(b"[]") == []


@pytest.mark.parametrize("text", ["", "{", "[1", "NaN", "[-Infinity]", '{"a": Infinity}', b"\xff", "9" * 5000])
def test_what_is_not_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}")])
def test_nesting_has_a_limit(start, end):
    parse_json(start * DEEPEST + "1" + end * DEEPEST)
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(ValueError, match="nested more than 100 deep"):
            parse_json(start * depth + "1" + end * depth)
