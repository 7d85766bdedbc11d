"""The rankers of a server by name, one of them the default; BM25 alone is always there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankwell.errors import ParameterError
from rankwell.scoring.ranker_file import RankerFile

BM25_ALONE = "bm25"
"""The name of ranking by selection alone."""


@dataclass(frozen=True, eq=False)
class NamedRankers:
    """Ranker files by name.

    version : counts changes of rankers, and of what they rank
    default : the ranker that is used if none is named
    """

    version: int
    files: Mapping[str, RankerFile]
    default: str

    def ranker(self, name: str | None) -> str:
        """The name of an existing ranker; the default's for None."""
        chosen = self.default if name is None else name
        if chosen != BM25_ALONE and chosen not in self.files:
            known = ", ".join((BM25_ALONE, *self.files))
            raise ParameterError(f"must be one of {known}, got {chosen!r}.", parameter="ranker")
        return chosen

    def with_features(self, name: str | None) -> str:
        """The name of an existing ranker that reads features, which BM25 alone does not."""
        chosen = self.ranker(name)
        if chosen == BM25_ALONE:
            raise ParameterError(
                f"must be a ranker with features, which {BM25_ALONE} has not. There are: "
                f"{', '.join(self.files) or 'none'}.",
                parameter="ranker",
            )
        return chosen

    def described(self) -> list[dict[str, Any]]:
        """The rankers, as `GET /rankers` lists them."""
        rankers: list[dict[str, Any]] = [{"name": BM25_ALONE, "kind": BM25_ALONE, "features": 0, "cascade": False}]
        for name, file in self.files.items():
            description = file.description
            is_cascade = description.first_pass is not None
            rankers.append(
                {"name": name, "kind": file.ranker, "features": description.n_features, "cascade": is_cascade}
            )
        return [ranker | {"default": ranker["name"] == self.default} for ranker in rankers]

    def without(self, name: str) -> dict[str, RankerFile]:
        """The files without one that is not the default."""
        if name not in self.files:
            raise ParameterError(f"must be one of {', '.join(self.files)}, got {name!r}.", parameter="name")
        if name == self.default:
            raise ParameterError("must not be the default ranker, which others expect.", parameter="name")
        return {other: file for other, file in self.files.items() if other != name}


def checked_name(name: str) -> str:
    """A name that a ranker may have."""
    if not name or name == BM25_ALONE or not all(letter.isalnum() or letter in "-_." for letter in name):
        raise ParameterError(
            f"must consist of letters, digits, '-', '_' and '.', and not be {BM25_ALONE!r}, got {name!r}.",
            parameter="name",
        )
    return name
