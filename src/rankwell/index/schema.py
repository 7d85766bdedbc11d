"""The names of an index's streams and statics, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rankwell.corpus.document import control_character, shown
from rankwell.errors import DataError, Parameter, ParameterError

# A term has a posting list for each stream, and a document a number for each static, also where they are empty: where
# documents have names of their own for their fields, an index would be large and slow beyond use.
MOST_STREAMS = 256
MOST_STATICS = 1024
LONGEST_NAME = 256


class Schema:
    """Which fields are streams of words and which are static numbers.

    Both lists only grow, at their ends: a name keeps its number, and a segment knows the names there were when it was
    built. A field is a stream or a static by what its first value is, a text or a number, unless it was named here.

    Parameters
    ----------
    streams, statics : iterable of str
        Names known from the start, in order.
    """

    def __init__(self, streams: Iterable[str] = (), statics: Iterable[str] = ()) -> None:
        self.streams: list[str] = []
        self.statics: list[str] = []
        self._stream_numbers: dict[str, int] = {}
        self._static_numbers: dict[str, int] = {}
        for name in streams:
            self._append(name, self.streams, self._stream_numbers)
        for name in statics:
            self._append(name, self.statics, self._static_numbers)

    @property
    def n_streams(self) -> int:
        return len(self.streams)

    @property
    def n_statics(self) -> int:
        return len(self.statics)

    def stream_number(self, name: str, place: object = None) -> int:
        """The number of a stream, a new one for a name not seen before."""
        number = self._stream_numbers.get(name)
        return self._add(name, place, self.streams, self._stream_numbers) if number is None else number

    def static_number(self, name: str, place: object = None) -> int:
        """The number of a static, a new one for a name not seen before."""
        number = self._static_numbers.get(name)
        return self._add(name, place, self.statics, self._static_numbers) if number is None else number

    def number_fields(
        self, streams: Iterable[str], statics: Iterable[str], place: object = None
    ) -> tuple[list[int], list[int]]:
        """The numbers of a document's streams and statics. Where one name is refused, none of the new ones stays."""
        n_streams, n_statics = self.n_streams, self.n_statics
        try:
            return (
                [self.stream_number(name, place) for name in streams],
                [self.static_number(name, place) for name in statics],
            )
        except DataError:
            for names, numbers, n_known in (
                (self.streams, self._stream_numbers, n_streams),
                (self.statics, self._static_numbers, n_statics),
            ):
                for name in names[n_known:]:
                    del numbers[name]
                del names[n_known:]
            raise

    def to_json(self) -> dict[str, list[str]]:
        """What an index records, as a dictionary of JSON values."""
        return {"streams": list(self.streams), "statics": list(self.statics)}

    @classmethod
    def from_json(cls, recorded: dict[str, Any]) -> Schema:
        return cls(recorded["streams"], recorded["statics"])

    def copy(self) -> Schema:
        return Schema(self.streams, self.statics)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Schema(streams={self.streams!r}, statics={self.statics!r})"

    def _add(self, name: str, place: object, names: list[str], numbers: dict[str, int]) -> int:
        """Number a new name, if it is not known as the other kind of field."""
        is_stream = names is self.streams
        where = "" if place is None else f"{place}, "
        if name in (self._static_numbers if is_stream else self._stream_numbers):
            kinds = ("a text", "numbers") if is_stream else ("a number", "texts")
            raise DataError(
                f"{where}field {name!r} holds {kinds[0]}, but other documents have {kinds[1]} there. Give the field "
                f"one kind of value in all documents, or give it another name in these."
            )
        try:
            return self._append(name, names, numbers)
        except ParameterError as cause:
            raise DataError(where, *cause.pieces) from cause

    def _append(self, name: str, names: list[str], numbers: dict[str, int]) -> int:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or control_character(name) is not None:
            raise ParameterError(
                f"the name of a field must be a text of 1 to {LONGEST_NAME} characters, none of them a control "
                f"character or line break, got {shown(name)}. Give the field another name."
            )
        most = MOST_STREAMS if names is self.streams else MOST_STATICS
        if len(names) == most:
            raise ParameterError(
                f"field {name!r} is one too many: an index has at most {MOST_STREAMS:,} streams and {MOST_STATICS:,} "
                f"statics. Put such values into one field, or leave them out (",
                Parameter("ignored"),
                ").",
            )
        if name in self._stream_numbers or name in self._static_numbers:
            raise ParameterError(f"field {name!r} is named twice. A field is one stream or one static.")
        numbers[name] = len(names)
        names.append(name)
        return numbers[name]
