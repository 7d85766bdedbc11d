"""Parameters as text: `--set key=value` and `--grid key=a,b,c`, read by the ranker's own constructor.

The constructor's annotations say what a value may be. Text is only ever compared and converted, never executed.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union

from rankwell.errors import ParameterError
from rankwell.rankers.foreign_parameters import hint

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
# Alternatives of a union are tried from the strictest to the one that takes any text.
_STRICTNESS = (type(None), bool, int, float, Literal, tuple, str)
# What a parameter without an annotation may be.
_GUESS = None | int | float | str


class _NoMatchError(Exception):
    """The text is not a value of this type; the message says what is."""


def parse_settings(ranker: type, settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """`key=value` texts, given by `option`, as arguments of the constructor of `ranker`.

    Raises
    ------
    ParameterError
        If a text is not key=value, names an unknown parameter or one twice, or its value is not of the parameter's
        type.
    """
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, text = _split(setting, option, "key=value")
        annotation = _parameter(ranker, key, option)
        if key in parsed:
            raise ParameterError(f"{option} {key}=... is given more than once: keep one of them.")
        parsed[key] = parse_value(f"{option} {key}", text, annotation)
    return parsed


def parse_grid(ranker: type, entries: Sequence[str]) -> dict[str, list[Any]]:
    """`key=a,b,c` texts as the values to try for each parameter of the constructor of `ranker`.

    Values are separated by commas; where one value is itself a list (`hidden=15,15`), by semicolons.
    """
    grid: dict[str, list[Any]] = {}
    for entry in entries:
        key, text = _split(entry, "--grid", "key=a,b,c")
        annotation = _parameter(ranker, key, "--grid")
        if key in grid:
            raise ParameterError(f"--grid {key}=... is given more than once: put all its values into one.")
        separator = ";" if ";" in text or _takes_lists(annotation) else ","
        grid[key] = [parse_value(f"--grid {key}", part, annotation) for part in text.split(separator)]
    return grid


def parameters_of(ranker: type) -> dict[str, Any]:
    """The constructor's parameters by name, with what their values may be (an annotation)."""
    constructor: Callable[..., Any] = ranker.__init__  # type: ignore[misc]
    hints = typing.get_type_hints(constructor)
    return {
        name: hints.get(name, _annotation_of_default(parameter.default))
        for name, parameter in inspect.signature(constructor).parameters.items()
        if name != "self" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def parse_value(where: str, text: str, annotation: Any) -> Any:
    """`text` as a value that `annotation` allows; `where` (an option and its key) begins the error."""
    try:
        return _convert(text.strip(), annotation)
    except _NoMatchError as expected:
        raise ParameterError(f"{where} must be {expected}, got {text!r}.") from None


def _split(text: str, option: str, form: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ParameterError(f"{option} takes {form}, got {text!r}.")
    return key.strip().replace("-", "_"), value


def _parameter(ranker: type, key: str, option: str) -> Any:
    known = parameters_of(ranker)
    if key in known:
        return known[key]
    name = getattr(ranker, "name", ranker.__name__)
    remedy = " ".join(filter(None, (hint(key, known), f"It has {', '.join(known)}.")))
    raise ParameterError(f"{option} {key}: {name} has no such parameter. {remedy}")


def _annotation_of_default(default: Any) -> Any:
    if default is None or default is inspect.Parameter.empty:
        return Any
    return type(default)


def _takes_lists(annotation: Any) -> bool:
    return any(_kind(member) is tuple for member in _members(annotation))


def _members(annotation: Any) -> list[Any]:
    """The alternatives of a union, strictest first; any other annotation is its only member."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return [annotation]
    members = [inner for member in typing.get_args(annotation) for inner in _members(member)]
    return sorted(members, key=lambda member: _STRICTNESS.index(_kind(member)))


def _kind(annotation: Any) -> Any:
    """Which of `_STRICTNESS` an annotation is; a type without a text form counts as str and is refused later."""
    if annotation is None:
        return type(None)
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return Literal
    if annotation in (tuple, list) or origin in (tuple, list, Sequence):
        return tuple
    return annotation if annotation in _STRICTNESS else str


def _convert(text: str, annotation: Any) -> Any:
    if annotation is Any:
        annotation = tuple if "," in text else _GUESS
    members = _members(annotation)
    expected = []
    for member in members:
        try:
            return _convert_to_one(text, member)
        except _NoMatchError as cause:
            expected.append(str(cause))
    raise _NoMatchError(" or ".join(reversed(expected)))


def _convert_to_one(text: str, annotation: Any) -> Any:
    kind = _kind(annotation)
    if kind is type(None):
        return _convert_none(text)
    if kind is bool:
        return _convert_bool(text)
    if kind in (int, float):
        return _convert_number(text, kind)
    if kind is Literal:
        return _convert_choice(text, typing.get_args(annotation))
    if kind is tuple:
        return _convert_list(text, typing.get_args(annotation))
    if annotation is str:
        return text
    raise _NoMatchError("set in Python: it cannot be given on the command line")


def _convert_none(text: str) -> None:
    if text.lower() not in ("none", "null"):
        raise _NoMatchError("none")


def _convert_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise _NoMatchError("true or false")


def _convert_number(text: str, kind: type) -> int | float:
    try:
        number: int | float = kind(text)
    except ValueError:
        raise _NoMatchError("a whole number" if kind is int else "a number") from None
    return number


def _convert_choice(text: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if text == str(choice):
            return choice
    raise _NoMatchError(f"one of {', '.join(map(str, choices))}")


def _convert_list(text: str, members: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values separated by commas, all of the first member's type (tuple[int, ...], list[float]); empty is ().

    Where that type is a list itself, its values are separated by plus signs.
    """
    if not text:
        return ()
    member = members[0] if members else _GUESS
    try:
        if _kind(member) is tuple:
            return tuple(_convert(part.strip().replace("+", ","), member) for part in text.split(","))
        return tuple(_convert(part.strip(), member) for part in text.split(","))
    except _NoMatchError as cause:
        raise _NoMatchError(f"a list of values separated by commas, each {cause}") from None
