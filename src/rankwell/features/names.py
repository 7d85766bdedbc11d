"""A feature's name describes it completely, so that a ranker file needs no other description of its features.

    feature    := stream | static | own | bm25f | expression
    stream     := kind "." stream's name [settings]          bm25.title, bm25.title(b=0.4;k1=0.9), tf_max.whole,
                                                             relevance_model.whole(terms=20)
    static     := "static." name
    own        := ("own" | "dot" | "cosine") "." name [settings]   own.click_rate, cosine.embedding(default=0)
    bm25f      := "bm25f" [settings]                         bm25f(b.title=0.5;weight.title=3)
    settings   := "(" parameter "=" number {";" parameter "=" number} ")"
    expression := label "=" text                             fresh = bm25.title / (1 + static.age)

Settings name only what differs from the catalogue, in alphabetical order. An expression reads features that come before
it in its set: by their names, expressions by their labels. In the name of a stream, static or own feature, the
characters % ( ) = ; and " are written as % and two hexadecimal digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rankwell.errors import ParameterError
from rankwell.features.catalogue import (
    BM25F,
    COMBINED,
    FEEDBACK_PARAMETERS,
    GIVEN,
    KINDS,
    PARAMETERS,
    RELEVANCE_MODEL,
    STATIC,
)
from rankwell.features.hits import WHOLE

_EXPRESSION = re.compile(r"\s*([^\s=()\"]+)\s*=\s*(.+)", re.DOTALL)
_SETTINGS = re.compile(r"(?P<name>.*)\((?P<settings>[^()]*)\)", re.DOTALL)


_USUAL = {**PARAMETERS, **FEEDBACK_PARAMETERS}
_OF_STREAMS = {**KINDS, RELEVANCE_MODEL.name: RELEVANCE_MODEL}
_SPECIAL = {ord(sign): f"%{ord(sign):02X}" for sign in '%()=;"'}
_ESCAPED = re.compile(r"%([0-9A-F]{2})")


def escaped(field: str) -> str:
    """The name of a stream or static as feature names contain it."""
    return field.translate(_SPECIAL)


def unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


@dataclass(frozen=True)
class Feature:
    """A parsed feature.

    name : as written in canonical form; label : its name in expressions
    kind : a name of the catalogue, "static" or "expression"; stream : a stream's or a static's name, or ""
    settings : parameters, every one that the kind reads; BM25F's may end in "." and a stream's name
    expression : the text of an expression
    """

    name: str
    label: str
    kind: str
    stream: str = ""
    settings: Mapping[str, float] = field(default_factory=dict)
    expression: str | None = None


def parse_feature(name: str) -> Feature:
    """The feature of this name; raises ParameterError if there is none."""
    expression = _EXPRESSION.fullmatch(name)
    if expression is not None:
        label, text = expression.group(1), expression.group(2).strip()
        return Feature(f"{label} = {text}", label, "expression", expression=text)
    plain, settings = _split_settings(name)
    kind, _, written = plain.partition(".")
    stream = unescaped(written)
    if kind == BM25F.name and not stream:
        return _named(BM25F.name, "", settings, BM25F.parameters)
    if kind == STATIC and stream and not settings:
        return Feature(f"{STATIC}.{escaped(stream)}", f"{STATIC}.{escaped(stream)}", STATIC, stream)
    if kind in GIVEN and stream:
        return _given(kind, stream, settings)
    if stream and kind in COMBINED and stream != WHOLE and not settings:
        text, canonical = COMBINED[kind].expression, f"{kind}.{escaped(stream)}"
        assert text is not None
        return Feature(canonical, canonical, kind, stream, expression=text.replace("{stream}", escaped(stream)))
    if stream and kind in _OF_STREAMS and (_OF_STREAMS[kind].of_whole or stream != WHOLE):
        return _named(kind, stream, settings, _OF_STREAMS[kind].parameters)
    raise ParameterError(f"{name!r} is not a feature: {_remedy(kind, stream, plain, settings)}")


def _given(kind: str, name: str, settings: Mapping[str, float]) -> Feature:
    """A feature whose values, or the query's vector, are given; without a default, a missing value is NaN."""
    plain = f"{kind}.{escaped(name)}"
    if not settings.keys() <= {"default"} or not all(map(math.isfinite, settings.values())):
        raise ParameterError(f"{plain} has the setting default, a finite number, and no others.")
    canonical = plain + (f"(default={_number(settings['default'])})" if settings else "")
    return Feature(canonical, canonical, kind, name, {"default": settings.get("default", math.nan)})


def feature_name(kind: str, stream: str, settings: Mapping[str, float]) -> str:
    """The canonical name: only settings that differ from the catalogue's are written."""
    changed = {name: value for name, value in sorted(settings.items()) if "." in name or value != _USUAL[name]}
    inner = ";".join(f"{escaped(name)}={_number(value)}" for name, value in changed.items())
    return kind + (f".{escaped(stream)}" if stream else "") + (f"({inner})" if inner else "")


def check_parameter(name: str, value: float) -> float:
    """Refuse a parameter outside what its formula allows."""
    low, high, includes_ends = {
        "k1": (0.0, 1e6, True),
        "b": (0.0, 1.0, True),
        "mu": (0.0, 1e12, False),
        "lambda": (0.0, 1.0, False),
        "delta": (0.0, 1.0, False),
        "weight": (0.0, 1e6, True),
        "documents": (1.0, 100.0, True),
        "terms": (1.0, 1000.0, True),
        "original": (0.0, 1.0, True),
    }[name]
    if not (low <= value <= high if includes_ends else low < value < high):
        signs = "[]" if includes_ends else "()"
        raise ParameterError(f"{name} must be in {signs[0]}{low:g}, {high:g}{signs[1]}, got {value:g}.")
    if name in ("documents", "terms") and value != int(value):
        raise ParameterError(f"{name} must be a whole number, got {value:g}.")
    return value


def _named(kind: str, stream: str, settings: Mapping[str, float], known: Iterable[str]) -> Feature:
    """A feature of the catalogue with all its settings."""
    complete = {name: _USUAL[name] for name in known}
    for name, value in settings.items():
        parameter, _, of_stream = name.partition(".")
        if parameter not in known or (of_stream and (kind != BM25F.name or parameter == "k1")):
            allowed = ", ".join(known) or "none"
            raise ParameterError(f"{kind} has no setting {name!r}; its settings are: {allowed}.")
        complete[name] = check_parameter(parameter, value)
    name = feature_name(kind, stream, complete)
    return Feature(name, name, kind, stream, complete)


def _split_settings(name: str) -> tuple[str, dict[str, float]]:
    match = _SETTINGS.fullmatch(name)
    if match is None:
        return name, {}
    settings: dict[str, float] = {}
    for setting in match["settings"].split(";"):
        parameter, _, number = setting.partition("=")
        try:
            settings[unescaped(parameter.strip())] = float(number)
        except ValueError:
            raise ParameterError(
                f"{name!r} is not a feature: {setting!r} must be a parameter, = and a number, as in k1=0.9."
            ) from None
    return match["name"], settings


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(float(value))


def _remedy(kind: str, stream: str, plain: str, settings: Mapping[str, float]) -> str:
    if settings and (kind in COMBINED or kind == STATIC):
        return f"{plain} has no settings."
    if not stream and (kind in _OF_STREAMS or kind in COMBINED):
        return f"name a stream, as in {kind}.title."
    if kind in KINDS or kind in COMBINED:
        return f"{kind} reads places, and only streams have them, not the whole document."
    return "docs/features.md lists the features; an expression is written as label = text."
