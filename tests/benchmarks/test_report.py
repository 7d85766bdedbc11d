"""The pages of results: every figure of the JSON, what is lost, and the same text each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.provenance import ROOT
from benchmarks.report import write_report
from benchmarks.report.figures.registry import DRAWINGS
from benchmarks.report.pages import page_texts
from benchmarks.report.stored_results import MissingResultError, StoredResults
from benchmarks.report.subjects import SUBJECTS, subject_of
from benchmarks.report.which_ranker import replace_measured
from benchmarks.results import read_results


def document(name: str, short_name: str, **changes: Any) -> dict[str, Any]:
    row = {
        "case": "one | two",
        "value": 0.25,
        "unit": "s",
        "target": 0.5,
        "better": "lower",
        "rival": "lightgbm",
        "rival_value": 1.0,
        "paper": "1.923 s on an FPGA",
        "note": "small",
        "met": True,
    }
    machine = {"short_name": short_name, "cpu": "AMD EPYC", "cores": 2, "memory_gib": 23.6, "gpu": None}
    times = {"name": "kernel", "first_s": 2.0, "minimum_s": 0.25, "median_s": 0.5, "times_s": [0.5, 0.25, 0.75]}
    return {
        "schema": 1,
        "name": name,
        "question": f"How fast is {name}?",
        "date": "2025-01-31T12:00:00Z",
        "machine": machine,
        "versions": {"python": "3.11.7", "numpy": "2.0.0"},
        "commit": {"id": "0123456789abcdef", "dirty": False},
        "read_bandwidth_gb_s": None,
        "checks": [{"name": "same as the reference", "ok": True, "detail": "1e-12"}],
        "rows": [row],
        "timings": [times],
        "figures": [],
        **changes,
    }


@pytest.fixture
def make_pages(tmp_path: Path):
    """Writes the report of some documents; returns the text of every page, by its place in docs/."""

    def make(*documents: dict[str, Any]) -> dict[str, str]:
        results = tmp_path / "benchmarks" / "results"
        results.mkdir(parents=True, exist_ok=True)
        for each in documents:
            path = results / f"{each['name']}.{each['machine']['short_name']}.json"
            path.write_text(json.dumps(each))
        docs = tmp_path / "docs"
        written = [path for path in write_report(results, docs) if path.suffix == ".md"]
        return {path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8") for path in written}

    return make


@pytest.fixture
def make_report(make_pages):
    """The same for questions of no known subject: the text of their page."""
    return lambda *documents: make_pages(*documents)["results/other.md"]


def test_a_row_has_all_its_figures(make_report):
    page = make_report(document("sorting", "cpu2"))
    line = next(line for line in page.splitlines() if line.startswith("| one"))
    cells = [cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")]
    assert cells == [
        "one / two",
        "0.25 s",
        "≤ 0.5 s",
        "met",
        "lightgbm: 1 s (ours 4x)",  # 1.0 / 0.25
        "1.923 s on an FPGA",
        "small",
    ]


def test_where_and_when_it_was_measured(make_report):
    page = make_report(document("sorting", "cpu2", read_bandwidth_gb_s=31.25))
    assert "2 cores of AMD EPYC, 24 GiB; memory is read at 31.25 GB/s." in page
    assert "Measured 2025-01-31, commit 0123456789ab. python 3.11.7, numpy 2.0.0." in page
    assert "Checked before it was timed: same as the reference (1e-12)." in page


def test_a_gpu_and_unknown_or_changed_code_are_named(make_report):
    changed = document("sorting_cuda", "h200", commit={"id": "0123456789abcdef", "dirty": True})
    changed["machine"]["gpu"] = {"name": "NVIDIA H200", "driver": "580.1", "memory_gib": 139.8}
    page = make_report(changed, document("sorting", "cpu2", commit={"id": None, "dirty": None}))
    assert "NVIDIA H200, 140 GiB, driver 580.1" in page
    assert "commit 0123456789ab with changes" in page
    assert "no commit known. python" in page


def test_raw_times_stay_in_the_json(make_pages):
    assert not any("kernel" in page for page in make_pages(document("sorting", "cpu2")).values())


def test_one_section_a_question_and_a_part_a_machine(make_report):
    page = make_report(document("sorting", "h200"), document("reading", "cpu2"), document("sorting", "cpu2"))
    headings = [line for line in page.splitlines() if line.startswith("##")]
    assert headings == [
        "## How fast is reading?",
        "### On cpu2",
        "## How fast is sorting?",
        "### On cpu2",
        "### On h200",
    ]


def test_a_page_counts_and_names_the_missed(make_report):
    slow = document("reading", "cpu2")
    slow["rows"][0]["value"] = 0.75
    page = make_report(slow, document("sorting", "cpu2"))
    assert "**1 of 2 targets are met.** Missed:\n\n- reading, one | two, on cpu2: 0.75 s, target ≤ 0.5 s\n" in page
    assert "| missed |" in page


def test_all_met_and_none_judged(make_report):
    assert "**1 of 1 targets are met.**\n" in make_report(document("sorting", "cpu2"))
    plain = document("sorting", "cpu2")
    plain["rows"][0]["target"] = None
    assert "No figure here has a target." in make_report(plain)


def test_plots_are_linked_from_the_page(make_report):
    page = make_report(document("sorting", "cpu2", figures=["sorting.cpu2.curve.png"]))
    assert "![sorting.cpu2.curve.png](../../benchmarks/results/sorting.cpu2.curve.png)" in page


def test_the_same_json_gives_the_same_bytes(make_report):
    first, second = document("reading", "cpu2"), document("sorting", "cpu2")
    assert make_report(first, second) == make_report(second, first)


def test_a_question_is_on_the_page_of_its_subject(make_pages):
    pages = make_pages(document("rankboost_cpu", "cpu2"), document("index_text", "cpu2"), document("sorting", "cpu2"))
    assert "How fast is rankboost_cpu?" in pages["results/rankboost.md"]
    assert "How fast is index_text?" in pages["results/search.md"]
    for name in ("rankboost", "search", "other"):
        assert f"](results/{name}.md)" in pages["results.md"]


def test_pages_of_questions_that_are_gone_are_removed(make_pages, tmp_path):
    old = tmp_path / "docs" / "results" / "gone.md"
    old.parent.mkdir(parents=True)
    old.write_text("# Gone")
    make_pages(document("sorting", "cpu2"))
    assert not old.exists()


def test_every_subject_has_its_own_questions():
    for subject in SUBJECTS:
        for start in subject.questions:
            assert subject_of(start) is subject


def test_the_overview_says_where_we_lose(make_pages):
    slow, worse = document("index_text", "cpu2"), document("untuned_rankers", "cpu2")
    slow["rows"][0].update(case="speed", value=20.0, unit="MB/s", better="higher", rival="tantivy", rival_value=30.0)
    slow["rows"][0]["target"] = None
    worse["rows"][0].update(case="cisi, listnet, ndcg@10", value=0.40, unit="", better="higher", target=0.5)
    worse["rows"][0].update(rival="BM25", rival_value=0.45, interval=[-0.07, -0.03])
    overview = make_pages(slow, worse)["results.md"]
    assert "- To index text, tantivy is 1.5 times as fast: speed, 30 MB/s, ours 20 MB/s." in overview
    assert "- On cisi, listnet without a parameter set ranks worse than BM25: NDCG@10 0.4000 and 0.4500" in overview
    assert "- 1 of our own 1 targets are missed" in overview


def test_the_overview_names_libraries_whose_tuned_trees_are_better(make_pages):
    quality = document("lambdamart_quality", "cpu2")
    figures = {"LambdaMART": 0.51, "CatBoost": 0.52, "XGBoost": 0.50, "CatBoost YetiRank": 0.53}
    quality["rows"] = [
        {**quality["rows"][0], "case": f"MQ2007, {name}, mean of 4 models, test map (letor4)", "value": value}
        for name, value in figures.items()
    ]
    overview = make_pages(quality)["results.md"]
    assert "On MQ2007, CatBoost's trees rank better than LambdaMART's" in overview
    assert "test map (letor4) 0.5200 and 0.5100." in overview
    assert "XGBoost's" not in overview
    assert "YetiRank" not in overview


def test_a_difference_has_its_interval_in_the_table(make_report):
    row = document("sorting", "cpu2")
    row["rows"][0].update(value=0.5, better="higher", rival_value=0.4, interval=[0.08, 0.12])
    assert "(ours 1.25x), difference +0.0800 to +0.1200" in make_report(row)


def test_a_file_of_another_schema_is_refused(make_report):
    with pytest.raises(ValueError, match=r"sorting\.cpu2\.json has results schema 99, this is 1"):
        make_report(document("sorting", "cpu2", schema=99))


def test_the_committed_pages_are_those_of_the_committed_results():
    stored = StoredResults(read_results())
    drawings = [drawing for drawing in DRAWINGS if drawing.can_be_drawn(stored)]
    for name, text in page_texts(stored, drawings, "../../benchmarks/results").items():
        page = ROOT / "docs" / name
        assert page.exists(), f"run `make results`: there is no docs/{name}"
        assert page.read_text(encoding="utf-8") == text, f"run `make results`: docs/{name} is of other results"
    guide = (ROOT / "docs" / "guide" / "which-ranker.md").read_text(encoding="utf-8")
    assert guide == replace_measured(guide, stored), "run `make results`: the guide's figures are of other results"


def test_plots_are_drawn_from_the_committed_results(tmp_path):
    """Those that have results; a plot without any says what is missing."""
    stored = StoredResults(read_results())
    for drawing in DRAWINGS:
        committed = ROOT / "docs" / "results" / drawing.file
        if drawing.can_be_drawn(stored):
            assert committed.exists(), f"run `make results`: there is no {drawing.file}"
            assert drawing.write(stored, tmp_path).read_text(encoding="utf-8").startswith("<?xml")
        else:
            assert not committed.exists()
            with pytest.raises(MissingResultError, match=r"no (results|row|times|figure|steps)"):
                drawing.draw(stored)


def test_the_plot_of_speed_shows_the_worst_case_of_each_library(tmp_path):
    many = document("select_documents", "cpu2")
    row = many["rows"][0]
    many["rows"] = [
        {**row, "rival": "tantivy", "value": 1.0, "rival_value": 8.0},
        {**row, "rival": "tantivy", "value": 1.0, "rival_value": 0.5},
        {**row, "rival": "only reading the bins", "value": 1.0, "rival_value": 0.1},
    ]
    speed = next(drawing for drawing in DRAWINGS if drawing.name == "speed")
    text = speed.write(StoredResults([many]), tmp_path).read_text(encoding="utf-8")
    assert "find the best documents · tantivy" in text
    assert ">0.5<" in text
    assert ">8<" not in text
    assert "reading the bins" not in text
