"""A corpus: files and folders read as documents.

The format of a file is told by its name, without .gz, .bz2 or .zst: lines of JSON (.jsonl, .ndjson), a JSON array or
such lines (.json), columns separated by tabs (.tsv, .tab) or commas (.csv), TREC's documents (.trec, .trectext,
.trecweb), or one document (.txt, .text, .md, .markdown, .html, .htm, .xhtml).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from rankwell.corpus.bad_documents import BadDocuments
from rankwell.corpus.comma_separated import read_comma_separated
from rankwell.corpus.document import Document
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

logger = logging.getLogger("rankwell")

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
FORMAT_OF_SUFFIX = {
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    ".json": "json",
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    ".csv": "csv",
    **dict.fromkeys((".trec", ".trectext", ".trecweb"), "trec"),
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
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
            yield from _files_of_folder(path, options)
        else:
            with named_errors(path):
                os.stat(path)  # a name that tells no format may be that of no file
            yield path, os.path.basename(path)


def _files_of_folder(folder: str, options: CorpusOptions) -> Iterator[tuple[str, str]]:
    """The files of a folder and of those in it, by name; hidden files, links and unknown kinds are skipped."""
    n_found = n_unknown = 0
    links: list[str] = []
    walked = _walk_links(folder, set()) if options.follow_links else _walk(folder, links)
    for path in walked:
        if options.format is None and format_of(path) is None:
            n_unknown += 1
            continue
        n_found += 1
        yield path, PurePosixPath(Path(path).relative_to(folder)).as_posix()
    if n_unknown:
        logger.info("%s: %d files of other kinds were skipped.", folder, n_unknown)
    if links:
        logger.warning(
            "%s: %d links were skipped, the first is %s. Pass %s to read what they lead to.",
            folder, len(links), links[0], Parameter("follow_links", True),
        )  # fmt: skip
    if n_found == 0:
        raise DataError(
            f"{folder} contains no file to index: known endings are {', '.join(FORMAT_OF_SUFFIX)}, each also as "
            f"{', '.join(CODECS)}. Pass ",
            Parameter("format"),
            " to read all its files as one kind.",
        )


def _walk(folder: str, links: list[str]) -> Iterator[str]:
    """Files below a folder in an order that is the same on every machine; links are added to `links` instead."""
    for entry in _entries(folder):
        if entry.is_symlink():
            links.append(entry.path)
        elif entry.is_dir():
            yield from _walk(entry.path, links)
        elif entry.is_file():
            yield entry.path


def _walk_links(folder: str, above: set[str]) -> Iterator[str]:
    """The same with what links lead to, except to a folder in which the walk is (`above`): it would not end."""
    real = os.path.realpath(folder)
    if real in above:
        return
    for entry in _entries(folder):
        if entry.is_dir():
            yield from _walk_links(entry.path, above | {real})
        elif entry.is_file():
            yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, by name, without hidden entries."""
    with named_errors(folder):
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    return [entry for entry in entries if not entry.name.startswith(".")]


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


def format_of(path: str) -> str | None:
    """What a file of that name holds: a key of `READERS`, or None."""
    plain = Path(path)
    if plain.suffix.lower() in CODECS:
        plain = plain.with_suffix("")
    return FORMAT_OF_SUFFIX.get(plain.suffix.lower())
