"""The options of commands that read documents, and what they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.options import given_path
from rankwell.cli.progress import progress_bar

if TYPE_CHECKING:
    from rankwell.corpus.bad_documents import BadDocuments
    from rankwell.corpus.document import Document
    from rankwell.corpus.options import CorpusOptions
    from rankwell.corpus.reading_progress import CorpusProgress
    from rankwell.index.writer import IndexWriter

CorpusArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="CORPUS...",
        parser=given_path,
        help="Files of JSON lines (.jsonl), a JSON array (.json) or columns (.tsv, .csv), text, Markdown or HTML "
        "files, folders of such, all of them plain, .gz or .zst; - is stdin.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The format of all files: jsonl, json, tsv, csv, trec, text, markdown or html. By default, by the name.",
        show_default=False,
    ),
]
IdFieldOption = Annotated[str, typer.Option("--id-field", metavar="NAME", help="The field that holds the id.")]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="The names of a TSV or CSV file's columns, separated by commas, if its first line does not name them.",
        show_default=False,
    ),
]
StaticsOption = Annotated[
    str | None,
    typer.Option(
        "--statics", metavar="NAMES", help="Columns of TSV or CSV that hold numbers, not text.", show_default=False
    ),
]
IgnoreOption = Annotated[
    str | None,
    typer.Option(
        "--ignore", metavar="NAMES", help="Fields that are left out, separated by commas.", show_default=False
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="The encoding of the text; by default UTF-8.", show_default=False),
]
FollowLinksOption = Annotated[
    bool, typer.Option("--follow-links", help="Read what links in a folder lead to; by default they are skipped.")
]
LinksOption = Annotated[
    bool,
    typer.Option(
        "--links/--no-links",
        help="Whether links among HTML and Markdown files describe the pages they lead to (stream anchor, static "
        "link_score).",
    ),
]
SiteOption = Annotated[
    str | None,
    typer.Option(
        "--site",
        metavar="ADDRESSES",
        help="Where these pages are on the web, as https://example.org/docs/, separated by commas: links to there are "
        "links among them. By default what most pages name as their own address.",
        show_default=False,
    ),
]
SkipDocumentsOption = Annotated[
    bool,
    typer.Option(
        "--skip-bad-documents", help="Leave bad documents out: each is reported, and their number at the end."
    ),
]


def corpus_options(
    *,
    format: str | None,
    id_field: str,
    columns: str | None,
    statics: str | None,
    ignore: str | None,
    encoding: str | None,
    follow_links: bool,
    links: bool,
    site: str | None,
    bad_documents: BadDocuments,
) -> CorpusOptions:
    """How a corpus is read, from the options above."""
    from rankwell.corpus.options import CorpusOptions

    return CorpusOptions(
        format=format,
        id_field=id_field,
        columns=None if columns is None else names_of(columns),
        statics=names_of(statics),
        ignored=names_of(ignore),
        encoding=encoding,
        on_bad_document=bad_documents,
        follow_links=follow_links,
        links=links,
        site=names_of(site),
    )


def read_documents(corpus: list[Path], options: CorpusOptions, progress: CorpusProgress) -> Iterator[list[Document]]:
    """The corpus in batches. The first is read at once, so that a wrong path is an error before anything is written."""
    from rankwell.corpus.reading import read_corpus

    batches = iter(read_corpus(corpus, options, progress=progress))
    first = next(batches, [])
    return chain([first], batches)


def names_of(text: str | None) -> tuple[str, ...]:
    """Names separated by commas."""
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def bad_documents_of(skip: bool) -> BadDocuments:
    """How a command that reads and indexes documents treats bad ones."""
    from rankwell.corpus.bad_documents import BadDocuments

    return BadDocuments("skip" if skip else "error")


def add_all(
    writer: IndexWriter,
    batches: Iterable[list[Document]],
    bad_documents: BadDocuments,
    *,
    progress: CorpusProgress,
    quiet: bool,
) -> None:
    """Add all documents and commit; `progress` is that of reading the batches."""
    n_docs = 0
    with progress_bar("indexing", quiet=quiet) as bar:
        for batch in batches:
            n_docs += len(batch)
            writer.add(_taken_from(batch))
            bar.describe(f"indexing: {n_docs:,} documents")
            bar.bytes_read(progress.done, progress.total)
        bar.describe(f"writing {n_docs:,} documents")
        writer.commit()
    bad_documents.report()


def _taken_from(batch: list[Document]) -> Iterator[Document]:
    """The documents of a batch, each released after its use: some are large."""
    batch.reverse()
    while batch:
        yield batch.pop()
