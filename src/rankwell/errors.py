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

    Examples
    --------
    >>> import rankwell
    >>> try:
    ...     rankwell.read("absent.txt")
    ... except rankwell.RankwellError as error:
    ...     print(type(error).__name__)
    DataError
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
    """The data (arrays, frames, files of rows) is not valid.

    Examples
    --------
    >>> import rankwell
    >>> rankwell.RankingDataset([[1.0], [2.0]], [0, 1, 2])
    Traceback (most recent call last):
        ...
    rankwell.errors.DataError: y must have one number per row: 2 rows, got shape (3,).
    """


class ParameterError(RankwellError, ValueError):
    """A parameter is outside what is allowed.

    Examples
    --------
    >>> import rankwell
    >>> rankwell.Binner(n_bins=1000).fit([[1.0]])
    Traceback (most recent call last):
        ...
    rankwell.errors.ParameterError: n_bins must be from 2 to 256, the missing values' bin included, got 1000.
    """


class UnknownParameterError(ParameterError, TypeError):
    """A parameter that does not exist (Python raises TypeError for one)."""


class QueryError(ParameterError):
    """A query cannot be read.

    column : where in its text, from 1

    Examples
    --------
    >>> import rankwell
    >>> with rankwell.IndexWriter("notes.idx") as writer:
    ...     writer.add([{"id": "n1", "body": "buy milk"}])
    ...     generation = writer.commit()
    >>> try:
    ...     rankwell.Index.open("notes.idx").search("(milk")
    ... except rankwell.QueryError as error:
    ...     print(error.column)
    1
    """

    def __init__(self, *pieces: Piece, column: int) -> None:
        self.column = column
        super().__init__(*pieces)


class FileFormatError(RankwellError, ValueError):
    """A file of Rankwell (a ranker, an index) is damaged, altered, or of a version this release cannot read.

    Examples
    --------
    >>> import rankwell
    >>> with open("model.rank", "w") as file:
    ...     _ = file.write("not a ranker")
    >>> try:
    ...     rankwell.load("model.rank")
    ... except rankwell.FileFormatError as error:
    ...     print("model.rank" in str(error))
    True
    """


class IndexLockedError(RankwellError, RuntimeError):
    """An index was opened for writing while another writer had it open.

    Examples
    --------
    >>> import rankwell
    >>> with rankwell.IndexWriter("notes.idx"):
    ...     try:
    ...         rankwell.IndexWriter("notes.idx")
    ...     except rankwell.IndexLockedError:
    ...         print("one writer at a time")
    one writer at a time
    """


class DeviceError(RankwellError, RuntimeError):
    """A device was asked for and cannot be used.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> try:
    ...     ranker = rankwell.RankBoost(n_rounds=2, device="cuda").fit(data)
    ... except rankwell.DeviceError:  # no GPU here
    ...     ranker = rankwell.RankBoost(n_rounds=2, device="cpu").fit(data)
    >>> len(ranker.weak_rankers_)
    2
    """


class ClusterError(RankwellError, RuntimeError):
    """A cluster cannot be used, or a worker of it failed."""


class NotFittedError(RankwellError, ValueError, AttributeError):
    """A ranker was asked to predict before it was fitted (the same bases as scikit-learn's).

    Examples
    --------
    >>> import rankwell
    >>> try:
    ...     rankwell.RankSVM().predict([[1.0]])
    ... except rankwell.NotFittedError:
    ...     print("fit first")
    fit first
    """


class ServerError(RankwellError, RuntimeError):
    """A server did not answer a call, or answered that it is wrong.

    status : of HTTP, None if there was no answer; retry_after : seconds, if the server said when to try again

    Examples
    --------
    >>> import rankwell
    >>> try:
    ...     rankwell.Client("http://127.0.0.1:1").search("milk")  # nothing answers there
    ... except rankwell.ServerError as error:
    ...     print(error.status)
    None
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        super().__init__(message)


class ConvergenceWarning(UserWarning):
    """An optimiser stopped before its stopping rule was met.

    Examples
    --------
    >>> import rankwell, warnings
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     ranker = rankwell.RankSVM(C=1.0, max_iter=1).fit(data)
    >>> [warning.category.__name__ for warning in caught]
    ['ConvergenceWarning']
    """
