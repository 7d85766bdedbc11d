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
    headings = ["ranker", *COLLECTIONS.values(), "trains on MQ2007", "large data, 2 cores", "H200"]
    lines = []
    for ranker in RANKERS:
        qualities = [_or_empty(partial(_quality, stored, collection, ranker)) for collection in COLLECTIONS]
        times = [_or_empty(partial(cell, stored)) for cell in TIMES[ranker]]
        if any(qualities) or any(times):
            lines.append([f"`{ranker}`", *qualities, *times])
    return f"{markdown_table(headings, lines)}\n\nLarge data: {large_sizes()}."


def large_sizes() -> str:
    """How large the data of the last two columns is."""
    return "; ".join(
        f"{who}, {SHAPES[name].n_docs / 1e6:.1f} million documents of {SHAPES[name].n_features} features"
        for who, name in SIZES.items()
    )


def _or_empty(find: Callable[[], str]) -> str:
    try:
        return find()
    except MissingResultError:
        return ""


def _quality(stored: StoredResults, collection: str, ranker: str) -> str:
    return f"{stored.row('untuned_rankers', f'{collection}, {ranker}, ndcg@10').value:.4f}"


def _case(question: str, case: str, of: str = "", machine: str | None = None) -> Callable[[StoredResults], str]:
    """A cell: the figure of a row with its unit, and of what it is."""

    def cell(stored: StoredResults) -> str:
        row = stored.row(question, case, machine)
        value, unit = (row.value * 1e3, "ms") if row.unit == "s" and row.value < 1 else (row.value, row.unit)
        return f"{write_figure(float(f'{value:.2g}'))} {unit} {of}".rstrip()

    return cell


def _trained(ranker: str, *otherwise: Callable[[StoredResults], str]) -> Callable[[StoredResults], str]:
    """The cell of a training as the ranker comes; until that is measured, the next best that is."""
    cells = (_case("training_seconds", f"MQ2007 Fold1, {ranker}"), *otherwise)
    return lambda stored: next(filter(None, (_or_empty(partial(cell, stored)) for cell in cells)), "")


def _nothing(stored: StoredResults) -> str:
    return ""


# By ranker: a small training, and a large one on two cores and on an H200.
TIMES: dict[str, tuple[Callable[[StoredResults], str], ...]] = {
    "lambdamart": (
        _trained("lambdamart"),
        _case("lambdamart_cpu", "mslr10k, 31 leaves, processor time of a tree, one thread", "a tree, one core"),
        _case("lambdamart_cuda", "mslr30k, 31 leaves, a whole round", "a tree", "h200"),
    ),
    "rankboost": (
        _trained("rankboost", _case("rankboost_cpu", "MQ2007 Fold1, 300 rounds with binning", "", "cpu2")),
        _case("rankboost_cpu", "far, a whole round", "a round", "cpu2"),
        _case("rankboost_cuda", "far, a whole round", "a round", "h200"),
    ),
    "ranksvm": (
        _trained("ranksvm", _case("ranksvm_cpu", "to tolerance, MQ2007 Fold1, C = 2^-5", "", "cpu2")),
        _case("ranksvm_cpu", "to tolerance, `mslr30k` shape, standardised", "in all", "cpu2"),
        _case("ranksvm_cuda", "to tolerance, `mslr30k` shape, transfer included", "in all", "h200"),
    ),
    "listnet": (
        _trained("listnet"),
        _case("listnet_cpu", "exact Top-1 epoch, five labels", "an epoch", "cpu2"),
        _case("listnet_cuda", "per-query SGD epoch, Top-1, five labels", "an epoch", "h200"),
    ),
    "least-squares": (_trained("least-squares"), _nothing, _nothing),
}
SIZES = {
    "rankboost": "far",
    "lambdamart, ranksvm": "mslr30k",
    "lambdamart on one core": "mslr10k",
    "listnet": "mq2008-list",
}
