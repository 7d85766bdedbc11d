"""The ranker that a command line names, with its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankwell.cli.naming import name_settings
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.rankers.base import Ranker


def make_ranker(
    name: str, settings: Sequence[str], *, normalize: str | None, metric: str | None, convention: str
) -> Ranker:
    """The ranker called `name`, untrained, its parameters checked.

    `settings` are the texts of --set. Other options set the parameter they correspond to, if the ranker has
    it: `metric` and `convention` to `eval_metric` and `eval_convention`, so that training
    watches what the command reports.
    """
    from rankwell.cli.settings import parameters_of, parse_settings
    from rankwell.rankers.registry import RANKERS, ranker_class
    from rankwell.scoring.normaliser import CHOICES

    if name not in RANKERS and Path(name).exists():
        raise ParameterError(f"{name} is a path, not a ranker. The ranker's name comes first: {', '.join(RANKERS)}.")
    found = ranker_class(name)
    known = parameters_of(found)
    name_settings(known)
    parameters = parse_settings(found, settings)
    if normalize is not None:
        if "normalize" in parameters:
            raise ParameterError("--normalize and --set normalize=... set the same parameter: keep one of them.")
        parameters |= parse_settings(found, [f"normalize={normalize}"])
    for parameter, value in (("eval_metric", metric), ("eval_convention", convention)):
        if parameter in known and value is not None:
            parameters.setdefault(parameter, value)
    ranker = found(**parameters)
    ranker._check_parameters()
    if ranker.normalize not in CHOICES:
        raise ParameterError(f"must be one of {', '.join(CHOICES)}, got {ranker.normalize!r}.", parameter="normalize")
    return ranker
