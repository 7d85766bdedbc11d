"""The pages of results, written from the JSON in benchmarks/results/."""

from benchmarks.report.pages import write_report

__all__ = ["write_report"]
