"""The mistakes a user can make, as exceptions.

Every message says what is wrong, where, what is allowed, what came, and the remedy. The command line prints a
`RankwellError` as one line and exits with 1 (2 for a `ParameterError`: what was typed is not allowed); anything else is
a bug of ours and keeps its traceback.
"""


class RankwellError(Exception):
    """Base of every error that Rankwell raises on purpose."""


class DataError(RankwellError, ValueError):
    """The data (arrays, frames, files of rows) is not what it must be."""


class ParameterError(RankwellError, ValueError):
    """A parameter is outside what is allowed."""


class FileFormatError(RankwellError, ValueError):
    """A file of Rankwell (a ranker, an index) is damaged, altered, or of a version this release cannot read."""


class IndexLockedError(RankwellError, RuntimeError):
    """An index was opened for writing while another writer was at work on it."""


class DeviceError(RankwellError, RuntimeError):
    """A device was asked for and cannot be used."""


class NotFittedError(RankwellError, ValueError, AttributeError):
    """A ranker was asked to predict before it was fitted (the same bases as scikit-learn's)."""
