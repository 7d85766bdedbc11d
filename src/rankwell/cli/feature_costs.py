"""What the features of an index cost, as a table or as JSON."""

from __future__ import annotations

from pathlib import Path

from rankwell.cli.console import print_json, say, show
from rankwell.cli.figures import make_table
from rankwell.cli.progress import progress_bar

# Documents for which the cost of a feature is shown.
_N_DOCS = 1000


def show_costs(path: Path, *, as_json: bool, quiet: bool) -> None:
    """Measure the costs of an index's features, or take those that were kept, and print them."""
    from rankwell.features.cost_measurement import index_costs
    from rankwell.index.reader import Index

    index = Index.open(path)
    with progress_bar("measuring what features cost", quiet=quiet):
        costs = index_costs(index)
    if as_json:
        print_json(costs.to_json())
        return
    shared = make_table("shared by features, paid once if one of them is read", ["work", "µs a query", "µs a document"])
    for name, cost in costs.shared.items():
        shared.add_row(name, f"{cost.query:,.1f}", f"{cost.document:.3f}")
    show(shared)
    title = f"features of {_N_DOCS:,} documents of a query, in µs: alone, and as the last of all"
    table = make_table(title, ["feature", "alone", "added", "shared work"], left=["shared work"])
    names = list(costs.features)
    everything = costs.of(names, _N_DOCS)
    for name, own in costs.features.items():
        added = everything - costs.of([other for other in names if other != name], _N_DOCS)
        work = "known from selection" if name in costs.selected else ", ".join(own.shared)
        table.add_row(name, f"{costs.of([name], _N_DOCS):,.1f}", f"{added:,.1f}", work)
    show(table)
    show(f"all {len(names)} features: {everything:,.0f} µs a query of {_N_DOCS:,} documents")
    say(f"costs: {costs.source}", quiet=quiet)
