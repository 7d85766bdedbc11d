"""Runs, the rankings that commands measure: of judged data (scores, rankers, features) or of judgments (TREC's)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankwell.cli.console import say
from rankwell.cli.inputs import Reading, check_readable, is_ranker, load_ranker, note_one_query, read_data, score
from rankwell.errors import DataError, ParameterError

if TYPE_CHECKING:
    import numpy as np

    from rankwell.data.dataset import RankingDataset
    from rankwell.metrics.conventions import Convention
    from rankwell.metrics.judged_queries import JudgedQueries
    from rankwell.rankers.base import Ranker

_SNIFFED_BYTES = 2**12


@dataclass(frozen=True)
class Run:
    """A ranking.

    name : its path, or the name of a feature
    queries : what it ranks; scores : in the order of the rows
    """

    name: str
    queries: RankingDataset | JudgedQueries
    scores: np.ndarray


def read_runs(
    data: Path,
    runs: Sequence[Path],
    reading: Reading,
    convention: Convention,
    *,
    qrels: Path | None = None,
    features: Sequence[str] = (),
    quiet: bool = False,
) -> list[Run]:
    """The rankings of judged data by some of its features, by scores and by rankers; or TREC's runs for judgments.

    Parameters
    ----------
    data : judged data, or judgments in TREC's format: then the runs are TREC's; or a folder of folds: then they are
        folders that `crossval --out` wrote
    qrels : all judgments of the data's queries: documents that the data lacks count as missed
    features : names of features of the data, each a ranking; they come first
    """
    from rankwell.data.scores import feature_scores

    if [str(data), *map(str, runs), str(qrels)].count("-") > 1:
        raise ParameterError("only one of the files can be stdin ('-').")
    if data.is_dir():
        if qrels is not None or features:
            raise ParameterError(f"{data} is a folder of folds: --qrels and --baseline need a file of data.")
        return _runs_of_folds(data, runs, reading)
    if is_qrels(data):
        if qrels is not None or features:
            raise ParameterError(f"{data} has judgments only: --qrels and --baseline need data with features.")
        return _runs_of_judgments(data, runs, convention, quiet)
    if is_run(data):
        raise DataError(
            f"{data} is a run of TREC's format, and what it is measured by comes first: judgments or judged data, then "
            "the run. Check the order of the files."
        )
    rankers = {path: load_ranker(path) for path in runs if is_ranker(path)}
    dataset = read_data(data, reading, quiet=quiet)
    if not dataset.has_labels:
        raise DataError(f"{data} has no labels, so nothing can be measured on it. Give judged data.")
    note_one_query(data, dataset, quiet=quiet)
    _note_flattery(data, dataset, quiet)
    found = [Run(name, dataset, feature_scores(dataset, name)) for name in features]
    for path in runs:
        if path not in rankers and is_run(path):
            found.append(_run_of_data(path, data, dataset, convention, quiet, qrels=qrels))
        else:
            found.append(_run(path, rankers.get(path), data, dataset, quiet))
    if qrels is not None:
        return _with_missed(dataset, found, qrels, quiet)
    if convention.name == "trec":
        say(
            "note: trec_eval also counts judged documents that the data lacks: --qrels FILE counts them as missed",
            quiet=quiet,
        )
    return found


def _runs_of_folds(data: Path, runs: Sequence[Path], reading: Reading) -> list[Run]:
    """Cross-validations, kept by `crossval --out`, of the test data of all folds."""
    from rankwell.data.fold_scores import joined_tests, read_fold_scores, read_tests
    from rankwell.data.folds import find_folds

    for path in runs:
        if not path.is_dir():
            raise DataError(f"{data} is a folder of folds: {path} must be a folder that rankwell crossval --out wrote.")
    tests = read_tests(find_folds(data), on_bad_line=reading.on_bad_line, label=reading.label, qid=reading.qid)
    whole = joined_tests(tests)
    return [Run(str(path), whole, read_fold_scores(path, tests)) for path in runs]


def _note_flattery(data: Path, dataset: RankingDataset, quiet: bool) -> None:
    """Say that figures on data with added documents are not those of serving."""
    candidates = dataset.candidates
    if candidates is not None and candidates.outside:
        say(
            f"note: these figures flatter: {candidates.outside} of {dataset.n_docs} rows of {data} are judged "
            f"documents that the first pass did not find ({candidates.source}), and serving has no such rows. Measure "
            "on data made with --candidates top",
            quiet=quiet,
        )


def is_qrels(path: Path) -> bool:
    """Whether a file holds judgments in TREC's format, or BEIR's, by its first line."""
    from rankwell.features.qrels import is_beir_header
    from rankwell.kernels.letor_text.reference import is_letor_line

    line = _first_line(path)
    fields = line.split()
    if is_beir_header(line):
        return True
    return len(fields) == 4 and not is_letor_line(line) and _is_number(fields[3]) and b"," not in line


def is_run(path: Path) -> bool:
    """Whether a file is a run of TREC's, by its first line."""
    from rankwell.data.trec_run import is_run_line

    return is_run_line(_first_line(path))


def _first_line(path: Path) -> bytes:
    """The first line that is not blank, empty for a pipe: looking into it would consume its beginning."""
    from rankwell.streams.decompression import ByteStream

    if not path.is_file():
        return b""
    with ByteStream(str(path)) as stream:
        lines = stream.peek(_SNIFFED_BYTES).splitlines()
    return next((line for line in lines if line.strip()), b"")


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _runs_of_judgments(data: Path, runs: Sequence[Path], convention: Convention, quiet: bool) -> list[Run]:
    from rankwell.data.trec_run import read_run
    from rankwell.features.qrels import read_qrels
    from rankwell.metrics.missed_documents import queries_of_run

    for path in runs:
        check_readable(path)
        if is_ranker(path):
            raise DataError(f"{data} has judgments and no features, so the ranker {path} cannot be measured on it.")
    judgments = read_qrels(data)
    found = []
    for path in runs:
        run = read_run(path)
        absent = sum(query not in run for query in judgments)
        if absent:
            say(f"note: {path} lacks {absent} of {len(judgments)} judged queries: they count as 0", quiet=quiet)
        unknown = sum(query not in judgments for query in run)
        if unknown:
            say(f"note: {unknown} of {len(run)} queries of {path} have no judgments and do not count", quiet=quiet)
        found.append(Run(str(path), *queries_of_run(judgments, run, convention)))
    return found


def _run_of_data(
    path: Path, data: Path, dataset: RankingDataset, convention: Convention, quiet: bool, *, qrels: Path | None
) -> Run:
    """A run of TREC's, measured by the labels of data whose comments are document ids."""
    from dataclasses import replace

    from rankwell.data.trec_run import read_run
    from rankwell.features.qrels import qrels_of
    from rankwell.metrics.missed_documents import queries_of_run

    if qrels is not None:
        raise DataError(
            f"{path} is a run of TREC's format, and {qrels} has all judgments: measure it without the data, "
            f"rankwell evaluate {qrels} {path}."
        )
    say(f"note: {path} is a run of TREC's format: documents that {data} lacks count as not relevant", quiet=quiet)
    queries, scores = queries_of_run(qrels_of(dataset), read_run(path), convention)
    return Run(str(path), replace(queries, query_ids=dataset.query_ids), scores)


def _with_missed(dataset: RankingDataset, runs: Sequence[Run], qrels: Path, quiet: bool) -> list[Run]:
    """The same runs, with the judged documents that the data lacks."""
    from rankwell.features.qrels import read_qrels
    from rankwell.metrics.missed_documents import with_missed

    judgments = read_qrels(qrels)
    unknown = sum(str(query) not in judgments for query in dataset.query_ids.tolist())
    if unknown:
        say(f"note: {qrels} has no judgments of {unknown} of {dataset.n_queries} queries", quiet=quiet)
    found = []
    for run in runs:
        queries, scores, n_missed = with_missed(dataset, run.scores, judgments)
        found.append(Run(run.name, queries, scores))
    say(f"note: {n_missed} judged documents are not in the data and count as missed", quiet=quiet)
    return found


def _run(path: Path, ranker: Ranker | None, data: Path, dataset: RankingDataset, quiet: bool) -> Run:
    from rankwell.data.scores import read_scores

    if ranker is not None:
        return Run(str(path), dataset, score(path, ranker, data, dataset, quiet=quiet))
    return Run(str(path), dataset, read_scores(path, n_docs=dataset.n_docs))
