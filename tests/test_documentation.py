"""The Python code in the README and the guide runs as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn

import rankwell

ROOT = Path(__file__).parents[1]


def write_part(path: Path, seed: int) -> None:
    """Twelve queries of eight documents as LETOR text; the first feature says a good deal about the label."""
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((96, 5)).round(3)
    labels = np.clip(np.round(features[:, 0] + 0.3 * generator.standard_normal(96)), 0, 2)
    with open(path, "w") as stream:
        for row, (label, values) in enumerate(zip(labels, features, strict=True)):
            pairs = " ".join(f"{number}:{value}" for number, value in enumerate(values, start=1))
            stream.write(f"{label:g} qid:{row // 8} {pairs}\n")


@pytest.mark.parametrize("page", ["README.md", "docs/guide/python.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo-output").mkdir()
    for seed, part in enumerate(("train", "vali", "test")):
        write_part(tmp_path / "demo-output" / f"{part}.txt", seed)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert examples
    names: dict[str, object] = {}
    with sklearn.config_context():
        for example in examples:
            exec(compile(example, page, "exec"), names)
    again, ranker, test = names["again"], names["ranker"], names["test"]
    assert isinstance(again, rankwell.RankBoost)
    assert isinstance(ranker, rankwell.RankBoost)
    np.testing.assert_array_equal(again.predict(test), ranker.predict(test))


@pytest.mark.parametrize("library", ["lightgbm", "ranklib", "svm-rank"])
def test_examples_for_newcomers_run(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With data under the names that the pages use for it."""
    monkeypatch.chdir(tmp_path)
    data = rankwell.make_ranking(n_docs=300, n_queries=15, n_features=5)
    X, y, qid = data.features, data.labels, data.qid_of_rows()
    names = {"X": X, "y": y, "qid": qid, "labels": y, "scores": X[:, 0]}
    names |= {"X_vali": X, "y_vali": y, "vali_qid": qid, "X_test": X, "test_qid": qid}
    examples = re.findall(
        r"```python\n(.*?)```", (ROOT / f"docs/guide/coming-from-{library}.md").read_text(), re.DOTALL
    )
    assert examples
    for example in examples:
        exec(compile(example, library, "exec"), names)
    if library == "ranklib":
        assert 0 < names["evaluation"].mean["ndcg@10"] < 1
    else:
        assert isinstance(names["ranker"], rankwell.Ranker)


def test_the_table_of_untuned_rankers_is_what_was_measured() -> None:
    lines = [line for line in (ROOT / "docs/guide/untuned-rankers.md").read_text().splitlines() if line.startswith("|")]
    header, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    measured = json.loads((ROOT / "benchmarks/results/untuned_rankers.cpu2.json").read_text())["rows"]
    values = {row["case"]: row["value"] for row in measured}
    shown = {
        f"{row[0]}, {name}, ndcg@10": cell
        for row in rows
        if len(row) == len(header)
        for name, cell in zip(header[1:], row[1:], strict=True)
    }
    checked = {case: f"{value:.4f}" for case, value in values.items() if case in shown}
    assert len(checked) == 56
    assert checked == {case: shown[case] for case in checked}


MARKDOWN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"]


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    """Also for those who read the Markdown itself."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\((?!https?:|#)([^)\s]+)\)", text)]
    assert not [target for target in targets if not (page.parent / target).exists()]


def test_pages_name_code_that_exists() -> None:
    """Where a page says "`names` in `file`", the file has these names."""
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    n_found = 0
    for page in pages:
        for names, file in re.findall(
            r"((?:`[\w.]+`(?:, | and )?)+) in\s+`([\w/]+\.(?:py|cuh?|cl|js))`", page.read_text()
        ):
            paths = [path for path in (ROOT / file, ROOT / "src/rankwell" / file) if path.is_file()]
            paths += [path for path in ROOT.glob(f"src/**/{Path(file).name}") if path.as_posix().endswith(f"/{file}")]
            assert paths, f"{page.name}: {file}"
            for name in re.findall(r"`(?:\w+\.)*(\w+)`", names):
                assert re.search(rf"\b{name}\b", paths[0].read_text()), f"{page.name}: {name} in {file}"
                n_found += 1
    assert n_found > 20


def test_promises_name_tests_that_exist() -> None:
    """docs/RELIABILITY.md: a name without a file is of the file before it."""
    table = (ROOT / "docs/RELIABILITY.md").read_text()
    file, n_found = "", 0
    for named, test in re.findall(r"`(?:(\w[\w/]*\.py)(?:::)?)?(test_\w+)?`", table):
        if not named and not test:
            continue
        file = named or file
        path = ROOT / file if file.startswith("tests/") else ROOT / "tests/serving" / file
        assert path.is_file(), file
        assert not test or re.search(rf"def {test}\(", path.read_text()), f"{file}::{test}"
        n_found += 1
    assert n_found > 50
