"""The benchmark harness: it must refuse wrong answers, time correctly, and record what it did."""

from __future__ import annotations

import io
import json
import time
import weakref
from pathlib import Path

import pytest
from benchmarks.__main__ import main
from benchmarks.catalogue import Question, find_questions
from benchmarks.harness import Benchmark, BenchmarkError, Row, Timing
from benchmarks.machine import Gpu, Machine
from benchmarks.results import describe_run, write_results
from benchmarks.table import rich_table, row_cells, write_figure
from benchmarks.timing import time_function
from rich.console import Console

from benchmarks import machine, measure, runner

QUESTION = Question("sorting", "How fast is sorting?")
COMMIT = {"id": "0123456789abcdef", "dirty": False}


@pytest.fixture
def committed(monkeypatch):
    """As if the code were that of a commit."""
    monkeypatch.setenv("RANKWELL_COMMIT", COMMIT["id"])


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    return Benchmark(QUESTION, quick=False, folder=tmp_path)


def text_console() -> Console:
    return Console(file=io.StringIO(), width=200)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class TestTiming:
    def test_minimum_and_median_are_of_the_raw_times(self):
        timing = Timing("case", first_s=9.0, times=[3.0, 1.0, 2.0, 10.0])
        assert timing.minimum == 1.0
        assert timing.median == (2.0 + 3.0) / 2

    def test_the_first_call_is_apart(self):
        seconds = iter([0.05, 0, 0, 0, 0])
        timing = time_function("as if it compiled", lambda: time.sleep(next(seconds)), repeat=4, warmup=1)
        assert timing.first_s >= 0.05
        assert len(timing.times) == 4
        assert timing.minimum < 0.05

    def test_without_warm_up_the_first_call_counts(self):
        timing = time_function("once", lambda: None, repeat=1, warmup=0)
        assert timing.times == [timing.first_s]

    def test_more_warm_up_calls_are_not_counted(self):
        calls = []
        timing = time_function("count", lambda: calls.append(1), repeat=2, warmup=3)
        assert (len(calls), len(timing.times)) == (3 + 2, 2)

    def test_setup_runs_before_each_call(self):
        events = []
        time_function("pair", lambda: events.append("call"), repeat=2, warmup=1, setup=lambda: events.append("setup"))
        assert events == ["setup", "call"] * 3

    def test_the_result_is_that_of_the_last_call(self):
        numbers = iter(range(10))
        assert time_function("next", lambda: next(numbers), repeat=3, warmup=1).result == 3

    def test_a_result_is_let_go_before_the_next_call(self):
        class Big:
            pass

        alive: list[weakref.ref] = []

        def make() -> Big:
            assert all(reference() is None for reference in alive)
            big = Big()
            alive.append(weakref.ref(big))
            return big

        timing = time_function("big", make, repeat=3)
        assert len(alive) == 1 + 3
        assert timing.result is alive[-1]()

    @pytest.mark.parametrize("wrong", [{"repeat": 0}, {"warmup": -1}])
    def test_impossible_counts_are_refused(self, wrong):
        with pytest.raises(ValueError, match="repeat must be 1 or more"):
            time_function("none", lambda: None, **wrong)


class TestRow:
    @pytest.mark.parametrize(
        ("value", "target", "better", "met"),
        [
            (0.4, 0.5, "lower", True),
            (0.5, 0.5, "lower", True),
            (0.6, 0.5, "lower", False),
            (26.0, 25.0, "higher", True),
            (24.0, 25.0, "higher", False),
            (24.0, None, "higher", None),
        ],
    )
    def test_met(self, value, target, better, met):
        assert Row("case", value, "s", target=target, better=better).met is met

    def test_advantage_is_above_one_where_we_are_better(self):
        assert Row("time", 2.0, "s", rival="other", rival_value=6.0).advantage == 6.0 / 2.0
        assert Row("rate", 6.0, "MB/s", better="higher", rival="other", rival_value=2.0).advantage == 6.0 / 2.0
        assert Row("alone", 2.0, "s").advantage is None
        assert Row("zero", 0.0, "s", rival="other", rival_value=6.0).advantage is None

    @pytest.mark.parametrize("field", ["value", "target", "rival_value", "paper"])
    def test_a_figure_must_be_finite(self, field):
        with pytest.raises(ValueError, match=f"case: {field} must be a finite number"):
            Row(**{"case": "case", "value": 1.0, "unit": "s", field: float("nan")})

    def test_better_is_one_of_two_words(self):
        with pytest.raises(ValueError, match="'lower' or 'higher', got 'faster'"):
            Row("case", 1.0, "s", better="faster")  # type: ignore[arg-type]


class TestTable:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.0, "0"),
            (0.123456, "0.1235"),
            (1.5, "1.5"),
            (99.99, "99.99"),
            (1234.5, "1,234"),
            (1196711, "1,196,711"),
            (-2.25, "-2.25"),
            (0.00012345, "0.0001234"),
            (1.5e-7, "1.500e-07"),
        ],
    )
    def test_write_figure(self, value, text):
        assert write_figure(value) == text

    def test_an_empty_column_is_left_out(self):
        headings, lines = row_cells([Row("case", 2.0, "s")])
        assert (headings, lines) == (["case", "ours"], [["case", "2 s"]])

    def test_a_rival_that_is_absent_is_said_to_be(self):
        _, lines = row_cells([Row("case", 2.0, "s", rival="xgboost")])
        assert lines[0][-1] == "xgboost: not installed"

    def test_brackets_of_a_case_are_printed_as_they_are(self):
        console = text_console()
        console.print(rich_table(["case"], [["labels [0, 4]"], ["[bold]x"]], plain=True))
        assert "labels [0, 4]" in printed(console)
        assert "[bold]x" in printed(console)

    def test_the_quick_form_judges_no_target(self):
        row = Row("case", 2.0, "s", target=1.0)
        assert "missed" in row_cells([row])[1][0]
        assert "missed" not in row_cells([row], quick=True)[1][0]


class TestBenchmark:
    def test_a_wrong_answer_ends_the_benchmark(self, bench):
        with pytest.raises(BenchmarkError, match=r"check failed: sorted \(3 before 2\)"):
            bench.check("sorted", False, "3 before 2")
        assert [check.ok for check in bench.checks] == [False]

    def test_timings_are_kept_without_their_results(self, bench):
        timing = bench.time("sum", lambda: 1 + 1, repeat=2)
        assert timing.result == 2
        assert bench.timings == [timing]
        assert bench.timings[0].result is None

    def test_data_is_looked_for_where_the_variable_says(self, bench, tmp_path, monkeypatch):
        (tmp_path / "there.txt").touch()
        monkeypatch.setenv("RANKWELL_DATA", str(tmp_path))
        assert bench.data("there.txt") == tmp_path / "there.txt"
        assert bench.data("not-there.txt") is None

    def test_the_bandwidth_is_measured_once_and_kept(self, tmp_path):
        quick = Benchmark(QUESTION, quick=True, folder=tmp_path)
        assert describe_run(quick, COMMIT)["read_bandwidth_gb_s"] is None
        gigabytes = quick.read_bandwidth()
        assert 0.1 < gigabytes < 10_000
        assert quick.read_bandwidth() == gigabytes == describe_run(quick, COMMIT)["read_bandwidth_gb_s"]


@pytest.mark.usefixtures("committed")
class TestResults:
    def test_the_json_says_all(self, bench, tmp_path):
        bench.check("sorted", True)
        timing = bench.time("sort", lambda: sorted([2, 1]), repeat=3)
        bench.record("two numbers", value=timing.minimum, unit="s", target=1.0, rival="numpy", rival_value=2.0, paper=3)
        bench.figure("curve").write_bytes(b"PNG")
        path = write_results(bench, tmp_path, COMMIT, tmp_path / "results")
        document = json.loads(path.read_text())
        assert path.name == f"sorting.{bench.machine}.json"
        assert (document["schema"], document["question"]) == (1, "How fast is sorting?")
        assert document["timings"][0]["times_s"] == timing.times
        assert document["timings"][0]["first_s"] == timing.first_s
        assert document["checks"] == [{"name": "sorted", "ok": True, "detail": ""}]
        assert document["rows"][0]["met"] is True
        assert {"python", "rankwell", "numpy", "numba", "llvmlite"} <= set(document["versions"])
        assert {"cpu", "cores", "memory_gib", "gpu"} <= set(document["machine"])
        assert document["commit"] == COMMIT
        assert document["figures"] == [f"sorting.{bench.machine}.curve.png"]
        assert (path.parent / document["figures"][0]).read_bytes() == b"PNG"

    def test_a_second_run_takes_the_place_of_the_first(self, bench, tmp_path):
        drawn, results = tmp_path / "drawn", tmp_path / "results"
        drawn.mkdir()
        (drawn / "old.png").touch()
        write_results(bench, drawn, COMMIT, results)
        (drawn / "old.png").rename(drawn / "new.png")
        write_results(bench, drawn, COMMIT, results)
        stem = f"sorting.{bench.machine}"
        assert sorted(path.name for path in results.iterdir()) == [f"{stem}.json", f"{stem}.new.png"]

    def test_the_quick_form_is_never_written(self, tmp_path):
        quick = Benchmark(QUESTION, quick=True, folder=tmp_path)
        with pytest.raises(ValueError, match="never written"):
            write_results(quick, tmp_path, COMMIT, tmp_path / "results")
        assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("committed")
class TestRunner:
    @pytest.fixture
    def run_code(self, tmp_path, monkeypatch):
        """Run the body of a benchmark's `run`; returns whether it passed, what was printed, and the files written."""
        package = f"questions_of_{tmp_path.name}"  # one name per test: an imported module stays imported
        (tmp_path / package).mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))

        def run(body: str, name: str = "sorting", write: bool = True):
            (tmp_path / package / f"{name}.py").write_text(f'"""Why?"""\ndef run(bench):\n    {body}\n')
            console, results = text_console(), tmp_path / "results"
            passed = runner.run_question(
                Question(name, "Why?"), console, quick=False, write=write, package=package, folder=results
            )
            return passed, printed(console), sorted(path.suffix for path in results.glob("*"))

        return run

    def test_a_good_one(self, run_code):
        body = "bench.check('right', True); bench.record('case', value=1.0, unit='s', target=2.0)"
        passed, text, written = run_code(body)
        assert passed
        assert "met" in text
        assert "sorting.cpu" in text
        assert ".json, commit 0123456789ab\n" in text
        assert written == [".json"]

    def test_code_that_changes_during_the_run_is_not_written(self, run_code):
        body = (
            "bench.check('right', True); bench.record('case', value=1, unit='s'); "
            "import os; os.environ['RANKWELL_COMMIT'] = 'fedcba9876543210'"
        )
        passed, text, written = run_code(body)
        assert not passed
        assert "changed from commit 0123456789ab to fedcba987654 while it was measured" in text
        assert written == []

    def test_a_missed_target_is_marked_and_does_not_fail(self, run_code):
        passed, text, written = run_code(
            "bench.check('right', True); bench.record('case', value=3, unit='s', target=2)"
        )
        assert passed
        assert "missed" in text
        assert written == [".json"]

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("bench.check('right', False); bench.record('case', value=1, unit='s')", "check failed: right"),
            ("bench.check('right', True); 1 / 0", "ZeroDivisionError"),
            ("bench.record('case', value=1, unit='s')", "nothing was checked"),
            ("bench.check('right', True)", "no figure was recorded"),
            ("import no_such_library", "No module named 'no_such_library'"),
        ],
    )
    def test_a_bad_one_fails_and_writes_nothing(self, run_code, body, said):
        passed, text, written = run_code(body)
        assert not passed
        assert said in text
        assert written == []

    def test_without_write_nothing_is_written(self, run_code):
        body = "bench.check('right', True); bench.record('case', value=1, unit='s'); bench.figure('f').touch()"
        assert run_code(body, write=False)[2] == []

    def test_cuda_is_skipped_where_there_is_none(self, run_code, monkeypatch):
        monkeypatch.setattr(runner, "has_cuda", lambda: False)
        passed, text, written = run_code("raise AssertionError('ran')", name="sorting_cuda")
        assert passed
        assert "skipped" in text
        assert written == []


class TestCommand:
    def test_quick_and_write_exclude_each_other(self, capsys):
        with pytest.raises(SystemExit) as stop:
            main(["import_time", "--quick", "--write"])
        assert stop.value.code == 2
        assert "never written" in capsys.readouterr().err

    def test_write_refuses_changed_files_before_anything_runs(self, monkeypatch, capsys):
        monkeypatch.setenv("RANKWELL_COMMIT", "0123456789abcdef+")
        monkeypatch.setattr("benchmarks.__main__.run_question", lambda *_, **__: pytest.fail("it ran"))
        with pytest.raises(SystemExit) as stop:
            main(["import_time", "--write"])
        assert stop.value.code == 2
        assert "files differ from commit 0123456789ab. Commit them" in capsys.readouterr().err

    def test_an_unknown_name_is_a_usage_error(self, capsys):
        with pytest.raises(SystemExit) as stop:
            main(["no_such_question"])
        assert stop.value.code == 2
        assert "import_time" in capsys.readouterr().err

    def test_list(self, capsys):
        assert main(["--list"]) == 0
        assert "import_time\tHow long does `import rankwell` take" in capsys.readouterr().out

    def test_the_exit_code_says_whether_one_failed(self, monkeypatch):
        monkeypatch.setattr("benchmarks.__main__.run_question", lambda *_, **__: False)
        assert main(["import_time"]) == 1

    def test_the_summary_counts_what_really_ran(self, monkeypatch, capsys):
        chosen = [Question("fine", "Why?"), Question("wrong", "Why?"), Question("absent_cuda", "Why?")]
        monkeypatch.setattr("benchmarks.__main__.find_questions", lambda: chosen)
        monkeypatch.setattr("benchmarks.__main__.run_apart", lambda *_, **__: chosen[1:2])
        monkeypatch.setattr(runner, "has_cuda", lambda: False)
        assert main(["--quick"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines == ["1 of 3 benchmarks ran and all their checks passed", "skipped: absent_cuda", "failed: wrong"]

    def test_several_run_apart_and_a_crash_is_counted(self, monkeypatch):
        codes = {"fine": 0, "wrong": 1, "crashed": -11}

        class Child:
            def __init__(self, command, **_):
                self.returncode = codes[command[3]]

        monkeypatch.setattr(runner.subprocess, "run", Child)
        console = text_console()
        failed = runner.run_apart([Question(name, "Why?") for name in codes], console, flags=["--quick"])
        assert [question.name for question in failed] == ["wrong", "crashed"]
        assert "crashed was killed by signal 11" in printed(console)


class TestCatalogue:
    def test_a_question_is_a_module_with_run(self, tmp_path):
        (tmp_path / "machinery.py").write_text('"""Not a question."""\n')
        (tmp_path / "b_cuda.py").write_text('"""How fast\nis b?\n\nMore."""\ndef run(bench): ...\n')
        (tmp_path / "a.py").write_text('"""How fast is a?"""\ndef run(bench): ...\n')
        assert find_questions(tmp_path) == [Question("a", "How fast is a?"), Question("b_cuda", "How fast is b?")]
        assert [question.needs_cuda for question in find_questions(tmp_path)] == [False, True]

    def test_a_question_must_be_asked(self, tmp_path):
        (tmp_path / "a.py").write_text("def run(bench): ...\n")
        with pytest.raises(ValueError, match=r"a\.py has a run\(\) but no docstring"):
            find_questions(tmp_path)

    def test_the_machinery_is_not_a_question(self):
        names = {question.name for question in find_questions()}
        assert "import_time" in names
        assert not names & {"harness", "measure", "report", "runner", "timing"}


class TestPeakMemory:
    SIZE = 50_000_000

    def test_it_is_that_of_the_call(self):
        grown = measure.peak_memory("builtins:bytearray", self.SIZE)
        assert self.SIZE <= grown < 1.2 * self.SIZE + 4_000_000

    def test_what_came_before_is_not_counted(self):
        grown = measure.peak_memory("builtins:len", [1, 2], prepare=("builtins:bytearray", self.SIZE))
        assert grown < self.SIZE / 5

    def test_what_the_function_prints_does_not_matter(self):
        assert measure.peak_memory("builtins:print", "7\n8") < self.SIZE / 5

    def test_a_failure_in_the_child_is_told(self):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            measure.peak_memory("operator:truediv", 1, 0)
        with pytest.raises(RuntimeError, match="a function path is"):
            measure.peak_memory("operator")


class TestMachine:
    def test_short_names(self):
        gpu = Gpu("NVIDIA A100-SXM4-80GB", "580.1", 80.0)
        with_gpu = Machine("AMD EPYC", 16, 128.0, "Linux x86_64", gpu)
        assert with_gpu.short_name(on_gpu=True) == "a100-sxm4-80gb"
        assert with_gpu.short_name(on_gpu=False) == "cpu16"
        without = Machine("AMD EPYC", 2, 24.0, "Linux x86_64", None)
        assert without.short_name(on_gpu=True) == "cpu2"

    def test_a_machine_may_be_given_another_name_for_its_own_figures(self, monkeypatch):
        monkeypatch.setenv("RANKWELL_MACHINE", "xeon2")
        machine = Machine("CPU", 2, 24.0, "Linux x86_64", Gpu("NVIDIA H200", "1", 140.0))
        assert machine.short_name(on_gpu=False) == "xeon2"
        assert machine.short_name(on_gpu=True) == "h200"

    def test_this_machine(self):
        here = machine.describe_machine()
        assert here.cores >= 1
        assert here.memory_gib > 0
        assert here.cpu
