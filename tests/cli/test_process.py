"""The command as a process: exit codes, stdout apart from stderr, pipes, interrupts, full disks; never a traceback."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from rankwell.rankers.registry import RANKERS

RANKWELL = (sys.executable, "-m", "rankwell")

needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RANKWELL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,  # type: ignore[call-overload]
    )


def test_results_go_to_stdout_and_notes_to_stderr(files: Path) -> None:
    done = run("train", "least-squares", "train.txt", "--vali", "vali.txt", "--out", "new.rank")
    assert done.returncode == 0
    assert "ndcg@10" in done.stdout
    assert "written to" not in done.stdout
    assert done.stderr.endswith("written to new.rank\n")
    # Not a terminal: no colours, no bars.
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("evaluate", "absent.txt", "scores.txt"), 1),
        (("evaluate", "test.txt", "scores.txt", "--convention", "x"), 2),
        (("evaluate", "test.txt"), 2),
    ],
)
def test_a_mistake_is_one_line_on_stderr(files: Path, arguments: tuple[str, ...], code: int) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rankwell export model.rank --to o", ["onnx", "opensearch", "opensearch-ranklib", "opensearch-features"]),
        ("rankwell evaluate data.txt s.txt --convention le", ["letor4"]),
    ],
)
def test_the_shell_completes_values_of_options(typed: str, completed: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_RANKWELL_COMPLETE": "complete_bash"}
    assert run(env={**os.environ, **words}).stdout.split() == completed


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rankwell train la", ["lambdamart", "lambdarank"]),
        ("rankwell crossval ranks", ["ranksvm"]),
        ("rankwell train ", list(RANKERS)),
        ("rankwell train x", []),
    ],
)
def test_the_shell_completes_rankers(typed: str, completed: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": "2", "_RANKWELL_COMPLETE": "complete_bash"}
    done = run(env={**os.environ, **words})
    assert done.stdout.split() == completed


@pytest.mark.slow
def test_what_a_program_reads_does_not_depend_on_kernels_being_compiled(files: Path) -> None:
    kernels = files / "kernels"
    done = run("info", "test.txt", env={**os.environ, "RANKWELL_CACHE_DIR": str(kernels)})
    assert (done.returncode, done.stderr) == (0, "")
    assert any(kernels.iterdir())


def test_a_mistake_is_red_in_a_terminal(files: Path) -> None:
    done = run("info", "absent.txt", env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"})
    assert done.stderr.startswith("\x1b[31merror: ")


def test_a_reader_that_closes_the_pipe_early_is_not_an_error(files: Path) -> None:
    rows = (files / "test.txt").read_text() * 2000
    (files / "many.txt").write_text(rows)
    command = f"{sys.executable} -m rankwell predict model.rank many.txt --out - | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.count("\n") == 1
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("train", "--help"),
        ("index",),
        ("info",),
        ("info", "--json"),
        ("evaluate", "test.txt", "scores.txt"),
    ],
    ids=" ".join,
)
def test_a_reader_that_reads_nothing_is_no_trouble(files: Path, arguments: tuple[str, ...]) -> None:
    command = f"{shlex.join([*RANKWELL, *arguments])} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_that_nobody_reads_keeps_its_exit_code(files: Path) -> None:
    command = f"{shlex.join([*RANKWELL, 'evaluate', 'absent.txt', 'scores.txt'])} 2>&1 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_RANKWELL_COMPLETE": "complete_bash"}
        return run(env={**os.environ, **typed}).stdout.split()

    assert completed("rankwell tra") == ["train"]
    assert completed("rankwell index b") == ["build"]
    assert completed("rankwell predict --ro") == ["--rounds"]


def test_an_interrupt_is_quiet(files: Path) -> None:
    os.mkfifo("slow.txt")
    process = subprocess.Popen(
        [*RANKWELL, "predict", "model.rank", "slow.txt", "--out", "out.txt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Opening the pipe waits until the command reads from it.
    with open("slow.txt", "w"):
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (stdout, stderr) == ("", "")
    assert not (files / "out.txt").exists()


@needs_dev_full
def test_a_full_disk_at_stdout_is_one_line(files: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*RANKWELL, "predict", "model.rank", "test.txt", "--out", "-"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 1
    assert (
        done.stderr == "error: the disk is full: the output was not written. Free some space or choose another path.\n"
    )


@needs_dev_full
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "model.rank", "test.txt", "--out", "/dev/full"),
        ("convert", "test.txt", "full.svm"),
    ],
)
def test_a_full_disk_is_one_line(rankwell: Command, files: Path, arguments: tuple[str, ...]) -> None:
    (files / "full.svm").symlink_to("/dev/full")
    outcome = rankwell(*arguments)
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("error: ")
    assert "Free some space or choose another path." in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_device_is_written_to_and_not_replaced(rankwell: Command, files: Path) -> None:
    assert rankwell("predict", "model.rank", "test.txt", "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written_is_one_line(files: Path) -> None:
    (files / "secret.txt").write_text("1\n")
    (files / "secret.txt").chmod(0)
    assert "secret.txt: this user is not permitted to read or write it" in run("info", "secret.txt").stderr
    (files / "locked").mkdir(mode=0o500)
    done = run("predict", "model.rank", "test.txt", "--out", "locked/out.txt")
    assert done.returncode == 1
    assert "locked is not writable" in done.stderr


def test_scores_through_a_pipe_of_the_shell(files: Path) -> None:
    command = f"{sys.executable} -m rankwell evaluate test.txt <(cat scores.txt) --metrics map"
    through_pipe = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=120)
    assert through_pipe.stdout == run("evaluate", "test.txt", "scores.txt", "--metrics", "map").stdout


@pytest.mark.parametrize(
    ("closed", "code", "message"),
    [(">&-", 0, ""), ("<&-", 1, "error: standard input is closed. Give the path of a file"), ("2>&-", 1, "")],
)
def test_streams_that_are_closed(files: Path, closed: str, code: int, message: str) -> None:
    source = "train.txt" if closed == ">&-" else "-"
    command = f"exec {shlex.join([*RANKWELL, 'info', source])} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=120, input="")
    assert done.returncode == code
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stdout + done.stderr


def test_a_warning_of_the_library_is_one_line(files: Path) -> None:
    done = run("train", "ranksvm", "train.txt", "--set", "max_iter=1", "--set", "C=100", "--out", "new.rank", "--quiet")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: RankSVM stopped after 1 iterations")
    assert done.stderr.count("\n") == 1


def test_an_interrupt_ends_a_training_and_leaves_no_file(files: Path) -> None:
    settings = ("n_rounds=100000000", "checkpoint=run.checkpoint", "checkpoint_every=1")
    options = [part for setting in settings for part in ("--set", setting)]
    process = subprocess.Popen(
        [*RANKWELL, "train", "rankboost", "train.txt", "--out", "new.rank", "--quiet", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not Path("run.checkpoint").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 130
    assert not Path("new.rank").exists()
    assert Path("run.checkpoint").exists()
