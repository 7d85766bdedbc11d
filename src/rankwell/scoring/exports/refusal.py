"""What a format cannot say is an error that names it."""

from __future__ import annotations

from rankwell.errors import ParameterError
from rankwell.scoring.normaliser import Normaliser


def cannot_say(format_title: str, what: str, remedy: str = "") -> ParameterError:
    """The error of a format that has no words for `what` in a ranker."""
    advice = remedy or "ONNX and C can: export it to onnx or c."
    return ParameterError(f"{format_title} cannot say {what}. {advice}")


def check_normaliser(format_title: str, normaliser: Normaliser) -> None:
    """Refuse a normaliser that reads all documents of a query in a format that scores one document at a time."""
    if normaliser.needs_queries:
        raise cannot_say(
            format_title,
            f"the normaliser {normaliser.name}, which reads all documents of a query: it scores one document at a time",
            "Export to onnx or c, which take a whole query, or train with another normaliser: normalize='standard' or "
            "'none' (--normalize on the command line).",
        )
