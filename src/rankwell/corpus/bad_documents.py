"""Bad documents: the first one is an error, or each is named, left out and counted."""

from __future__ import annotations

import logging

from rankwell.errors import DataError, Parameter, ParameterError

logger = logging.getLogger("rankwell")

# A corpus that is bad all through would otherwise bury the beginning of what is said about it.
MOST_NAMED = 100


class BadDocuments:
    """What becomes of documents that cannot be indexed.

    One of these may serve the reader of a corpus and the writer of an index, so that they count together.

    Parameters
    ----------
    rule : "error" or "skip"

    Attributes
    ----------
    count : int
        How many were left out.
    """

    def __init__(self, rule: str) -> None:
        if rule not in ("error", "skip"):
            raise ParameterError(f"must be 'error' or 'skip', got {rule!r}.", parameter="on_bad_document")
        self.count = 0
        self._is_error = rule == "error"
        self._n_reported = 0

    @classmethod
    def of(cls, rule: str | BadDocuments) -> BadDocuments:
        """Those of a rule by its name, or the ones given."""
        return rule if isinstance(rule, BadDocuments) else cls(rule)

    def add(self, error: DataError) -> None:
        """One more, with its place and what is wrong: raised, or logged as a warning."""
        if self._is_error:
            skip = Parameter("on_bad_document", "skip")
            raise DataError(*error.pieces, " (", skip, " leaves bad documents out.)") from error
        self.count += 1
        if self.count <= MOST_NAMED:
            logger.warning("left out: %s", error)
        elif self.count == MOST_NAMED + 1:
            logger.warning("further bad documents are left out and counted, but not named.")

    def report(self) -> None:
        """Log how many were left out since the last report; nothing where none were."""
        n_new = self.count - self._n_reported
        self._n_reported = self.count
        if n_new:
            logger.warning("%s left out.", "1 bad document was" if n_new == 1 else f"{n_new:,} bad documents were")
