"""What a format cannot say is an error that names it."""

from __future__ import annotations

from rankwell.errors import ParameterError


def cannot_say(format_title: str, what: str, remedy: str = "") -> ParameterError:
    """The error of a format that has no words for `what` in a ranker."""
    advice = remedy or "ONNX and C can: export it to onnx or c."
    return ParameterError(f"{format_title} cannot say {what}. {advice}")
