"""docs/results.md: every figure of the JSON, and the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.report import write_report


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
def make_report(tmp_path: Path):
    def make(*documents: dict[str, Any]) -> str:
        results = tmp_path / "benchmarks" / "results"
        results.mkdir(parents=True, exist_ok=True)
        for each in documents:
            path = results / f"{each['name']}.{each['machine']['short_name']}.json"
            path.write_text(json.dumps(each))
        return write_report(results, tmp_path / "docs" / "results.md").read_text(encoding="utf-8")

    return make


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
    assert "Checked first: same as the reference (1e-12)." in page


def test_a_gpu_and_unknown_or_changed_code_are_named(make_report):
    changed = document("sorting_cuda", "h200", commit={"id": "0123456789abcdef", "dirty": True})
    changed["machine"]["gpu"] = {"name": "NVIDIA H200", "driver": "580.1", "memory_gib": 139.8}
    page = make_report(changed, document("sorting", "cpu2", commit={"id": None, "dirty": None}))
    assert "NVIDIA H200, 140 GiB, driver 580.1" in page
    assert "commit 0123456789ab with changes" in page
    assert "no commit known. python" in page


def test_times_show_the_first_call_apart(make_report):
    assert "| kernel | 2 | 0.25 | 0.5 | 3 |" in make_report(document("sorting", "cpu2"))


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


def test_the_summary_counts_and_names_the_missed(make_report):
    slow = document("reading", "cpu2")
    slow["rows"][0]["value"] = 0.75
    page = make_report(slow, document("sorting", "cpu2"))
    assert "**1 of 2 targets are met.** Missed:\n\n- reading, one | two, on cpu2: 0.75 s, target ≤ 0.5 s\n" in page
    assert "| missed |" in page


def test_all_met_and_none_judged(make_report):
    assert "**1 of 1 targets are met.**\n" in make_report(document("sorting", "cpu2"))
    plain = document("sorting", "cpu2")
    plain["rows"][0]["target"] = None
    assert "No figure with a target has been measured." in make_report(plain)


def test_plots_are_linked_from_the_page(make_report):
    page = make_report(document("sorting", "cpu2", figures=["sorting.cpu2.curve.png"]))
    assert "![sorting.cpu2.curve.png](../benchmarks/results/sorting.cpu2.curve.png)" in page


def test_the_same_json_gives_the_same_bytes(make_report):
    first, second = document("reading", "cpu2"), document("sorting", "cpu2")
    assert make_report(first, second) == make_report(second, first)


def test_a_file_of_another_schema_is_refused(make_report):
    with pytest.raises(ValueError, match=r"sorting\.cpu2\.json has results schema 99, this is 1"):
        make_report(document("sorting", "cpu2", schema=99))
