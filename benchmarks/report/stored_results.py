"""Stored results by question, case and name, for what is drawn and written from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.row import Row


class MissingResultError(LookupError):
    """A figure needs a result that has not been measured."""


class StoredResults:
    """The documents of benchmarks/results/, in the order in which they are shown."""

    def __init__(self, documents: Sequence[dict[str, Any]]) -> None:
        self.documents = list(documents)

    def document(self, name: str, machine: str | None = None) -> dict[str, Any]:
        """The results of a question, on a machine or on the first that has some."""
        for document in self.documents:
            if document["name"] == name and machine in (None, document["machine"]["short_name"]):
                return document
        raise MissingResultError(f"there are no results of {name}" + (f" on {machine}" if machine else ""))

    def has(self, name: str, machine: str | None = None) -> bool:
        try:
            self.document(name, machine)
        except MissingResultError:
            return False
        return True

    def rows(self, name: str, machine: str | None = None) -> list[Row]:
        return rows_of(self.document(name, machine))

    def row(self, name: str, case: str, machine: str | None = None) -> Row:
        """The first row of that case."""
        for row in self.rows(name, machine):
            if row.case == case:
                return row
        raise MissingResultError(f"{name} has no row {case!r}")

    def minimum(self, name: str, timed: str, machine: str | None = None) -> float:
        """Seconds: the shortest of the times of that name."""
        for timing in self.document(name, machine)["timings"]:
            if timing["name"] == timed:
                return float(timing["minimum_s"])
        raise MissingResultError(f"{name} has no times of {timed!r}")

    def minima(self, name: str, machine: str | None = None) -> dict[str, float]:
        """All times of a question: the shortest in seconds, by name."""
        return {timing["name"]: float(timing["minimum_s"]) for timing in self.document(name, machine)["timings"]}


def rows_of(document: dict[str, Any]) -> list[Row]:
    return [Row.from_json(row) for row in document["rows"]]
