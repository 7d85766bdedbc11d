"""How the rows of a feature file were chosen: what a first pass found, and judged documents that were added to it.

A ranker is served what the first pass finds. Rows from outside it teach a ranker what it will never see, and measuring
on them flatters. So a data file says where its rows come from: text in a comment line after the features' names,

# candidates: {"source": "judged+top", "depth": 100, "outside": 812, "first_pass": "bm25.whole"}

Parquet and Feather in their metadata. CSV has no place for it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any

from rankwell.streams.decompression import ByteStream

logger = logging.getLogger("rankwell")

N_CANDIDATES = 100
"""How many documents the first pass gives to a ranker, in training and in serving, unless told otherwise."""

LINE = b"# candidates: {"
_LONGEST_LINE = 1_000
_LONGEST_HEAD = 2**24
_FIRST_LOOK = 2**14


@dataclass
class Candidates:
    """Where the rows of a data set come from.

    source : "top", "judged" or "judged+top"
    depth : how many documents of each query the first pass gave
    outside : how many rows are not among those
    first_pass : the feature that the first pass ranked by; None if the data has no such feature
    """

    source: str
    depth: int
    outside: int
    first_pass: str | None = None
    _is_told: bool = field(default=False, repr=False, compare=False)

    def warn_of_training(self) -> None:
        """Log that rows are from outside the first pass, if some are; once."""
        if self.outside and not self._is_told:
            self._is_told = True
            logger.warning(
                "%s rows of the training data are judged documents that the first pass did not find (%s). A ranker "
                "never meets such documents when it serves, and learns to tell them by how little they match. Train on "
                "data made with candidates 'top'.",
                f"{self.outside:,}",
                self.source,
            )

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "depth": self.depth, "outside": self.outside, "first_pass": self.first_pass}

    @classmethod
    def from_json(cls, noted: Any) -> Candidates | None:
        """What `to_json` gave; None for anything else."""
        if not isinstance(noted, dict):
            return None
        source, depth, outside, first_pass = map(noted.get, ("source", "depth", "outside", "first_pass"))
        is_sound = isinstance(source, str) and (first_pass is None or isinstance(first_pass, str))
        if not is_sound or type(depth) is not int or type(outside) is not int:
            return None
        return cls(str(source), depth, outside, first_pass)

    def line(self) -> bytes:
        """The comment line of a text file."""
        return LINE[:-1] + json.dumps(self.to_json()).encode() + b"\n"


def peek_candidates(stream: ByteStream) -> Candidates | None:
    """What the comment lines at the beginning of a text say; nothing is consumed from the stream."""
    looked = _FIRST_LOOK
    head = stream.peek(looked)
    # The line of the features' names may be long.
    while head.startswith(b"#") and head.count(b"\n") < 2 and len(head) == looked and looked < _LONGEST_HEAD:
        looked *= 4
        head = stream.peek(looked)
    for line in head.split(b"\n", 2)[:2]:
        if line.startswith(LINE) and len(line) <= _LONGEST_LINE:
            try:
                return Candidates.from_json(json.loads(line[len(LINE) - 1 :]))
            except ValueError:
                return None
    return None
