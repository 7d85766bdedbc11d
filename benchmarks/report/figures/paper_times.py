"""Times that a paper prints, as they are written in results: "DCM 2,791 s, OST 2,481 s, GPU 276 s (raw features)"."""

from __future__ import annotations

import re

from benchmarks.row import Row

_TIME = re.compile(r"(?P<what>[A-Za-z]\w*) (?P<number>[\d,]+(?:\.\d+)?) (?P<unit>s|ms)\b")


def paper_times(row: Row) -> dict[str, float]:
    """Seconds, by what took them."""
    return printed_times(row.paper if isinstance(row.paper, str) else "")


def printed_times(text: str) -> dict[str, float]:
    unit = {"s": 1.0, "ms": 1e-3}
    return {time["what"]: float(time["number"].replace(",", "")) * unit[time["unit"]] for time in _TIME.finditer(text)}
