"""The error of a call that names a document which is not there."""

from __future__ import annotations

from rankwell.errors import DataError


class UnknownDocumentError(DataError):
    """A document is not in the index, or not among the results that are asked about."""


def unknown_document(document: str | int) -> UnknownDocumentError:
    return UnknownDocumentError(
        f"there is no document {document!r} in the index. Ids are as they were given when it was built."
    )
