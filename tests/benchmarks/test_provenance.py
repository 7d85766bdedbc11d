"""Which code made a figure: results name a commit, and only code that is committed makes results."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks import provenance


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch) -> Path:
    """A git checkout of one committed file, which is taken for this project's."""
    monkeypatch.delenv("RANKWELL_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "kernel.py").write_text("fast = True\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message=first")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    answer = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return answer.stdout.strip()


class TestDemandCommit:
    def test_a_clean_checkout_is_its_commit(self, checkout):
        head = git(checkout, "rev-parse", "HEAD")
        assert provenance.demand_commit() == {"id": head, "dirty": False}
        assert provenance.short_commit(provenance.demand_commit()) == head[:12]

    def test_a_changed_file_is_refused_by_name(self, checkout):
        (checkout / "kernel.py").write_text("fast = False\n")
        with pytest.raises(provenance.NoCommitError, match=r"from commit [0-9a-f]{12}: kernel\.py\. Commit them"):
            provenance.demand_commit()

    def test_a_file_that_git_does_not_know_is_refused(self, checkout):
        (checkout / "new kernel.py").touch()
        with pytest.raises(provenance.NoCommitError, match=r"new kernel\.py"):
            provenance.demand_commit()

    def test_of_many_changed_files_five_are_named(self, checkout):
        for number in range(7):
            (checkout / f"new_{number}.py").touch()
        with pytest.raises(provenance.NoCommitError, match=r"new_3\.py, new_4\.py, \.\.\.\. Commit"):
            provenance.demand_commit()

    def test_what_benchmarks_write_does_not_count(self, checkout):
        (checkout / "benchmarks" / "results").mkdir(parents=True)
        (checkout / "benchmarks" / "results" / "sorting.cpu2.json").touch()
        (checkout / "docs").mkdir()
        (checkout / "docs" / "results.md").touch()
        assert provenance.demand_commit()["dirty"] is False
        (checkout / "benchmarks" / "sorting.py").touch()
        with pytest.raises(provenance.NoCommitError, match=r"benchmarks/sorting\.py"):
            provenance.demand_commit()

    def test_a_copy_without_history_must_say_its_commit(self, monkeypatch):
        monkeypatch.delenv("RANKWELL_COMMIT", raising=False)
        monkeypatch.setattr(provenance, "_git", lambda *_: None)
        assert provenance.find_commit() == {"id": None, "dirty": None}
        with pytest.raises(provenance.NoCommitError, match="RANKWELL_COMMIT=<id>"):
            provenance.demand_commit()
        monkeypatch.setenv("RANKWELL_COMMIT", "abc123")
        assert provenance.demand_commit() == {"id": "abc123", "dirty": False}

    def test_a_changed_copy_is_refused(self, monkeypatch):
        monkeypatch.setenv("RANKWELL_COMMIT", "abc123+")
        assert provenance.find_commit() == {"id": "abc123", "dirty": True}
        with pytest.raises(provenance.NoCommitError, match="files differ from commit abc123"):
            provenance.demand_commit()


def test_a_named_rival_has_its_version():
    versions = provenance.library_versions(["pytest fast mode", "no-such-library"])
    assert versions["pytest"] == version("pytest")
    assert "no-such-library" not in versions
