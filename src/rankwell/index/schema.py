"""The names of an index's streams, statics and keyword fields, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from rankwell.corpus.document import control_character, shown
from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.kernels.vectors.rules import VectorPlace

# A term has a posting list for each stream, and a document a number for each static, even if they are empty: if every
# document named its fields differently, an index would be large and slow beyond use.
MOST_STREAMS = 256
MOST_STATICS = 1024
LONGEST_NAME = 256
MOST_NUMBERS = 65_536
VECTOR_KINDS = ("float32", "int8")


class Schema:
    """Which fields are streams of words, which are static numbers, and which are keywords.

    The lists only grow, at their ends: a name keeps its number, and a segment has the names that existed when it was
    built. Whether a field is a stream or a static depends on its first value, a text or a number, unless it is named
    here. Keywords and dates are always named.

    Parameters
    ----------
    streams, statics : iterable of str
        Names known from the start, in order.
    keywords : iterable of str
        Fields whose texts are values: found as a whole, letter by letter, to filter, sort and count by.
    dates : iterable of str
        Fields whose texts are dates; they are statics, in seconds since 1970.
    forward : iterable of str or "all"
        Streams of which the forward index keeps the documents' words in order, or all streams that there will be.
    static_order : str, optional
        A static by whose falling values every segment has its documents, those without one last, so that a search can
        stop after the first that match (`rankwell.index.search.static_order`).
    vectors : mapping of str to int or (int, str)
        Fields whose values are lists of so many numbers, kept as "float32" (the default) or "int8", for features.

    Examples
    --------
    >>> import rankwell
    >>> schema = rankwell.Schema(keywords=["brand"], dates=["added"])
    >>> with rankwell.IndexWriter("shop.idx", schema=schema) as writer:
    ...     writer.add([{"id": "1", "name": "red shoes", "brand": "Acme", "added": "2024-05-31"}])
    ...     writer.add([{"id": "2", "name": "red socks", "brand": "Other", "added": "2023"}])
    ...     generation = writer.commit()
    >>> rankwell.Index.open("shop.idx").search("red", filter="brand:Acme").ids
    ['1']
    """

    def __init__(
        self,
        streams: Iterable[str] = (),
        statics: Iterable[str] = (),
        keywords: Iterable[str] = (),
        dates: Iterable[str] = (),
        forward: Iterable[str] | Literal["all"] = (),
        static_order: str | None = None,
        vectors: Mapping[str, int | tuple[int, str]] | None = None,
    ) -> None:
        self.streams: list[str] = []
        self.statics: list[str] = []
        self.keywords: list[str] = []
        self.dates: list[str] = []
        self._stream_numbers: dict[str, int] = {}
        self._static_numbers: dict[str, int] = {}
        self._keyword_numbers: dict[str, int] = {}
        for name in streams:
            self._append(name, self.streams, self._stream_numbers)
        for name in statics:
            self._append(name, self.statics, self._static_numbers)
        self.declare(keywords, dates)
        self.forward: Literal["all"] | tuple[str, ...] = "all" if forward == "all" else self._forward(forward)
        if static_order is not None and static_order not in self._static_numbers:
            self._append(static_order, self.statics, self._static_numbers)
        self.static_order = static_order
        self.vectors = {name: self._vector(name, given) for name, given in (vectors or {}).items()}

    @property
    def n_streams(self) -> int:
        return len(self.streams)

    @property
    def n_statics(self) -> int:
        return len(self.statics)

    @property
    def n_keywords(self) -> int:
        return len(self.keywords)

    @property
    def vector_places(self) -> dict[str, VectorPlace]:
        """Where each vector is in a document's row of words."""
        places, start = {}, 0
        for name, (dimension, kind) in self.vectors.items():
            places[name] = VectorPlace(start, dimension, kind == "int8")
            start += places[name].n_words
        return places

    @property
    def vector_words(self) -> int:
        """The 32-bit words of a document's row of vectors."""
        return sum(place.n_words for place in self.vector_places.values())

    def declare(self, keywords: Iterable[str], dates: Iterable[str]) -> None:
        """Name keyword fields and dates; those that are known as such stay as they are."""
        for name in keywords:
            if name not in self._keyword_numbers:
                self._append(name, self.keywords, self._keyword_numbers)
        for name in dates:
            if name not in self.dates:
                if name not in self._static_numbers:
                    self._append(name, self.statics, self._static_numbers)
                self.dates.append(name)

    def kind_of(self, name: str) -> str | None:
        """The kind of a field: stream, static, keyword or date; None if there is no such field."""
        if name in self._stream_numbers:
            return "stream"
        if name in self._keyword_numbers:
            return "keyword"
        if name in self._static_numbers:
            return "date" if name in self.dates else "static"
        return None

    @property
    def forward_streams(self) -> list[int]:
        """The numbers of the streams that the forward index has."""
        names = self.streams if self.forward == "all" else self.forward
        return sorted(self._stream_numbers[name] for name in names)

    def fields(self) -> list[str]:
        """The names of all fields."""
        return [*self.streams, *self.statics, *self.keywords]

    def keyword_number(self, name: str) -> int:
        """The number of a keyword field."""
        return self._keyword_numbers[name]

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
        """The numbers of a document's streams and statics. If one name is refused, none of the new ones is added."""
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

    def to_json(self) -> dict[str, Any]:
        """What an index records, as a dictionary of JSON values."""
        recorded: dict[str, Any] = {"streams": list(self.streams), "statics": list(self.statics)}
        if self.keywords or self.dates:
            recorded |= {"keywords": list(self.keywords), "dates": list(self.dates)}
        if self.forward:
            recorded["forward"] = self.forward if self.forward == "all" else list(self.forward)
        if self.static_order is not None:
            recorded["static_order"] = self.static_order
        if self.vectors:
            recorded["vectors"] = {name: list(given) for name, given in self.vectors.items()}
        return recorded

    @classmethod
    def from_json(cls, recorded: dict[str, Any]) -> Schema:
        keywords, dates = recorded.get("keywords", ()), recorded.get("dates", ())
        if not set(dates) <= set(recorded["statics"]):
            raise ParameterError("a date is not among the statics.")
        forward = recorded.get("forward", ())
        if forward != "all" and not set(forward) <= set(recorded["streams"]):
            raise ParameterError("the forward index has a stream that is not among the streams.")
        static_order = recorded.get("static_order")
        if static_order is not None and static_order not in recorded["statics"]:
            raise ParameterError("the static order is not among the statics.")
        vectors = {name: tuple(given) for name, given in recorded.get("vectors", {}).items()}
        return cls(recorded["streams"], recorded["statics"], keywords, dates, forward, static_order, vectors)

    def copy(self) -> Schema:
        return Schema(
            self.streams, self.statics, self.keywords, self.dates, self.forward, self.static_order, self.vectors
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        declared = f", keywords={self.keywords!r}, dates={self.dates!r}" if self.keywords or self.dates else ""
        declared += f", forward={self.forward!r}" if self.forward else ""
        declared += f", static_order={self.static_order!r}" if self.static_order is not None else ""
        declared += f", vectors={self.vectors!r}" if self.vectors else ""
        return f"Schema(streams={self.streams!r}, statics={self.statics!r}{declared})"

    def _vector(self, name: str, given: int | tuple[int, str]) -> tuple[int, str]:
        """The numbers of a vector, and how they are kept."""
        dimension, kind = (given, "float32") if isinstance(given, int) else given
        shown = f"{dimension:,} numbers of {kind}" if isinstance(dimension, int) else repr(dimension)
        if type(dimension) is not int or not 1 <= dimension <= MOST_NUMBERS or kind not in VECTOR_KINDS:
            raise ParameterError(
                f"of {name!r} must be 1 to {MOST_NUMBERS:,} numbers of {' or '.join(VECTOR_KINDS)}, got {shown}.",
                parameter="vectors",
            )
        if self.kind_of(name) is not None:
            raise ParameterError(
                f"field {name!r} is named twice. A field is one stream, static, keyword field or vector."
            )
        return dimension, kind

    def _forward(self, names: Iterable[str]) -> tuple[str, ...]:
        """The streams of the forward index; those that are not known yet become streams."""
        if isinstance(names, str):
            raise ParameterError(f"must be 'all' or a list of streams, got {names!r}.", parameter="forward")
        chosen = tuple(dict.fromkeys(names))
        for name in chosen:
            if name not in self._stream_numbers:
                self._append(name, self.streams, self._stream_numbers)
        return chosen

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
        most = MOST_STATICS if names is self.statics else MOST_STREAMS
        if len(names) == most:
            raise ParameterError(
                f"field {name!r} is one too many: an index has at most {MOST_STREAMS:,} streams, {MOST_STREAMS:,} "
                f"keyword fields and {MOST_STATICS:,} statics. Put such values into one field, or leave them out (",
                Parameter("ignored"),
                ").",
            )
        if self.kind_of(name) is not None:
            raise ParameterError(f"field {name!r} is named twice. A field is one stream, static or keyword field.")
        numbers[name] = len(names)
        names.append(name)
        return numbers[name]
