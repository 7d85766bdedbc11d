"""`read`, `write` and `convert`: data files of every format, recognised by their names or their first bytes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.kernels.disk_arrays import mapped_file
from rankwell.kernels.letor_text.reference import is_letor_line
from rankwell.parameters import as_bytes
from rankwell.streams.decompression import CODECS, STANDARD_STREAM, ByteStream, named_errors

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.data.row_storage import DiskRowStorage

SUFFIXES = {
    ".txt": "letor",
    ".svm": "letor",
    ".letor": "letor",
    ".dat": "letor",
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".csv": "csv",
}
FORMATS = ("letor", "parquet", "feather", "csv")
STREAMED = ("letor", "csv")

SNIFFED_BYTES = 2**16
SNIFFED_LINES = 20


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    n_features: int | None = None,
    on_bad_line: str = "error",
    comments: bool = True,
    label: str = "label",
    qid: str | None = "qid",
    mmap: bool = True,
    memory: int | str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> RankingDataset:
    """Read a data file.

    Parameters
    ----------
    path : str or path
        LETOR / SVMlight text (.txt, .svm, .letor, .dat), CSV with a header (.csv), either of them plain or compressed
        (.gz, .zst, .bz2); Parquet (.parquet); Feather (.feather, .arrow); or ``-`` for standard input. If the name does
        not tell the format, the first bytes do.
    format : {"letor", "csv", "parquet", "feather"}, optional
        Overrides the name.
    n_features : int, optional
        Text: how many features there are, where the last ones may be absent from every row; a larger feature index is
        an error. By default the largest index, up to 65,536. Other formats: how many there must be.
    on_bad_line : {"error", "skip"}
        What to do with a line of text or CSV that breaks the format: raise an error that says where and what, or leave
        it out, count it in ``dataset.skipped_lines`` and log a warning.
    comments : bool
        Whether to keep the text after ``#`` of each row, without blanks around it, or the column ``comment``.
    label, qid : str
        Parquet, Feather, CSV: the columns of labels and query ids; every other column except ``comment`` is a feature.
        A file without the column ``label`` has no labels; with qid=None all rows are one query.
    mmap : bool
        Map a Feather file into memory instead of reading it. The file must not be changed while the dataset is used.
    memory : int (bytes) or str ("4GiB"), optional
        For data larger than memory: the features go to a temporary file, and RankBoost, RankSVM and LambdaMART train
        on it by blocks, within this much memory for the whole process. The model is the same, byte for byte. Comments
        are not kept.
    scratch : str or path, optional
        The folder of temporary files; by default the system's.
    n_jobs : int, optional
        The number of threads that read text; None is every core. The result does not depend on it.
    progress : function of two numbers, optional
        Called while text is read, with the bytes read and the bytes there are (None if that is not known).

    Notes
    -----
    LightGBM's side files, of text and CSV: if the data has no ``qid`` and there is a file of the same name with
    ``.query`` after it, that file's lines are the numbers of rows of the queries; if there is one with ``.weight``
    after it, its lines are the weights of the rows (``dataset.document_weights``), with ``qid`` too. Of files with
    ``.init`` and ``.position`` a warning says that they are not read.

    Text. Every row is ``label qid:ID index:value ... # comment``; see `rankwell.kernels.letor_text.reference` for the
    exact format. A comment in the first line may name the features (`rankwell.data.letor_header`). Rows without ``qid``
    are one query. Query ids are integers if all of them are written as integers, otherwise text. Features that a row
    does not name are 0. Indices count from 1, or from 0 if index 0 appears in any row.

    Examples
    --------
    >>> import rankwell
    >>> with open("train.txt", "w") as file:
    ...     _ = file.write("2 qid:1 1:0.5 2:1 # n1\\n0 qid:1 1:0.1 2:3 # n2\\n")
    >>> data = rankwell.read("train.txt")
    >>> data.labels.tolist(), data.features.shape, list(data.comments)
    ([2.0, 0.0], (2, 2), ['n1', 'n2'])
    """
    if on_bad_line not in ("error", "skip"):
        raise ParameterError(f"must be 'error' or 'skip', got {on_bad_line!r}.", parameter="on_bad_line")
    from rankwell.data.side_file import has_queries_beside, with_side_files

    limit = None if memory is None else as_bytes("memory", memory)
    storage, comments = _disk_storage(scratch) if limit else None, comments and not limit
    with ByteStream(os.fspath(path)) as stream:
        chosen = _check_format(format) or format_of(stream)
        if chosen == "letor":
            from rankwell.data.letor import read_letor

            dataset = read_letor(
                stream,
                n_features=n_features,
                on_bad_line=on_bad_line,
                comments=comments,
                n_jobs=n_jobs,
                progress=progress,
                storage=storage,
            )
            dataset = with_side_files(dataset, stream.path)
            dataset.memory_limit = limit
            return dataset
        if chosen == "csv":
            from rankwell.data.comma_separated import read_csv

            dataset = read_csv(
                stream,
                label=label,
                qid=qid,
                qid_may_lack=qid == "qid" and has_queries_beside(stream.path),
                comments=comments,
                on_bad_line=on_bad_line,
                storage=storage,
            )
            dataset = with_side_files(dataset, stream.path)
        else:
            dataset = _read_columnar(chosen, stream, mmap, label=label, qid=qid, comments=comments, storage=storage)
    if n_features is not None and dataset.n_features != n_features:
        raise DataError(f"{stream.name} has {dataset.n_features} features, not n_features={n_features}.")
    dataset.memory_limit = limit
    return dataset


def _disk_storage(scratch: str | os.PathLike[str] | None) -> DiskRowStorage:
    from rankwell.data.row_storage import DiskRowStorage

    return DiskRowStorage(folder=None if scratch is None else os.fspath(scratch))


def write(dataset: RankingDataset, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a dataset to a file, whole or not at all; ``-`` is standard output. Missing folders are created.

    The format follows from the name as in `read`; standard output is text by default. Feather is the
    fastest to read: its features are mapped into memory. Feather and Parquet keep everything but queries without
    rows; CSV and text cannot hold weights, and text keeps the names of features in a comment in its first line.
    Rows are written in the user's order.

    Examples
    --------
    >>> import rankwell
    >>> data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    >>> rankwell.write(data, "train.feather")
    >>> bool((rankwell.read("train.feather").features == data.features).all())
    True
    """
    name = os.fspath(path)
    chosen = written_format(name, format)
    with _replaced(name) as sink:
        if chosen == "letor":
            from rankwell.data.letor_writer import write_letor

            write_letor(dataset, sink)
        elif chosen == "csv":
            from rankwell.data.comma_separated import write_csv

            write_csv(dataset, sink)
        else:
            from rankwell.data import columnar

            (columnar.write_parquet if chosen == "parquet" else columnar.write_feather)(dataset, sink)


def written_format(path: str | os.PathLike[str], format: str | None = None) -> str:
    """The format in which `write` writes to a path; DataError if neither its name nor `format` tells one."""
    name = os.fspath(path)
    chosen = _check_format(format) or _format_of_name(name)
    if chosen is None and name != STANDARD_STREAM:
        raise DataError(
            f"{name} does not tell its format. Use one of the endings {_endings()}",
            (", or pass ", Parameter("format")),
            ".",
        )
    return chosen or "letor"


def convert(source: str | os.PathLike[str], target: str | os.PathLike[str], **options: Any) -> RankingDataset:
    """Read one file and write another, in the format of its name; returns the dataset.

    Parameters
    ----------
    source, target : str or path
        As for `read` and `write`. The usual use is ``convert("train.txt.gz", "train.feather")``: the next read maps the
        features into memory.
    **options
        Those of `read`.
    """
    dataset = read(source, **options)
    write(dataset, target)
    return dataset


def _read_columnar(kind: str, stream: ByteStream, mmap: bool, **columns: Any) -> RankingDataset:
    import pyarrow

    from rankwell.data import columnar

    with named_errors(stream.name):
        if columns["storage"] is not None and kind == "feather" and stream.is_plain_file:
            columns["mapped"] = mapped_file(stream.path, columns["storage"].folder)
            source = pyarrow.BufferReader(pyarrow.py_buffer(columns["mapped"]))
        elif not stream.is_plain_file and columns["storage"] is not None:
            raise DataError(
                f"{stream.name} would have to be read into memory whole: with ",
                Parameter("memory"),
                f", {kind} must be a file.",
            )
        elif not stream.is_plain_file:
            source = pyarrow.BufferReader(stream.read())
        elif kind == "feather" and mmap:
            source = pyarrow.memory_map(stream.path)
        else:
            source = pyarrow.OSFile(stream.path)
        reader = columnar.read_parquet if kind == "parquet" else columnar.read_feather
        try:
            return reader(source, stream.name, **columns)
        except (ValueError, LookupError, OverflowError, MemoryError) as cause:
            # Names that are not UTF-8, huge lengths: Arrow does not detect every damage itself.
            if isinstance(cause, DataError):
                raise
            raise DataError(f"{stream.name} is not a {kind} file, or it is damaged: {cause}.") from cause


def format_of(stream: ByteStream) -> str:
    """The format of a file, by its name or by its first bytes."""
    return _format_of_name(stream.path) or _format_of_content(stream)


def _check_format(format: str | None) -> str | None:
    if format is not None and format not in FORMATS:
        raise ParameterError(f"must be one of {', '.join(FORMATS)}, got {format!r}.", parameter="format")
    return format


def _format_of_name(name: str) -> str | None:
    stem, suffix = os.path.splitext(name.lower())
    if suffix in CODECS:
        kind = SUFFIXES.get(os.path.splitext(stem)[1])
        return kind if kind in STREAMED else None
    return SUFFIXES.get(suffix)


def _format_of_content(stream: ByteStream) -> str:
    """The format by the first bytes of the stream."""
    head = stream.peek(SNIFFED_BYTES)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "feather"
    lines = head.splitlines()
    for line in lines[:SNIFFED_LINES]:
        if is_letor_line(line):
            return "letor"
    if lines and b"," in lines[0]:
        return "csv"
    raise DataError(
        f"cannot tell the format of {stream.name}: its name does not end in {_endings()}, and it does not "
        "begin like such a file. Rename it",
        (", or pass ", Parameter("format")),
        ".",
    )


def _endings() -> str:
    return ", ".join(SUFFIXES) + " (text and CSV also with " + ", ".join(CODECS) + ")"


@contextmanager
def _replaced(name: str) -> Iterator[Any]:
    """An Arrow file to write to, which replaces the file of that name on success."""
    import pyarrow

    codec = next((codec for suffix, (codec, _) in CODECS.items() if name.lower().endswith(suffix)), None)
    if name == STANDARD_STREAM:
        yield pyarrow.PythonFile(sys.stdout.buffer, mode="w")
        sys.stdout.buffer.flush()
        return
    target = os.path.realpath(name)
    # A pipe or a device cannot be replaced.
    is_replaced = not os.path.exists(target) or os.path.isfile(target)
    part = f"{target}.{os.getpid()}.part" if is_replaced else target
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with pyarrow.OSFile(part, "wb") as file:
            if codec is None:
                yield file
            else:
                with pyarrow.CompressedOutputStream(file, codec) as compressed:
                    yield compressed
        if is_replaced:
            os.replace(part, target)
    except OSError as cause:
        raise DataError(f"cannot write {name}: {cause.strerror or cause}.") from cause
    finally:
        if is_replaced and os.path.exists(part):
            os.remove(part)
