"""A corpus: files and folders read as documents, in the formats that their names tell (`formats.py`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.comma_separated import read_comma_separated
from rankwell.corpus.document import Document
from rankwell.corpus.folder import files_of_folder
from rankwell.corpus.formats import FORMAT_OF_SUFFIX, format_of
from rankwell.corpus.json_array import read_json
from rankwell.corpus.json_lines import read_json_lines
from rankwell.corpus.linked_pages import LINKS_OF, add_links, facts_of_links
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.reading_progress import CorpusProgress
from rankwell.corpus.tab_separated import read_tab_separated
from rankwell.corpus.text_files import read_html, read_markdown, read_plain_text
from rankwell.corpus.trec_text import read_trec_text
from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.streams.decompression import CODECS, STANDARD_STREAM, ByteStream, named_errors

OnBad = Callable[[DataError], None]
Reader = Callable[[ByteStream, str, CorpusOptions, OnBad], Iterator[list[Document]]]

READERS: dict[str, Reader] = {
    "jsonl": read_json_lines,
    "json": read_json,
    "tsv": read_tab_separated,
    "csv": read_comma_separated,
    "trec": read_trec_text,
    "text": read_plain_text,
    "markdown": read_markdown,
    "html": read_html,
}
BATCH_CHARACTERS = 2**20
BATCH_DOCUMENTS = 1024


def read_corpus(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    options: CorpusOptions | None = None,
    *,
    progress: CorpusProgress | None = None,
) -> Iterator[list[Document]]:
    """The documents of files and folders, some at a time, in the order given; a folder's files in the order of names.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, folders, or ``-`` for standard input.
    options : CorpusOptions
    progress : CorpusProgress, optional
        Kept up to date while documents are read.

    A bad document is a DataError that names the place, or is reported, left out and counted (``on_bad_document``);
    files that cannot be read to their end are always errors.
    """
    options = options or CorpusOptions()
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ParameterError("a corpus needs at least one file or folder.")
    if any(os.fspath(path) == "" for path in given):
        raise ParameterError("the path of a corpus is empty. Give a file or a folder, or '.' for the current folder.")
    bad_documents = BadDocuments.of(options.on_bad_document)
    batch: list[Document] = []
    n_characters = 0
    progress = progress or CorpusProgress()
    files = list(_files([os.fspath(path) for path in given], options))
    pages = [(path, name, options.format or format_of(path) or "") for path, name in files] if options.links else []
    facts = facts_of_links([page for page in pages if page[2] in LINKS_OF], options)
    progress.begin(path for path, _ in files)
    for path, name in files:
        for documents in _read_file(path, name, options, bad_documents.add, progress):
            for document in documents:
                if document.id in facts:
                    add_links(document, facts[document.id])
            n_characters += sum(document.n_characters for document in documents)
            batch += documents
            # The reader of the file has the same list: large documents must not be held there as well.
            documents.clear()
            if n_characters >= BATCH_CHARACTERS or len(batch) >= BATCH_DOCUMENTS:
                yield batch
                batch, n_characters = [], 0
    if batch:
        yield batch
    if bad_documents is not options.on_bad_document:
        bad_documents.report()


def _files(paths: list[str], options: CorpusOptions) -> Iterator[tuple[str, str]]:
    """Every file to read, and the id of its document if it does not contain one."""
    for path in paths:
        if path == STANDARD_STREAM:
            if options.format is None:
                raise ParameterError(
                    "standard input has no name to tell its format by: pass ",
                    Parameter("format", "jsonl"),
                    " or ",
                    Parameter("format", "tsv"),
                    ".",
                )
            yield path, "stdin"
        elif os.path.isdir(path):
            yield from files_of_folder(path, options)
        else:
            with named_errors(path):
                os.stat(path)  # a name that tells no format may be that of no file
            yield path, os.path.basename(path)


def _read_file(
    path: str, name: str, options: CorpusOptions, on_bad: OnBad, progress: CorpusProgress
) -> Iterator[list[Document]]:
    kind = options.format or format_of(path)
    if kind is None:
        raise DataError(
            f"{path}: the name does not tell the format. Known endings are {', '.join(FORMAT_OF_SUFFIX)}, each also "
            f"as {', '.join(CODECS)}; or pass ",
            Parameter("format"),
            f" (one of {', '.join(READERS)}).",
        )
    if kind not in READERS:
        raise ParameterError(f"must be one of {', '.join(READERS)}, got {kind!r}.", parameter="format")
    with ByteStream(path) as stream:
        yield from progress.follow(stream, READERS[kind](stream, name, options, on_bad))
