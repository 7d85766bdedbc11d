"""Exceptions for a user's mistakes.

Every message says what is wrong, where, what is allowed, what was given, and the remedy. The command line prints a
`RankwellError` as one line and exits with 1 (2 for a `ParameterError`: what was typed is not allowed); any other
exception is a bug in Rankwell and keeps its traceback.

Parameters that a message names are kept apart from its text, so that a caller that has other names for them, such as
the options of the command line, can use those in the message:

>>> error = ParameterError("must be 1 or more, got 0.", parameter="k")
>>> str(error)
'k must be 1 or more, got 0.'
>>> error.in_words_of(lambda parameter: "-k")
'-k must be 1 or more, got 0.'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rankwell.printable import printable


@dataclass(frozen=True)
class Parameter:
    """A parameter that a message names, with the value it should have if the message gives one.

    As text it is what a Python user writes: ``eval_set``, ``on_bad_line='skip'``.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


# The caller's name of a parameter; None if the caller does not have it.
Naming = Callable[[Parameter], str | None]
# A tuple is a clause that is left out if the caller lacks one of its parameters: (", or pass ", Parameter("format")).
Piece = str | Parameter | tuple[str | Parameter, ...]


class RankwellError(Exception):
    """Base of every error that Rankwell raises on purpose.

    Parameters
    ----------
    *pieces : str, Parameter or tuple of them
        The parts of the message, joined without blanks.
    parameter : str, optional
        The parameter that is wrong; the message begins with its name.
    """

    def __init__(self, *pieces: Piece, parameter: str | None = None) -> None:
        self.parameter = parameter
        self.pieces = pieces if parameter is None else (Parameter(parameter), " ", *pieces)
        super().__init__(self.in_words_of(str))

    def in_words_of(self, naming: Naming) -> str:
        """The message with the names that `naming` gives to parameters; those it does not know keep their own.

        Names and values that a message quotes may come from a file: see `rankwell.printable`.
        """
        return printable("".join(_said(piece, naming) for piece in self.pieces))


def _said(piece: Piece, naming: Naming) -> str:
    if isinstance(piece, Parameter):
        return naming(piece) or str(piece)
    if isinstance(piece, tuple):
        parts = [naming(part) if isinstance(part, Parameter) else part for part in piece]
        return "" if None in parts else "".join(part for part in parts if part is not None)
    return str(piece)


class DataError(RankwellError, ValueError):
    """The data (arrays, frames, files of rows) is not valid."""


class ParameterError(RankwellError, ValueError):
    """A parameter is outside what is allowed."""


class UnknownParameterError(ParameterError, TypeError):
    """A parameter that does not exist (Python raises TypeError for one)."""


class QueryError(ParameterError):
    """A query cannot be read.

    column : where in its text, from 1
    """

    def __init__(self, *pieces: Piece, column: int) -> None:
        self.column = column
        super().__init__(*pieces)


class FileFormatError(RankwellError, ValueError):
    """A file of Rankwell (a ranker, an index) is damaged, altered, or of a version this release cannot read."""


class IndexLockedError(RankwellError, RuntimeError):
    """An index was opened for writing while another writer had it open."""


class DeviceError(RankwellError, RuntimeError):
    """A device was asked for and cannot be used."""


class ClusterError(RankwellError, RuntimeError):
    """A cluster cannot be used, or a worker of it failed."""


class NotFittedError(RankwellError, ValueError, AttributeError):
    """A ranker was asked to predict before it was fitted (the same bases as scikit-learn's)."""


class ServerError(RankwellError, RuntimeError):
    """A server did not answer a call, or answered that it is wrong.

    status : of HTTP, None if there was no answer; retry_after : seconds, if the server said when to try again
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        super().__init__(message)


class ConvergenceWarning(UserWarning):
    """An optimiser stopped before its stopping rule was met."""
