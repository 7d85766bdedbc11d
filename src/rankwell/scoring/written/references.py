"""Rankers that a written description refers to: ranker files, and models of other libraries."""

from __future__ import annotations

from pathlib import Path

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.reader import import_model
from rankwell.scoring.inputs import InputGroup
from rankwell.scoring.ranker_file import is_ranker_file, read_ranker_file
from rankwell.scoring.trees import TreeInputs
from rankwell.scoring.written.nodes import Node


def read_model(path: Path) -> RankerDescription:
    """The description in a ranker file, or of a model that is imported."""
    return read_ranker_file(path).description if is_ranker_file(path) else import_model(path)


class References:
    """The files that one description refers to, each read once; their paths are relative to `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, RankerDescription] = {}

    def ranker(self, entries: dict[str, Node]) -> tuple[RankerDescription, tuple[str, ...]]:
        """The ranker of {file, part, features}, and the names of the features that it reads here."""
        description = self._file(entries["file"])
        if "part" in entries:
            description = _part(description, entries["part"])
        if "features" not in entries:
            return description, description.feature_names
        names = tuple(entries["features"].texts("features"))
        if len(names) != description.n_features:
            raise entries["features"].error(
                f"the ranker reads {description.n_features} features, {len(names)} names are given."
            )
        return description, names

    def trees(self, node: Node) -> tuple[list[InputGroup], tuple[str, ...]]:
        """The groups of trees of {file, part, features, group}, and the features that they read."""
        entries = node.mapping("trees", ("file", "part", "features", "group"), ("file",))
        description, names = self.ranker(entries)
        groups: list[InputGroup] = [group for group in description.inputs if isinstance(group, TreeInputs)]
        if not groups:
            raise entries["file"].error(f"{entries['file'].content} has no trees.")
        if "group" in entries:
            number = entries["group"].whole_number("group", 1)
            if number > len(groups):
                raise entries["group"].error(f"there are {len(groups)} groups of trees, got {number}.")
            groups = [groups[number - 1]]
        return groups, (*names, *(part.name for part in description.parts))

    def _file(self, node: Node) -> RankerDescription:
        path = self._folder / node.text("file")
        if path not in self._read:
            if not path.is_file():
                raise node.error(f"there is no file {path}. Paths are relative to the folder of this file.")
            try:
                self._read[path] = read_model(path)
            except FileFormatError as cause:
                raise node.error(str(cause)) from cause
        return self._read[path]


def _part(description: RankerDescription, node: Node) -> RankerDescription:
    for name in node.text("part").split("/"):
        parts = {part.name: part.description for part in description.parts}
        if name not in parts:
            known = ", ".join(map(repr, parts)) or "none"
            raise node.error(f"there is no part {name!r}; the ranker's parts are {known}.")
        description = parts[name]
    return description
