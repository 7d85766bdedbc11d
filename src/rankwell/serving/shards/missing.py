"""What a node may lack: a request names a commit, a census and a ranker, and is refused without them."""

from __future__ import annotations

from rankwell.errors import RankwellError


class MissingError(RankwellError):
    """The node does not have what a request names. kind : "commit", "census" or "ranker" """

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        super().__init__(f"this node does not have the {kind} {name}.")
