"""The files of a folder that a corpus has."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rankwell.corpus.formats import FORMAT_OF_SUFFIX, PAGES, format_of
from rankwell.corpus.json_array import is_one_object
from rankwell.corpus.options import WIDE_ENCODINGS, CorpusOptions
from rankwell.errors import DataError, Parameter
from rankwell.streams.decompression import CODECS, ByteStream, named_errors

logger = logging.getLogger("rankwell")

_HEAD = 8192
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


def files_of_folder(folder: str, options: CorpusOptions) -> Iterator[tuple[str, str]]:
    """The files of a folder and of those in it, by name; hidden files, links and unknown kinds are skipped."""
    links: list[str] = []
    walked = list(_walk_links(folder, set()) if options.follow_links else _walk(folder, links))
    told = [path for path in walked if (_is_text(path, options) if options.format else format_of(path) is not None)]
    has_pages = options.format is None and any(format_of(path) in PAGES for path in told)
    strays = {path: None for path in told if has_pages and _is_stray(path, options)}
    found = [path for path in told if path not in strays]
    if len(told) < len(walked):
        logger.info("%s: %d files of other kinds were skipped.", folder, len(walked) - len(told))
    if strays:
        logger.warning(
            "%s: %d JSON files among pages were skipped, since each is one object over several lines and no documents; "
            "the first is %s.", folder, len(strays), next(iter(strays)),
        )  # fmt: skip
    if links:
        logger.warning(
            "%s: %d links were skipped, the first is %s. Pass %s to read what they lead to.",
            folder, len(links), links[0], Parameter("follow_links", True),
        )  # fmt: skip
    if not found:
        raise DataError(
            f"{folder} contains no file to index: known endings are {', '.join(FORMAT_OF_SUFFIX)}, each also as "
            f"{', '.join(CODECS)}. Pass ",
            Parameter("format"),
            " to read all its files as one kind.",
        )
    for path in found:
        yield path, PurePosixPath(Path(path).relative_to(folder)).as_posix()


def _is_text(path: str, options: CorpusOptions) -> bool:
    """Whether a file that is read whatever its name is can be text: pictures and programs begin with zeros in them."""
    with named_errors(path), open(path, "rb") as file:
        head = file.read(_HEAD)
    is_packed = any(head.startswith(signature) for _, signature in CODECS.values())
    is_wide = head.startswith(_WIDE_MARKS) or (options.encoding or "").lower().startswith(WIDE_ENCODINGS)
    return is_packed or is_wide or b"\0" not in head


def _is_stray(path: str, options: CorpusOptions) -> bool:
    """Whether a file among pages is JSON and no list of documents, such as a program's settings."""
    if format_of(path) != "json":
        return False
    with ByteStream(path) as stream:
        return is_one_object(stream, options)


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
