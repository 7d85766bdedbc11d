"""What is said of workers: speed, waiting, and who is slow or short of memory."""

from __future__ import annotations

import logging

import pytest

from rankwell.cluster.division import choose_division
from rankwell.cluster.report import ClusterReport, WorkerFigures
from rankwell.errors import ParameterError


def make_report(*seconds_working, seconds=10.0):
    workers = [
        WorkerFigures(number, "host", 100 + number, n_docs=50, seconds=seconds, seconds_waiting=seconds - working)
        for number, working in enumerate(seconds_working)
    ]
    return ClusterReport(workers, n_steps=20)


def test_speed_counts_the_time_at_work_only():
    report = make_report(8.0, 5.0)
    assert report.documents_per_second(1) == 50 * 20 / 5.0
    assert report.share_waiting == (2.0 + 5.0) / 20.0
    assert report.line() == "2 workers  0.000325 M documents/s  35% waiting"


def test_a_worker_that_others_wait_for_is_named_once(caplog):
    report = make_report(4.0, 9.0, 4.2)
    with caplog.at_level(logging.WARNING, logger="rankwell"):
        report.name_the_slow()
        report.name_the_slow()
    assert [record.getMessage() for record in caplog.records] == [
        "worker 1 (process 101 on host) is slow: it works 2.2 times as long as the others, which wait for it. "
        "It has 50 documents."
    ]


@pytest.mark.parametrize("report", [make_report(5.0, 6.0), make_report(1.0, 2.0, seconds=3.0), make_report(9.0)])
def test_small_differences_short_runs_and_single_workers_are_not(report, caplog):
    report.name_the_slow()
    assert caplog.records == []


def test_little_memory_is_told(caplog):
    report = make_report(1.0)
    report.note_memory(0, 2**30)
    assert caplog.records == []
    report.note_memory(0, 2**28)
    assert "worker 0 (process 100 on host) is short of memory: 0.25 GiB are left" in caplog.text


@pytest.mark.parametrize(
    ("n_docs", "n_features", "n_workers", "expected"),
    [
        (1_000_000, 136, 4, "documents"),
        (10_000, 5_000, 4, "features"),
        (10_000, 5_000, 1, "documents"),
        (100, 20, 4, "documents"),
    ],
)
def test_few_documents_with_many_features_are_divided_by_features(n_docs, n_features, n_workers, expected):
    assert choose_division("auto", n_docs, n_features, 256, n_workers) == expected
    assert choose_division("documents", n_docs, n_features, 256, n_workers) == "documents"


def test_features_are_divided_in_groups():
    assert choose_division("features", 10, 33, 256, 3) == "features"
    with pytest.raises(ParameterError, match=r"33 features .* among 3 workers, .* Use division='documents'"):
        choose_division("features", 10, 33, 256, 4)
