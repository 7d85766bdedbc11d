"""A group of commands: it knows which of them runs, and its help shows flags as flags."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from rankwell.cli.naming import name_options


class CommandGroup(TyperGroup):
    """The commands of `rankwell`, or of one of its parts."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            name_options({option: _is_flag(each) for each in command.params for option in each.opts})
            _show_flags_as_flags(command.get_params(ctx))
        return name, command, rest

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        _show_flags_as_flags(parameters)
        return parameters


def _show_flags_as_flags(parameters: Any) -> None:
    """A flag takes no value, and help must not look as if it did (--quiet <bool>)."""
    for parameter in parameters:
        if _is_flag(parameter):
            parameter.metavar = ""


def _is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False))
