"""`python .ci/smoke.py`: whether an installation of Rankwell works, whatever versions and extras it has.

It imports every module and runs the commands that the demo shows on a small made-up collection: minutes where kernels
must be compiled, seconds where they are. The tests proper are `make test`. With `--wheel` it also checks that a wheel
is what is installed, with its files that are not Python and its command.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "pyarrow", "safetensors", "typer", "rich", "PyYAML")
EXTRAS = {"pandas": "pandas", "polars": "polars", "matplotlib": "plot", "torch": "torch"}
FEW_STEPS = {
    "rankboost": "n_rounds=3",
    "lambdamart": "n_rounds=3",
    "ranksvm": "max_iter=5",
    "least-squares": "ridge=0.01",
}
WORDS = (
    *("ranking", "list", "pair", "query", "document", "feature", "loss", "tree"),
    *("margin", "round", "index", "stream", "term", "score", "label", "bin"),
)
# Files of the package that are not Python.
FILES = ("py.typed", "serving/page/*.html", "serving/page/*.css", "kernels/*/cuda/*.cu", "kernels/*/opencl/*.cl")
# What the extra `serve` is needed for.
SERVING = ("rankwell.serving.http.", "rankwell.serving.shards.")


def main() -> None:
    print("python", sys.version.split()[0], *(f"{name} {version(name)}" for name in LIBRARIES))
    print("extras:", *(name for name in EXTRAS if is_installed(name)))
    if sys.argv[1:] == ["--wheel"]:
        check_wheel()
    import_every_module()
    with tempfile.TemporaryDirectory(prefix="rankwell-smoke-") as folder:
        os.chdir(folder)
        write_collection()
        search_and_extract()
        for name in json.loads(rankwell("info", "--json"))["rankers"]:
            train_and_measure(name)
        convert_and_explain()
        use_extras()
    print("all of it works")


def check_wheel() -> None:
    """The package is not the checkout, is whole, and its command is there."""
    from rankwell import __file__, __version__

    folder = Path(__file__).parent
    require("site-packages" in folder.parts, f"an installed package, not {folder}")
    for pattern in FILES:
        require(any(folder.glob(pattern)), f"{pattern} is in the wheel")
    require(version("rankwell") == __version__, "the release of the package and of its metadata")
    command = Path(sys.executable).parent / "rankwell"
    for said in (subprocess.check_output([command, "--version"], text=True), rankwell("--version")):
        require(said.strip() == f"rankwell {__version__}", "the command and `python -m rankwell` say the release")
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
    print(f"rankwell {__version__} in {folder}")


def import_every_module() -> None:
    """Every module imports without any extra, but for those whose purpose is an extra."""
    import rankwell

    modules = [module.name for module in pkgutil.walk_packages(rankwell.__path__, "rankwell.")]
    for name in modules:
        if name == "rankwell.__main__" or (name == "rankwell.torch" and not is_installed("torch")):
            continue
        if name.startswith(SERVING) and not is_installed("starlette"):
            continue
        if name.startswith("rankwell.hardware.") and not is_installed("amaranth"):
            continue
        import_module(name)
    for name in rankwell.__all__:
        getattr(rankwell, name)
    print(f"{len(modules)} modules import")


def write_collection() -> None:
    """Documents of a few words, queries for some of them, and who is right."""
    drawn = random.Random(1)
    with open("documents.jsonl", "w") as documents:
        for number in range(200):
            title, body = drawn.choices(WORDS, k=3), drawn.choices(WORDS, k=30)
            row = {"id": f"d{number}", "title": " ".join(title), "body": " ".join(body), "popularity": number % 7}
            documents.write(json.dumps(row) + "\n")
    for part in ("train", "test"):
        with open(f"{part}.queries.tsv", "w") as queries, open(f"{part}.qrels", "w") as qrels:
            for query in range(20):
                queries.write(f"{part}{query}\t{' '.join(drawn.sample(WORDS, k=3))}\n")
                for number in drawn.sample(range(200), k=40):
                    qrels.write(f"{part}{query} 0 d{number} {drawn.randrange(3)}\n")


def search_and_extract() -> None:
    rankwell("index", "build", "documents.jsonl", "--out", "index", "--statics", "popularity", "--stemmer", "english")
    rankwell("index", "check", "index")
    found = json.loads(rankwell("search", "index", "ranking loss", "--json"))
    require(bool(found), "the search finds documents")
    for part in ("train", "test"):
        rankwell("features", "index", f"{part}.queries.tsv", f"{part}.qrels", "--top", "20", "--out", f"{part}.txt")


def train_and_measure(name: str) -> None:
    """Each ranker learns something finite, and its file scores the same as its process did."""
    step = FEW_STEPS.get(name, "n_epochs=2")
    options = ("--vali", "test.txt", "--out", f"{name}.rank", "--set", step, "--json")
    trained = json.loads(rankwell("train", name, "train.txt", *options))
    rankwell("predict", f"{name}.rank", "test.txt", "--out", f"{name}.scores")
    measured = json.loads(rankwell("evaluate", "test.txt", f"{name}.scores", "--json"))
    there, here = trained["metrics"]["validation"]["ndcg@10"], measured["metrics"]["ndcg@10"]["mean"]
    require(0 < here <= 1 and abs(there - here) < 1e-12, f"{name}: ndcg@10 {here:.4f} in training and from its file")
    print(f"{name}: ndcg@10 {here:.4f}")


def convert_and_explain() -> None:
    for ending in ("parquet", "feather", "csv"):
        rankwell("convert", "test.txt", f"test.{ending}")
        rankwell("info", f"test.{ending}")
    rankwell("compare", "test.txt", "rankboost.scores", "ranksvm.scores")
    rankwell("explain", "rankboost.rank", "test.txt", "--row", "1")


def use_extras() -> None:
    """Frames and plots where their library is there; where it is not, the message that names the extra."""
    import rankwell
    from rankwell.rankers.history_plot import plot_history

    rows = {"a": [1.0, 2.0, 3.0], "label": [0, 1, 2], "qid": [1, 1, 1]}
    for name in ("pandas", "polars"):
        if is_installed(name):
            dataset = rankwell.RankingDataset.from_frame(import_module(name).DataFrame(rows))
            require(dataset.labels.tolist() == [0, 1, 2], f"a dataset from {name}")
    if is_installed("matplotlib"):
        plot_history({"loss": [2.0, 1.0]}, path="history.png")
        require(Path("history.png").stat().st_size > 0, "a plot of a history")
    else:
        said = message_of(lambda: plot_history({"loss": [2.0, 1.0]}))
        require("rankwell[plot]" in said, "a plot without Matplotlib names the extra")
    if not is_installed("torch"):
        said = message_of(lambda: import_module("rankwell.torch"))
        require("rankwell[torch]" in said, "rankwell.torch without PyTorch names the extra")


def rankwell(*arguments: str) -> str:
    """Run a command in a process of its own; returns its stdout."""
    done = subprocess.run([sys.executable, "-m", "rankwell", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Traceback" in done.stderr:
        raise SystemExit(f"rankwell {' '.join(arguments)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def message_of(call: Callable[[], object]) -> str:
    """What Rankwell says when it refuses a call."""
    from rankwell import RankwellError

    try:
        call()
    except RankwellError as error:
        return str(error)
    raise SystemExit("an error was expected, and there was none")


def is_installed(module: str) -> bool:
    return find_spec(module) is not None


def require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"not so: {what}")


if __name__ == "__main__":
    main()
