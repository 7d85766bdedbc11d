"""The measured part of docs/guide/which-ranker.md: NDCG and seconds of each ranker, from stored results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.report.stored_results import MissingResultError, StoredResults
from benchmarks.table import markdown_table, write_figure
from rankwell.data.shapes import SHAPES

START, END = "<!-- measured: written by `make results` -->", "<!-- end of measured -->"
RANKERS = ("lambdamart", "rankboost", "ranksvm", "listnet", "least-squares")
COLLECTIONS = {"cranfield": "Cranfield", "demo": "demo", "MQ2007": "MQ2007", "MQ2008": "MQ2008"}


def replace_measured(page: str, stored: StoredResults) -> str:
    """The page with its measured part written anew."""
    if START not in page or END not in page:
        raise ValueError(f"the page must have the lines {START!r} and {END!r}.")
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{measured_table(stored)}\n\n{END}{after}"


def measured_table(stored: StoredResults) -> str:
    headings = ["ranker", *COLLECTIONS.values(), "to train", "large data, 2 cores", "large data, H200"]
    lines = []
    for ranker in RANKERS:
        qualities = [_or_empty(partial(_quality, stored, collection, ranker)) for collection in COLLECTIONS]
        times = [_or_empty(partial(cell, stored)) for cell in TIMES[ranker]]
        if any(qualities) or any(times):
            lines.append([f"`{ranker}`", *qualities, *times])
    return markdown_table(headings, lines)


def _or_empty(find: Callable[[], str]) -> str:
    try:
        return find()
    except MissingResultError:
        return ""


def _quality(stored: StoredResults, collection: str, ranker: str) -> str:
    return f"{stored.row('untuned_rankers', f'{collection}, {ranker}, ndcg@10').value:.4f}"


def _case(question: str, case: str, what: str, machine: str | None = None) -> Callable[[StoredResults], str]:
    """A cell: the figure of a row with its unit, and what it is."""

    def cell(stored: StoredResults) -> str:
        row = stored.row(question, case, machine)
        return f"{write_figure(row.value)} {row.unit}: {what}"

    return cell


def _nothing(stored: StoredResults) -> str:
    return ""


_MSLR30K = f"{SHAPES['mslr30k'].n_docs / 1e6:.1f} million documents, {SHAPES['mslr30k'].n_features} features"
_FAR = f"a round, {SHAPES['far'].n_docs / 1e6:.1f} million documents, {SHAPES['far'].n_features} features"

# By ranker: a small training, and a large one on two cores and on an H200.
TIMES: dict[str, tuple[Callable[[StoredResults], str], ...]] = {
    "lambdamart": (
        _case("training_seconds", "MQ2007 Fold1, lambdamart", "MQ2007"),
        _case(
            "lambdamart_cpu",
            "mslr10k, 31 leaves, processor time of a tree, one thread",
            f"a tree, {SHAPES['mslr10k'].n_docs / 1e6:.1f} million documents, one core",
        ),
        _case("lambdamart_cuda", "mslr30k, 31 leaves, a whole round", f"a tree, {_MSLR30K}", "h200"),
    ),
    "rankboost": (
        _case("rankboost_cpu", "MQ2007 Fold1, 300 rounds with binning", "MQ2007", "cpu2"),
        _case("rankboost_cpu", "far, a whole round", _FAR, "cpu2"),
        _case("rankboost_cuda", "far, a whole round", _FAR, "h200"),
    ),
    "ranksvm": (
        _case("ranksvm_cpu", "to tolerance, MQ2007 Fold1, C = 2^-5", "MQ2007", "cpu2"),
        _case("ranksvm_cpu", "to tolerance, `mslr30k` shape, standardised", _MSLR30K, "cpu2"),
        _case("ranksvm_cuda", "to tolerance, `mslr30k` shape, transfer included", _MSLR30K, "h200"),
    ),
    "listnet": (
        _case("listnet_cpu", "Top-1, 46-15-1, 300 epochs, MQ2008 Fold1", "MQ2008, 300 epochs", "cpu2"),
        _case("listnet_cpu", "exact Top-1 epoch, five labels", "an epoch, 0.5 million documents, 46 features", "cpu2"),
        _case("listnet_cuda", "per-query SGD epoch, Top-1, five labels", "the same epoch", "h200"),
    ),
    "least-squares": (_case("training_seconds", "MQ2007 Fold1, least-squares", "MQ2007"), _nothing, _nothing),
}
