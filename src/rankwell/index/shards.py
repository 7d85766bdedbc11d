"""A collection in shards: a folder of indexes that opens as one.

The file `shards.json` names the shards; it is written when all of them are committed. Documents are in the order of the
shards, and everything is counted over all of them, so that scores are those of one index with all documents.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwell.errors import DataError, FileFormatError
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.streams.json_text import parse_json
from rankwell.streams.whole_files import replace_file

SHARDS_NAME = "shards.json"
_FORMAT, _VERSION = "rankwell-shards", 1
_SHARD_NAME = re.compile(r"shard-[0-9]{4,}-[0-9]{4,}", re.ASCII)
_NAMED = 6


class ShardedIndex(Index):
    """The shards of a folder as one index: `Index.open` of the folder.

    Parameters
    ----------
    folder : Path
    shards : sequence of Index
        In their order, all with the same analysis.
    """

    def __init__(self, folder: Path, shards: Sequence[Index]) -> None:
        _check_alike(shards)
        schemas = [(str(shard.path), shard.schema.to_json()) for shard in shards]
        segments = [segment for shard in shards for segment in shard.segments]
        live = [alive for shard in shards for alive in shard.live]
        schema = Schema.from_json({**shards[0].schema.to_json(), **joined_schema(schemas)})
        generation = sum(shard.generation for shard in shards)
        super().__init__(segments, live, schema, shards[0].analysis, generation=generation)
        self.shards = tuple(shards)
        self.path, self._absolute_path = folder, folder.absolute()

    @property
    def commit(self) -> str:
        """A digest of the shards' commits."""
        return hashlib.sha256("\n".join(shard.commit for shard in self.shards).encode()).hexdigest()

    def reopen(self) -> Index:
        """The newest generation of every shard; this one if nothing was committed since."""
        assert self.path is not None
        if shard_folders(self.path) != [shard.path for shard in self.shards]:
            return Index.open(self.path)
        newest = [shard.reopen() for shard in self.shards]
        is_same = all(new is old for new, old in zip(newest, self.shards, strict=True))
        return self if is_same else ShardedIndex(self.path, newest)


def open_shards(folder: Path, shards: Sequence[Path]) -> ShardedIndex:
    """The shards of `folder` as one index."""
    return ShardedIndex(folder, [Index.open(shard) for shard in shards])


def shard_folders(folder: Path) -> list[Path] | None:
    """The folders of a collection's shards, in order; None if `folder` is not a folder of shards."""
    path = folder / SHARDS_NAME
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        noted = parse_json(content)
        if noted["format"] != _FORMAT or noted["version"] != _VERSION:
            raise ValueError(f"format {noted['format']!r}, version {noted['version']!r}")
        names = noted["shards"]
        if not names or not all(_SHARD_NAME.fullmatch(name) for name in names):
            raise ValueError("it does not name shards")
    except (LookupError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} is unreadable ({cause}). Build the index again.") from cause
    return [folder / name for name in names]


def write_shards(folder: Path, names: Sequence[str]) -> None:
    """Make the folder's shards visible, which are committed, in place of those before."""
    noted = {"format": _FORMAT, "version": _VERSION, "shards": list(names)}
    replace_file(folder / SHARDS_NAME, json.dumps(noted, indent=1).encode())


def joined_schema(schemas: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The fields of all shards: those of each shard must be the first ones of the shard with the most.

    schemas : the folder of each shard, for messages, and its schema as `Schema.to_json` writes it
    """
    joined: dict[str, Any] = {}
    for kind in ("streams", "statics", "keywords"):
        longest, most = max(schemas, key=lambda one: len(one[1].get(kind, ())))
        names = most.get(kind, [])
        for folder, schema in schemas:
            own = schema.get(kind, [])
            if own != names[: len(own)]:
                raise DataError(
                    f"the {kind} of {folder} ({listed(own)}) are in another order than those of {longest} "
                    f"({listed(names)}). Build the shards so that their first documents have the same fields."
                )
        joined[kind] = names
    dates = [schema.get("dates", []) for _, schema in schemas]
    joined["dates"] = list(dict.fromkeys(name for own in dates for name in own if name in joined["statics"]))
    for folder, schema in schemas:
        wrong = [name for name in schema["statics"] if name in joined["dates"] and name not in schema.get("dates", [])]
        if wrong:
            raise DataError(
                f"{listed(wrong)} of {folder} are numbers, in other shards dates. Build all shards with the same "
                f"options."
            )
    vectors = [schema.get("vectors", {}) for _, schema in schemas]
    if any(own != vectors[0] for own in vectors):
        raise DataError("the shards have different vectors. Build all shards with the same options.")
    joined |= {"vectors": vectors[0]} if vectors[0] else {}
    orders = {schema.get("static_order") for _, schema in schemas}
    if len(orders) == 1 and None not in orders:
        joined["static_order"] = orders.pop()
    return joined


def listed(names: Sequence[str]) -> str:
    """The first names, for a message."""
    more = ", ..." if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more or "none"


def _check_alike(shards: Sequence[Index]) -> None:
    for shard in shards:
        if shard.analysis != shards[0].analysis:
            raise DataError(
                f"{shard.path} cuts text into words otherwise than {shards[0].path}. Build all shards with the same "
                f"options."
            )
