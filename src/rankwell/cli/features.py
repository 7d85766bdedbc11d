"""`rankwell features`: training data from an index, or from a log of served features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwell.cli.console import say, show_log
from rankwell.cli.inputs import check_readable
from rankwell.cli.options import DEFAULT_CANDIDATES, QuietOption, StopAfterOption, given_path
from rankwell.cli.output_file import check_data_output
from rankwell.cli.own_options import OwnOption, QueryVectorsOption, given_own
from rankwell.cli.progress import progress_bar
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.features.feature_set import FeatureSet
    from rankwell.features.own_features import OwnFeatures
    from rankwell.features.training_data import JudgedFeatures
    from rankwell.index.reader import Index


def features(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IDX QUERIES QRELS",
            parser=given_path,
            help="An index, queries (id, tab, text; JSON lines; TREC's topics) and judgments (TREC's or BEIR's); with "
            "--from-log, the judgments alone.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The data: .txt, .parquet, .feather, .csv; - is stdout.")
    ],
    name: Annotated[str, typer.Option("--features", metavar="SET", help="The feature set: mslr or full.")] = "full",
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--add",
            metavar="FEATURE",
            help="One more feature, by name ('relevance_model.whole') or as an expression of others "
            "('fresh = bm25.title / (1 + static.age)'). Can be repeated.",
            show_default=False,
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            metavar="KEY=VALUE",
            help="k1, b, mu, lambda, delta or weight, for one stream as in b.title=0.4. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    own: OwnOption = None,
    query_vectors: QueryVectorsOption = None,
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            metavar="WHICH",
            help="Which documents of a query become rows. top: the best --top N that the first pass finds, as in "
            "serving. judged+top adds judged documents that it does not find (judged: only judged ones); rankers learn "
            "to tell them by how little they match, and measuring on them flatters. The path of a TREC run: its "
            "documents, as another system's first pass.",
        ),
    ] = "top",
    top: Annotated[
        int,
        typer.Option(
            "--top",
            metavar="N",
            help="How many documents of a query the first pass gives, as --candidates in search and serve.",
        ),
    ] = DEFAULT_CANDIDATES,
    stop_after: StopAfterOption = None,
    prose: Annotated[
        bool, typer.Option("--prose", help="Queries are prose: quotes, signs and the like have no special meaning.")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            "--from-log", metavar="LOG", help="Take features as they were served, from a log.", show_default=False
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write features of judged queries as training data.

    Candidates without a judgment have label 0; comments are document ids, and the features keep their names.

    Example: rankwell features IDX queries.tsv qrels.txt --out train.txt
    """
    from rankwell.data.files import write

    show_log(quiet=quiet)
    check_data_output(out, inputs=[*sources, log])
    wanted = 3 if log is None else 1
    if len(sources) != wanted:
        needed = "IDX QUERIES QRELS" if log is None else "QRELS, with --from-log,"
        raise ParameterError(f"{needed} must be {wanted} path{'s' if wanted > 1 else ''}, got {len(sources)}.")
    for path in sources[-2:] if log is None else [*sources, log]:
        check_readable(path)
    if log is None:
        own_features = given_own(own or (), query_vectors or ())
        judged = _extracted(
            sources, name, more or (), parameters or (), own_features, candidates, top, stop_after, prose, quiet
        )
    else:
        judged = _logged(log, sources[0])
    with progress_bar(f"writing {out}", quiet=quiet):
        write(judged.dataset, out)
    _report(judged, out, quiet)


def _extracted(
    sources: Sequence[Path],
    name: str,
    more: Sequence[str],
    parameters: Sequence[str],
    own: OwnFeatures | None,
    candidates: str,
    top: int,
    stop_after: int | None,
    prose: bool,
    quiet: bool,
) -> JudgedFeatures:
    from rankwell.data.trec_run import read_run
    from rankwell.features.qrels import read_qrels
    from rankwell.features.queries import read_queries
    from rankwell.features.training_data import SOURCES, judged_features
    from rankwell.index.reader import Index

    folder, queries, qrels = sources
    is_run = candidates not in SOURCES and Path(candidates).is_file()
    index = Index.open(folder)
    feature_set = _feature_set(index, name, [*more, *_own_names(own, more)], parameters)
    with progress_bar(f"extracting {len(feature_set)} features", quiet=quiet) as bar:
        return judged_features(
            index,
            read_queries(queries, operators=not prose),
            read_qrels(qrels),
            feature_set,
            source="top" if is_run else candidates,
            run=read_run(candidates) if is_run else None,
            n_candidates=top,
            stop_after=stop_after,
            own=own,
            progress=lambda done, total: bar.show(done=done, total=total),
        )


def _own_names(own: OwnFeatures | None, more: Sequence[str]) -> list[str]:
    """The features that sources have, but for those that are named with settings of their own."""
    names = [] if own is None else own.feature_names
    return [name for name in names if not any(one == name or one.startswith(f"{name}(") for one in more)]


def _feature_set(index: Index, name: str, more: Sequence[str], parameters: Sequence[str]) -> FeatureSet:
    from rankwell.features.feature_set import FeatureSet, make_feature_set

    chosen = {}
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        try:
            chosen[key] = float(value)
        except ValueError:
            raise ParameterError(
                f"--parameter must be KEY=VALUE with a number, as in k1=0.9, got {parameter!r}."
            ) from None
    feature_set = make_feature_set(name, index.schema.streams, index.schema.statics, chosen)
    return FeatureSet([*feature_set.names, *more]) if more else feature_set


def _logged(log: Path, qrels: Path) -> JudgedFeatures:
    from rankwell.features.qrels import read_qrels
    from rankwell.features.training_data import logged_features
    from rankwell.serving.ranking.feature_log import FeatureLogReader

    return logged_features(FeatureLogReader(log), read_qrels(qrels))


def _report(judged: JudgedFeatures, out: Path, quiet: bool) -> None:
    dataset = judged.dataset
    for number, what in (
        (judged.absent_documents, "judged documents are absent and were left out"),
        (judged.unjudged_queries, "queries have no judgments and were left out"),
        (judged.unasked_queries, "judged queries are not among the queries and were left out"),
    ):
        if number:
            say(f"note: {number} {what}", quiet=quiet)
    candidates = dataset.candidates
    if candidates is not None and candidates.outside:
        say(
            f"note: {candidates.outside} of {dataset.n_docs} rows are judged documents that the first pass did not "
            f"find ({candidates.source}); serving never has such rows",
            quiet=quiet,
        )
    if str(out) != "-":
        size = f"{dataset.n_docs} rows of {dataset.n_features} features in {dataset.n_queries} queries"
        say(f"{size} written to {out}", quiet=quiet)
