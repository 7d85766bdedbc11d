"""A YAML file as nodes that know their place, so that every error names line and column.

Only the structure is taken from the YAML parser: texts stay texts until a reader asks for a number, so nothing in a
file chooses a type, and no object is ever constructed from it. Aliases, tags and deep nesting are refused: a short
file cannot become a large one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rankwell.errors import FileFormatError

DEEPEST_NESTING = 16
LARGEST_FILE = 64 * 2**20

_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\.inf|\.Inf|\.INF)")


@dataclass(frozen=True, eq=False)
class Node:
    """A text, a list of nodes, or a mapping from texts to nodes, and where it begins: line and column from 1.

    keys : the nodes of a mapping's keys
    """

    path: str
    line: int
    column: int
    content: str | list[Node] | dict[str, Node]
    keys: dict[str, Node] = field(default_factory=dict)

    def error(self, message: str) -> FileFormatError:
        """An error at this place."""
        return FileFormatError(f"{self.path}, line {self.line}, column {self.column}: {message}")

    def text(self, what: str) -> str:
        if not isinstance(self.content, str) or not self.content:
            raise self.error(f"{what} must be a text, got {self.kind}.")
        return self.content

    def number(self, what: str) -> float:
        """A number; .inf is infinite, as in YAML."""
        content = self.content if isinstance(self.content, str) else self.kind
        if _NUMBER.fullmatch(content) is None:
            raise self.error(f"{what} must be a number, got {content if content == self.kind else repr(content)}.")
        return float(content.replace(".", "", 1)) if content.lower().endswith("inf") else float(content)

    def finite(self, what: str) -> float:
        number = self.number(what)
        if not math.isfinite(number):
            raise self.error(f"{what} must be a finite number, got {self.content}.")
        return number

    def whole_number(self, what: str, least: int) -> int:
        number = self.number(what)
        if number != number // 1 or number < least:
            raise self.error(f"{what} must be a whole number, {least} or more, got {self.content}.")
        return int(number)

    def choice(self, what: str, allowed: Collection[str]) -> str:
        text = self.text(what)
        if text not in allowed:
            raise self.error(f"{what} must be one of {', '.join(allowed)}, got {text!r}{_meant(text, allowed)}.")
        return text

    def items(self, what: str) -> list[Node]:
        if not isinstance(self.content, list):
            raise self.error(f"{what} must be a list, got {self.kind}.")
        return self.content

    def numbers(self, what: str) -> list[float]:
        return [item.number(f"a number of {what}") for item in self.items(what)]

    def texts(self, what: str) -> list[str]:
        return [item.text(f"an item of {what}") for item in self.items(what)]

    def mapping(
        self, what: str, allowed: Collection[str] | None = None, required: Collection[str] = ()
    ) -> dict[str, Node]:
        """The entries by key; only `allowed` keys, and all `required` ones."""
        if not isinstance(self.content, dict):
            raise self.error(f"{what} must be a mapping (key: value), got {self.kind}.")
        for key in self.content:
            if allowed is not None and key not in allowed:
                known = ", ".join(allowed) or "none"
                raise self.keys[key].error(f"{what} has no {key!r}{_meant(key, allowed)}. Its keys are {known}.")
        for key in required:
            if key not in self.content:
                raise self.error(f"{what} lacks {key!r}.")
        return self.content

    def only_entry(self, what: str, allowed: Collection[str]) -> Iterable[tuple[str, Node]]:
        """The only entry of a mapping that says what something is: `linear: {...}`."""
        entries = self.mapping(what, allowed)
        if len(entries) != 1:
            raise self.error(f"{what} has one key, one of {', '.join(allowed)}, got {', '.join(entries) or 'none'}.")
        return entries.items()

    @property
    def kind(self) -> str:
        if isinstance(self.content, str):
            return f"the text {self.content!r}" if self.content else "nothing"
        return "a list" if isinstance(self.content, list) else "a mapping"


def parse_nodes(content: bytes, path: str) -> Node:
    """The only document of a YAML file."""
    import yaml

    if len(content) > LARGEST_FILE:
        raise FileFormatError(f"{path} has {len(content):,} bytes, at most {LARGEST_FILE:,} are read.")
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        events = yaml.parse(content.decode("utf-8-sig"), Loader=loader)
        return _Composer(events, path).document()
    except UnicodeDecodeError as cause:
        byte = content[cause.start]
        raise FileFormatError(f"{path} is not UTF-8 text: byte {cause.start} is {byte:#04x}.") from cause
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        problem = getattr(cause, "problem", None) or str(cause)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise FileFormatError(f"{path}{place}: this is not YAML: {' '.join(problem.split())}.") from cause


class _Composer:
    """Nodes from the parser's events."""

    def __init__(self, events: Iterator[Any], path: str) -> None:
        self._events = events
        self._path = path

    def document(self) -> Node:
        import yaml

        root = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise self._node(event, "").error("a second document begins here; a file holds one.")
                root = self._compose(next(self._events), 1)
        if root is None:
            raise FileFormatError(f"{self._path} is empty.")
        return root

    def _compose(self, event: Any, nesting: int) -> Node:
        import yaml

        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._node(event, "").error("anchors and aliases (& and *) are not supported. Write the value again.")
        if event.tag is not None:
            raise self._node(event, "").error(f"tags are not supported, got {event.tag}.")
        if nesting > DEEPEST_NESTING:
            raise self._node(event, "").error(f"lists and mappings may be nested {DEEPEST_NESTING} deep.")
        if isinstance(event, yaml.ScalarEvent):
            return self._node(event, event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._node(event, list(self._children(yaml.SequenceEndEvent, nesting)))
        entries = self._entries(nesting)
        return self._node(
            event,
            {name: value for name, (_, value) in entries.items()},
            {name: key for name, (key, _) in entries.items()},
        )

    def _children(self, end: type, nesting: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), end):
            yield self._compose(event, nesting + 1)

    def _entries(self, nesting: int) -> dict[str, tuple[Node, Node]]:
        import yaml

        entries: dict[str, tuple[Node, Node]] = {}
        children = self._children(yaml.MappingEndEvent, nesting)
        for key in children:
            name = key.text("a key")
            if name in entries:
                raise key.error(f"the key {name!r} is there twice.")
            value = next(children)
            # An error about an entry is best shown at its key, unless the value has a place of its own.
            place = value if value.content else key
            entries[name] = key, Node(self._path, place.line, place.column, value.content, value.keys)
        return entries

    def _node(self, event: Any, content: Any, keys: dict[str, Node] | None = None) -> Node:
        return Node(self._path, event.start_mark.line + 1, event.start_mark.column + 1, content, keys or {})


def _meant(text: str, allowed: Collection[str]) -> str:
    near = difflib.get_close_matches(text, allowed, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
