"""`rankwell index`: build an index of documents, add to it, delete from it, merge, describe and check it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.corpus import (
    ColumnsOption,
    CorpusArgument,
    EncodingOption,
    FollowLinksOption,
    FormatOption,
    IdFieldOption,
    IgnoreOption,
    LinksOption,
    SiteOption,
    SkipDocumentsOption,
    StaticsOption,
    add_all,
    bad_documents_of,
    corpus_options,
    names_of,
    read_documents,
)
from rankwell.cli.group import CommandGroup
from rankwell.cli.index_shards import (
    ClusterOption,
    ShardsOption,
    ShardWorkersOption,
    build_in_shards,
    check_shard_options,
    replace_check,
)
from rankwell.cli.index_summary import describe_index
from rankwell.cli.language import detected_analysis, given_analysis
from rankwell.cli.named_fields import note_missing_statics, warn_of_absent_fields
from rankwell.cli.options import JsonOption, QuietOption, given_path
from rankwell.errors import DataError, ParameterError

index_app = typer.Typer(
    name="index",
    cls=CommandGroup,
    help="Build an index of documents, change it, describe it and check it.",
)

IndexArgument = Annotated[
    Path, typer.Argument(metavar="INDEX", parser=given_path, help="The index's folder.", show_default=False)
]
MemoryOption = Annotated[
    int, typer.Option("--memory", metavar="MB", min=64, help="About how much memory to use before writing to disk.")
]
DuplicateOption = Annotated[
    str,
    typer.Option(
        "--on-duplicate", metavar="RULE", help="replace or error: what to do if the index already has the id."
    ),
]
KeywordsOption = Annotated[
    str | None,
    typer.Option(
        "--keywords",
        metavar="NAMES",
        help="Fields whose texts are exact values, to filter, sort and count by, and not words.",
        show_default=False,
    ),
]
DatesOption = Annotated[
    str | None,
    typer.Option("--dates", metavar="NAMES", help="Fields that hold dates, as 2024-05-31.", show_default=False),
]


@index_app.callback(invoke_without_command=True)
def index_help(context: typer.Context) -> None:
    """Build an index of documents, change it, describe it and check it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@index_app.command()
def build(
    corpus: CorpusArgument,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="INDEX", parser=given_path, help="The index's folder.", show_default=False),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the index that is there, once the new one is complete.")
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="CODE",
            help="The documents' language (en, de, fr, ...): its stemmer, and the common words that queries ignore; or "
            "none. By default it is detected from the first documents.",
            show_default=False,
        ),
    ] = None,
    stemmer: Annotated[
        str | None,
        typer.Option(
            "--stemmer",
            metavar="NAME",
            help="Reduce words to their stems by this Snowball algorithm, and nothing else: english, german, ...",
            show_default=False,
        ),
    ] = None,
    stop_words: Annotated[
        str | None,
        typer.Option(
            "--stop-words",
            metavar="LIST",
            help="Words that are not indexed: english (a list), or words separated by commas.",
            show_default=False,
        ),
    ] = None,
    fold_accents: Annotated[
        bool | None,
        typer.Option(
            "--fold-accents/--keep-accents",
            help="Whether resume finds résumé. By default in English only.",
            show_default=False,
        ),
    ] = None,
    streams: Annotated[
        str | None,
        typer.Option("--streams", metavar="NAMES", help="Text fields that are numbered first, in this order."),
    ] = None,
    keywords: KeywordsOption = None,
    dates: DatesOption = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            "--vectors",
            metavar="NAME=N[:int8],...",
            help="Fields that hold lists of N numbers, for features: as embedding=384, or embedding=384:int8.",
            show_default=False,
        ),
    ] = None,
    forward: Annotated[
        str | None,
        typer.Option(
            "--forward",
            metavar="NAMES",
            help="Streams whose words are kept document by document too (all: every stream): feedback features and "
            "--like are faster.",
            show_default=False,
        ),
    ] = None,
    static_order: Annotated[
        str | None,
        typer.Option(
            "--static-order",
            metavar="NAME",
            help="Lay documents out by falling values of this number (link_score, a date), so that "
            "`rankwell search --stop-after N` can stop early.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,
    id_field: IdFieldOption = "id",
    columns: ColumnsOption = None,
    statics: StaticsOption = None,
    ignore: IgnoreOption = None,
    encoding: EncodingOption = None,
    follow_links: FollowLinksOption = False,
    links: LinksOption = True,
    site: SiteOption = None,
    skip_bad_documents: SkipDocumentsOption = False,
    memory: MemoryOption = 128,
    shards: ShardsOption = None,
    workers: ShardWorkersOption = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Index documents.

    Example: rankwell index build docs.jsonl --out docs.idx --language en

    Example: rankwell index build docs.jsonl --out docs.idx --shards 8
    """
    from rankwell.corpus.reading_progress import CorpusProgress
    from rankwell.index.schema import Schema
    from rankwell.index.writer import IndexWriter

    show_log(quiet=quiet)
    replace_check(out, shards, overwrite=overwrite)
    check_shard_options(shards, workers, cluster, corpus)
    analysis = given_analysis(language, stemmer, _stop_words(stop_words))
    forward_streams: Literal["all"] | tuple[str, ...] = "all" if forward == "all" else names_of(forward)
    schema = Schema(
        names_of(streams),
        names_of(statics),
        names_of(keywords),
        names_of(dates),
        forward_streams,
        static_order,
        _vectors(vectors),
    )
    bad_documents, progress = bad_documents_of(skip_bad_documents), CorpusProgress()
    options = corpus_options(
        format=format,
        id_field=id_field,
        columns=columns,
        statics=statics,
        ignore=ignore,
        encoding=encoding,
        follow_links=follow_links,
        links=links,
        site=site,
        bad_documents=bad_documents,
    )
    batches = read_documents(corpus, options, progress)
    if analysis is None:
        analysis, batches = detected_analysis(batches, quiet=quiet)
    if fold_accents is not None:
        analysis = analysis.with_accents(fold=fold_accents)
    if shards is not None:
        build_in_shards(
            out,
            corpus,
            options,
            batches,
            bad_documents,
            schema,
            analysis,
            shards,
            workers=workers,
            cluster=cluster,
            memory=memory,
            skip=skip_bad_documents,
            quiet=quiet,
        )
    else:
        with IndexWriter(
            out,
            schema=schema,
            analysis=analysis,
            on_bad_document=bad_documents,
            overwrite=overwrite,
            memory_bytes=memory * 2**20,
        ) as writer:
            add_all(writer, batches, bad_documents, progress=progress, quiet=quiet)
    _warn_of_absent_fields(
        out,
        streams=streams,
        statics=statics,
        keywords=keywords,
        dates=dates,
        forward=None if forward == "all" else forward,
        static_order=static_order,
    )
    if static_order is not None:
        note_missing_statics(out, static_order, quiet=quiet)
    describe_index(out, as_json=as_json)


@index_app.command()
def add(
    index: IndexArgument,
    corpus: CorpusArgument,
    on_duplicate: DuplicateOption = "replace",
    keywords: KeywordsOption = None,
    dates: DatesOption = None,
    format: FormatOption = None,
    id_field: IdFieldOption = "id",
    columns: ColumnsOption = None,
    statics: StaticsOption = None,
    ignore: IgnoreOption = None,
    encoding: EncodingOption = None,
    follow_links: FollowLinksOption = False,
    links: LinksOption = True,
    site: SiteOption = None,
    skip_bad_documents: SkipDocumentsOption = False,
    memory: MemoryOption = 128,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add documents to an index; a document whose id exists already replaces the old one.

    Example: rankwell index add docs.idx more.jsonl
    """
    from rankwell.corpus.reading_progress import CorpusProgress
    from rankwell.index.commits.manifest import read_manifest
    from rankwell.index.schema import Schema
    from rankwell.index.writer import IndexWriter

    show_log(quiet=quiet)
    read_manifest(index)
    bad_documents, progress = bad_documents_of(skip_bad_documents), CorpusProgress()
    options = corpus_options(
        format=format,
        id_field=id_field,
        columns=columns,
        statics=statics,
        ignore=ignore,
        encoding=encoding,
        follow_links=follow_links,
        links=links,
        site=site,
        bad_documents=bad_documents,
    )
    batches = read_documents(corpus, options, progress)
    with IndexWriter(
        index,
        schema=Schema(keywords=names_of(keywords), dates=names_of(dates)),
        on_duplicate=on_duplicate,
        on_bad_document=bad_documents,
        memory_bytes=memory * 2**20,
    ) as writer:
        add_all(writer, batches, bad_documents, progress=progress, quiet=quiet)
    _warn_of_absent_fields(index, statics=statics, keywords=keywords, dates=dates)
    describe_index(index, as_json=as_json)


@index_app.command()
def delete(
    index: IndexArgument,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="Ids of documents.", show_default=False)
    ] = None,
    ids_from: Annotated[
        Path | None,
        typer.Option("--ids-from", metavar="FILE", help="A file with one id per line; - is stdin.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Delete documents by their ids.

    Example: rankwell index delete docs.idx d17 d18
    """
    from rankwell.index.commits.manifest import read_manifest
    from rankwell.index.writer import IndexWriter

    show_log(quiet=quiet)
    read_manifest(index)
    wanted = [*(ids or []), *_lines(ids_from)]
    if not wanted:
        raise DataError("there are no ids to delete. Give them after the index, or in a file with --ids-from.")
    with IndexWriter(index) as writer:
        n_deleted = writer.delete(wanted)
        writer.commit()
    if n_deleted < len(wanted):
        say(f"{len(wanted) - n_deleted:,} of {len(wanted):,} ids are not in the index.", quiet=quiet)
    describe_index(index, as_json=as_json)


@index_app.command()
def merge(
    index: IndexArgument,
    max_segments: Annotated[
        int, typer.Option("--max-segments", metavar="N", min=1, help="How many segments may be left.")
    ] = 1,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Merge the segments of an index: searches get faster, and deleted documents leave the disk.

    Example: rankwell index merge docs.idx
    """
    from rankwell.cli.progress import progress_bar
    from rankwell.index.commits.manifest import read_manifest
    from rankwell.index.writer import IndexWriter

    show_log(quiet=quiet)
    read_manifest(index)
    with IndexWriter(index) as writer, progress_bar("merging", quiet=quiet):
        writer.merge(max_segments)
    describe_index(index, as_json=as_json)


@index_app.command()
def info(index: IndexArgument, as_json: JsonOption = False) -> None:
    """Describe an index: documents, streams, words, segments.

    Example: rankwell index info docs.idx
    """
    describe_index(index, as_json=as_json)


@index_app.command()
def check(index: IndexArgument, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Verify every byte of an index, and that its parts are consistent; exit code 1 if something is wrong.

    Example: rankwell index check docs.idx
    """
    from rankwell.cli.progress import progress_bar
    from rankwell.index.checking import check_index
    from rankwell.index.commits.manifest import read_manifest

    show_log(quiet=quiet)
    if not index.is_dir():
        read_manifest(index)
    with progress_bar("checking", quiet=quiet) as bar:
        report = check_index(index, progress=bar.bytes_read)
    if as_json:
        print_json({"sound": report.is_sound, **vars(report)})
    else:
        for problem in report.problems:
            show(problem)
        if report.remains:
            say(
                f"{len(report.remains)} files do not belong to any generation; the next writer removes them.",
                quiet=quiet,
            )
        if report.is_sound:
            show(f"sound: generation {report.generation}, {report.n_segments} segments, {report.n_bytes:,} bytes")
    if not report.is_sound:
        raise typer.Exit(1)


def _warn_of_absent_fields(path: Path, **named: str | None) -> None:
    """Warn of fields that options name, each by its parameter, and no document has."""
    warn_of_absent_fields(path, {f"--{name.replace('_', '-')}": names_of(text) for name, text in named.items()})


def _vectors(written: str | None) -> dict[str, int | tuple[int, str]]:
    """Vectors as a schema takes them, from NAME=N or NAME=N:KIND."""
    vectors: dict[str, int | tuple[int, str]] = {}
    for one in names_of(written):
        name, equals, size = one.rpartition("=")
        number, colon, kind = size.partition(":")
        if not equals or not number.isdecimal():
            raise ParameterError(f"must be like embedding=384 or embedding=384:int8, got {one!r}.", parameter="vectors")
        vectors[name] = (int(number), kind) if colon else int(number)
    return vectors


def _stop_words(text: str | None) -> str | tuple[str, ...] | None:
    """A list by its name, or words separated by commas."""
    from rankwell.index.text.stop_words import STOP_WORDS

    if text is None or text in STOP_WORDS:
        return text
    if "," not in text:
        raise ParameterError(
            f"must be {' or '.join(STOP_WORDS)}, or words separated by commas (one word: 'word,'), got {text!r}.",
            parameter="stop_words",
        )
    return names_of(text)


def _lines(path: Path | None) -> list[str]:
    """The lines of a file that are not empty."""
    from rankwell.streams.decompression import ByteStream

    if path is None:
        return []
    with ByteStream(str(path)) as stream:
        content = stream.readall()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        line = content.count(b"\n", 0, cause.start) + 1
        raise DataError(
            f"{stream.name}, line {line}: 0x{content[cause.start]:02x} is not UTF-8, but ids are. Convert the file to "
            f"UTF-8 first (iconv -t utf-8)."
        ) from cause
    return [line for line in text.splitlines() if line]
