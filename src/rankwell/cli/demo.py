"""`rankwell demo`: every ranker on a small made-up collection, and what to try next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import say, show, show_log
from rankwell.cli.figures import make_table, metric_text
from rankwell.cli.options import QuietOption
from rankwell.cli.output_file import write_output
from rankwell.cli.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np

    from rankwell.data.dataset import RankingDataset
    from rankwell.rankers.base import Ranker

SEED = 2024
METRICS = ("ndcg@10", "map")
CONVENTION = "burges"
SHARES = {"train": 0.6, "vali": 0.2, "test": 0.2}

# What each ranker is given here: enough to show it, little enough for seconds. Others run with their defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "rankboost": {"n_rounds": 150},
    "listnet": {"n_epochs": 40},
    "ranknet": {"n_epochs": 40},
    "lambdarank": {"n_epochs": 40},
    "listmle": {"n_epochs": 40},
}
# What makes a first training short, where a ranker has the parameter.
SHORT = {"n_rounds": 2, "n_epochs": 1}


@dataclass(frozen=True)
class DemoRow:
    """One line of the table: a way to rank the test data, its metrics, and the seconds its training took."""

    name: str
    figures: dict[str, float]
    seconds: float | None = None


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where its files are written.")] = Path(
        "demo-output"
    ),
    quiet: QuietOption = False,
) -> None:
    """Make a small synthetic collection, train every ranker on it, and show how good each is on test data.

    Everything is seeded: a second run prints the same figures (but for the seconds).
    """
    from rankwell.rankers.registry import RANKERS

    show_log(quiet=True)
    parts = make_parts(out, quiet)
    say("==> ranking the test data at random and by its best single feature, to compare with", quiet=quiet)
    rows = [random_order(parts["test"]), best_single_feature(parts["train"], parts["test"])]
    say("==> training; the first run on a machine compiles the kernels, which takes a minute or two", quiet=quiet)
    for name in RANKERS:
        say(f"    {name}", quiet=quiet)
        rows.append(train_one(name, parts, out, quiet))
    _print_rows(rows, parts["test"])
    _print_next_commands(out, list(RANKERS))


def make_parts(out: Path, quiet: bool) -> dict[str, RankingDataset]:
    """Make the collection, split it by query, write the parts as LETOR text and read them back."""
    import numpy as np

    from rankwell.data.files import read, write
    from rankwell.data.synthetic import make_ranking

    say("==> making a synthetic collection: 250 queries, 10,000 documents, 40 features", quiet=quiet)
    collection = make_ranking(n_docs=10_000, n_queries=250, n_features=40, random_state=SEED)
    order = np.random.default_rng(SEED).permutation(collection.n_queries)
    out.mkdir(parents=True, exist_ok=True)
    parts = {}
    start = 0
    for name, share in SHARES.items():
        end = start + round(share * collection.n_queries)
        path = out / f"{name}.txt"
        write(collection.subset(np.sort(order[start:end])), path)
        parts[name] = read(path, n_features=collection.n_features)
        say(f"    {path}: {parts[name].n_docs:,} documents in {parts[name].n_queries} queries", quiet=quiet)
        start = end
    return parts


def random_order(test: RankingDataset) -> DemoRow:
    """The mean over twenty random orders: what no learning gives."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    draws = [_measure(test, generator.random(test.n_docs)) for _ in range(20)]
    return DemoRow("random order", {name: float(np.mean([draw[name] for draw in draws])) for name in METRICS})


def best_single_feature(train: RankingDataset, test: RankingDataset) -> DemoRow:
    """The feature, up or down, that ranks the training data best by the first metric; measured on test data."""
    import numpy as np

    candidates = [(feature, sign) for feature in range(train.n_features) for sign in (1.0, -1.0)]
    values = [_measure(train, _feature_scores(train, feature, sign))[METRICS[0]] for feature, sign in candidates]
    feature, sign = candidates[int(np.argmax(values))]
    return DemoRow(f"feature {feature + 1} alone", _measure(test, _feature_scores(test, feature, sign)))


def train_one(name: str, parts: dict[str, RankingDataset], out: Path, quiet: bool) -> DemoRow:
    """Train a ranker, keep its file and its scores beside the data, and measure it on the test data."""
    from rankwell.data.scores import format_scores
    from rankwell.rankers.registry import ranker_class

    ranker = ranker_class(name)(**SETTINGS.get(name, {}))
    with progress_bar(f"preparing {name}", quiet=quiet):
        _compile(ranker, parts)
    started = time.perf_counter()
    with progress_bar(f"training {name}", quiet=quiet) as bar:
        ranker.fit(parts["train"], eval_set=parts["vali"], callback=bar.training_step)
    seconds = time.perf_counter() - started
    scores = ranker.predict(parts["test"])
    figures = _measure(parts["test"], scores)
    ranker.metrics_ = {"convention": CONVENTION, "test": figures}
    ranker.save(out / f"{name}.rank")
    write_output(out / f"{name}.scores", format_scores(scores))
    return DemoRow(name, figures, seconds)


def _compile(ranker: Ranker, parts: dict[str, RankingDataset]) -> None:
    """Train a copy for a moment: that compiles its kernels, so that the seconds shown are those of training."""
    from sklearn.base import clone

    first = clone(ranker)
    first.set_params(**{name: value for name, value in SHORT.items() if name in first.get_params()})
    first.fit(parts["train"], eval_set=parts["vali"])


def next_commands(out: Path, rankers: list[str]) -> list[str]:
    """Commands that work on what the demo wrote."""
    rankwell, first, last = _program(), rankers[0], rankers[-1]
    folder = shlex.quote(str(out))
    return [
        f"{rankwell} info {folder}/train.txt",
        f"{rankwell} info {folder}/{last}.rank",
        f"{rankwell} train {first} {folder}/train.txt --vali {folder}/vali.txt --out {folder}/mine.rank --set ridge=1",
        f"{rankwell} predict {folder}/mine.rank {folder}/test.txt --out {folder}/mine.scores",
        f"{rankwell} evaluate {folder}/test.txt {folder}/mine.scores --metrics ndcg@10,map --convention letor4",
        f"{rankwell} compare {folder}/test.txt {folder}/mine.scores {folder}/{last}.rank",
        f"{rankwell} convert {folder}/train.txt {folder}/train.feather",
    ]


def _program() -> str:
    """How to call this program from here, so that the commands shown work when pasted."""
    called = Path(sys.argv[0])
    if called.name != "rankwell":
        return f"{shlex.quote(sys.executable)} -m rankwell"
    found = shutil.which("rankwell")
    if found is not None and Path(found).resolve() == called.resolve():
        return "rankwell"
    relative = os.path.relpath(called)
    return shlex.quote(str(called.absolute()) if relative.startswith(os.pardir) else relative)


def _feature_scores(dataset: RankingDataset, feature: int, sign: float) -> np.ndarray:
    import numpy as np

    return sign * np.nan_to_num(dataset.features[:, feature].astype(np.float64))


def _measure(dataset: RankingDataset, scores: np.ndarray) -> dict[str, float]:
    from rankwell.metrics.evaluation import evaluate

    return dict(evaluate(dataset, scores, metrics=METRICS, convention=CONVENTION).mean)


def _print_rows(rows: list[DemoRow], test: RankingDataset) -> None:
    title = f"Test data, {test.n_queries} queries; convention {CONVENTION}; seconds of training, compiled before"
    table = make_table(title, ["ranking by", *(f"{name} ({CONVENTION})" for name in METRICS), "seconds"])
    for row in rows:
        seconds = "-" if row.seconds is None else f"{row.seconds:.2f}"
        table.add_row(row.name, *(metric_text(row.figures[name]) for name in METRICS), seconds)
    show(table)


def _print_next_commands(out: Path, rankers: list[str]) -> None:
    show(f"Data, rankers and scores are in {out}. Try next:")
    for command in next_commands(out, rankers):
        show(f"  {command}")
