"""What the library's parameters are called in the command that runs: its messages name options, not Python parameters.

A parameter is the option of the same name (`id_field` is --id-field), unless it is listed here; what a ranker's
constructor takes is given with --set. The value of a parameter follows as it is typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from rankwell.errors import Parameter, RankwellError

# Options whose names differ from the parameter's; if there are several, the first that the command has.
_OPTIONS = {
    "budget_share": ("--budget",),
    "eval_convention": ("--convention",),
    "eval_metric": ("--metric",),
    "eval_set": ("--vali",),
    "facets": ("--facet",),
    "features": ("--feature",),
    "ignored": ("--ignore",),
    "init_model": ("--init",),
    "k": ("-k",),
    "n_candidates": ("--top", "--candidates"),
    "n_folds": ("--folds",),
    "n_rounds": ("--rounds",),
    "n_seeds": ("--seeds",),
    "on_bad_document": ("--skip-bad-documents",),
    "on_bad_line": ("--skip-bad-lines",),
    "operators": ("--prose",),
    "random_state": ("--seed",),
    "ranking_pass": ("--pass",),
    "source": ("--candidates",),
}


@dataclass
class _Names:
    """The options of a command, each with whether it is a flag, and the parameters that its --set takes."""

    options: dict[str, bool] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()


_names: ContextVar[_Names] = ContextVar("names")


def name_options(options: Mapping[str, bool]) -> None:
    """Say which options the command that runs has, and whether each is a flag."""
    _names.set(_Names(dict(options)))


def name_settings(parameters: Iterable[str]) -> None:
    """Register the parameters that the command takes with --set."""
    _names.set(_Names(_names.get(_Names()).options, frozenset(parameters)))


def option_of(parameter: Parameter) -> str | None:
    """The running command's option for `parameter`, with its value; None if there is no such option."""
    from rankwell.cli.figures import value_text

    names = _names.get(_Names())
    for option in (*_OPTIONS.get(parameter.name, ()), f"--{parameter.name.replace('_', '-')}"):
        if option in names.options:
            is_bare = names.options[option] or parameter.value is None
            return option if is_bare else f"{option} {value_text(parameter.value)}"
    if parameter.name in names.settings:
        return f"--set {parameter.name}" + ("" if parameter.value is None else f"={value_text(parameter.value)}")
    return None


def in_words_of_options(part: Any) -> Any:
    """The message of a library error with each parameter as its option; any other error's message as it is."""
    if isinstance(part, RankwellError):
        return part.in_words_of(option_of)
    if isinstance(part, Parameter):
        return option_of(part) or str(part)
    return part
