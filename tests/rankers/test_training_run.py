"""The training run, driven by a source whose every figure is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

import rankwell
from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError, ParameterError
from rankwell.rankers.checkpoints import Checkpoints
from rankwell.rankers.training_run import BatchSize, Steps, StepSource, TrainingRun
from rankwell.rankers.validation import Validation

# Ten documents, of which the first one is relevant.
DOCUMENTS = RankingDataset(np.zeros((10, 1)), [1.0] + [0.0] * 9)


class Clock:
    """Time that only passes when a step takes some."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Countdown(StepSource):
    """Step t puts the relevant document at place `places[t − 1]`, so the reciprocal rank is 1 over that.

    Its model is the sum of the steps' numbers, which shows a step left out or done twice.
    """

    figures = ("place",)

    def __init__(self, places, *, clock=None, seconds=1.0):
        self.places = places
        self.clock = clock or Clock()
        self.seconds = seconds
        self.model = self.best = 0
        self.n_run = self.n_scored = 0
        self.batches = []
        self.told = []

    def run(self, n_steps):
        numbers = range(self.n_run + 1, min(self.n_run + n_steps, len(self.places)) + 1)
        self.batches.append(len(numbers))
        self.n_run += len(numbers)
        self.model += sum(numbers)
        self.clock.now += self.seconds * len(numbers)
        finished = self.n_run == len(self.places)
        return Steps([{"place": float(self.places[number - 1])} for number in numbers], finished)

    def validation_scores(self):
        self.n_scored += 1
        place = self.places[self.n_scored - 1]
        scores = np.arange(10.0, 0.0, -1.0)
        scores[0] = 10.5 - place
        return scores

    def step_done(self, seconds, validation, is_best):
        self.told.append((seconds, validation, is_best))
        if is_best:
            self.best = self.n_scored

    def arrays(self):
        return {"model": np.array([self.model]), "best": np.array([self.best])}

    def restore(self, arrays, n_steps):
        self.model, self.best = int(arrays["model"][0]), int(arrays["best"][0])
        self.n_run = self.n_scored = n_steps


def watched():
    return Validation([DOCUMENTS], "mrr", "letor4")


def go_on(step):
    return None


def make_run(source, n_steps, callback=go_on, **options):
    return TrainingRun(source, n_steps, callback=callback, clock=source.clock, **options)


class TestHistory:
    def test_all_figures_have_a_value_for_every_step(self):
        source = Countdown([4, 2, 3, 1, 5])
        run = make_run(source, 4, validation=watched())
        run.train()
        assert run.history == {
            "place": [4.0, 2.0, 3.0, 1.0],
            "validation mrr": [pytest.approx(1 / place) for place in (4, 2, 3, 1)],
            "seconds": [1.0, 2.0, 3.0, 4.0],
        }
        assert run.ended_by == "steps"

    def test_a_run_without_a_single_step_has_empty_lists(self):
        run = make_run(Countdown([]), 4, validation=watched())
        run.train()
        assert run.history == {"place": [], "validation mrr": [], "seconds": []}
        assert run.ended_by == "source"

    def test_the_callback_sees_what_the_history_keeps(self):
        steps = []
        run = make_run(Countdown([4, 2, 3]), 3, steps.append, validation=watched())
        run.train()
        assert [(step.number, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
        for name, values in run.history.items():
            assert [step.values[name] for step in steps] == values

    def test_seconds_of_a_batch_are_shared_out_and_leave_out_validation(self):
        clock = Clock()

        class SlowToScore(Countdown):
            def validation_scores(self):
                clock.now += 100.0
                return super().validation_scores()

        source = SlowToScore([1] * 7, clock=clock, seconds=0.01)
        run = make_run(source, 7, validation=watched())
        run.train()
        assert source.batches == [1, 4, 2]
        assert run.history["seconds"] == [pytest.approx(0.01 * number) for number in range(1, 8)]

    def test_a_figure_that_a_source_forgets_is_an_error(self):
        class Forgetful(Countdown):
            figures = ("place", "weight")

        with pytest.raises(KeyError, match="weight"):
            make_run(Forgetful([1]), 1).train()

    def test_a_source_that_ends_by_itself_ends_the_run(self):
        run = make_run(Countdown([3, 2]), 100)
        run.train()
        assert (run.n_done, run.ended_by) == (2, "source")


class TestEarlyStopping:
    def test_it_stops_after_patience_steps_and_keeps_the_best(self):
        source = Countdown([4, 2, 3, 3, 1, 1])
        run = make_run(source, 6, validation=watched(), patience=2)
        run.train()
        assert (run.n_done, run.n_kept, run.ended_by) == (4, 2, "patience")
        assert source.best == 2
        assert [is_best for _, _, is_best in source.told] == [True, True, False, False]

    def test_steps_of_a_batch_after_the_end_do_not_count(self):
        source = Countdown([2, 1, *[3] * 30], seconds=1e-6)
        run = make_run(source, 32, lambda step: step.number == 7, validation=watched(), patience=30)
        run.train()
        assert source.batches == [1, 4, 16]
        assert (run.n_done, run.ended_by) == (7, "callback")
        assert {len(values) for values in run.history.values()} == {7}
        assert run.n_kept == 2

    def test_no_step_is_done_after_the_last_one(self):
        places = [10, 9, 8, 7, 6, 5, 4, 3, 2, 1] + [5] * 90
        source = Countdown(places, seconds=0.0)
        run = make_run(source, 100, validation=watched(), patience=7)
        run.train()
        assert (run.n_done, source.n_run) == (17, 17)
        assert max(source.batches) > 1

    def test_without_patience_all_steps_are_kept(self):
        run = make_run(Countdown([1, 2, 3]), 3, validation=watched())
        run.train()
        assert run.n_kept == 3

    def test_a_validation_set_that_cannot_be_measured_is_refused(self):
        nothing_relevant = RankingDataset(np.zeros((3, 1)), np.zeros(3))
        with pytest.raises(DataError, match="no query of eval_set counts for mrr under the convention 'burges'"):
            Validation([nothing_relevant], "mrr", "burges")


class TestCallback:
    def test_a_true_answer_ends_the_run_after_that_step(self):
        run = make_run(Countdown([1] * 9), 9, lambda step: step.number == 4)
        run.train()
        assert (run.n_done, run.n_kept, run.ended_by) == (4, 4, "callback")

    def test_it_ends_inside_a_batch(self):
        source = Countdown([1] * 99, seconds=0.0)
        run = make_run(source, 99, lambda step: step.number == 20)
        run.train()
        assert source.batches == [1, 4, 16]
        assert {len(values) for values in run.history.values()} == {20}

    def test_the_checkpoint_of_an_ended_run_is_deleted(self, tmp_path):
        path = tmp_path / "run"
        seen = []

        def end(step):
            seen.append(path.exists())
            return step.number == 3

        make_run(Countdown([1] * 9), 9, end, checkpoints=Checkpoints(str(path), 1, "run")).train()
        assert seen == [False, True, True]
        assert not path.exists()


class KilledError(Exception):
    """Stands for the end of the process."""


def killed_at(number):
    def kill(step):
        if step.number == number:
            raise KilledError

    return kill


class TestCheckpoints:
    PLACES = (5, 4, 6, 2, 3, 3, 3, 1, 3, 3)

    def run_to_the_end(self, path, callback=go_on, seconds=1.0):
        source = Countdown(self.PLACES, seconds=seconds)
        checkpoints = Checkpoints(path, 3, "run")
        run = make_run(source, 10, callback, validation=watched(), patience=4, checkpoints=checkpoints)
        run.train()
        return source, run

    @pytest.mark.parametrize("seconds", [1.0, 0.0], ids=["step by step", "in batches"])
    @pytest.mark.parametrize("killed", [1, 3, 4, 8, 10])
    def test_a_killed_run_ends_as_one_that_was_not(self, tmp_path, killed, seconds):
        whole, expected = self.run_to_the_end(None, seconds=seconds)
        path = str(tmp_path / "run")
        with pytest.raises(KilledError):
            self.run_to_the_end(path, killed_at(killed), seconds)
        numbers = []
        source, run = self.run_to_the_end(path, lambda step: numbers.append(step.number), seconds)
        # Every third step is kept, whatever the batches are.
        assert numbers[0] == (killed - 1) // 3 * 3 + 1
        assert (source.model, source.best) == (whole.model, whole.best)
        assert run.history == expected.history
        assert (run.n_kept, run.ended_by) == (expected.n_kept, expected.ended_by) == (8, "source")
        assert not (tmp_path / "run").exists()

    def test_patience_goes_on_counting(self, tmp_path):
        path = str(tmp_path / "run")
        options = {"validation": watched(), "patience": 4}
        with pytest.raises(KilledError):
            make_run(
                Countdown([1] + [2] * 9), 10, killed_at(4), checkpoints=Checkpoints(path, 3, "run"), **options
            ).train()
        run = make_run(Countdown([1] + [2] * 9), 10, checkpoints=Checkpoints(path, 3, "run"), **options)
        run.train()
        assert (run.n_done, run.n_kept) == (5, 1)

    def test_seconds_go_on_from_the_checkpoint(self, tmp_path):
        path = str(tmp_path / "run")
        with pytest.raises(KilledError):
            self.run_to_the_end(path, killed_at(4), seconds=10.0)
        _, run = self.run_to_the_end(path, seconds=1.0)
        assert run.history["seconds"] == [10.0, 20.0, 30.0, 31.0, 32.0, 33.0, 34.0, 35.0, 36.0, 37.0]

    def test_a_source_without_arrays_says_so(self, tmp_path):
        class Plain(Countdown):
            arrays = StepSource.arrays

        with pytest.raises(TypeError, match="Plain cannot be checkpointed"):
            make_run(Plain([1] * 3), 3, checkpoints=Checkpoints(str(tmp_path / "run"), 1, "run")).train()

    def test_another_runs_checkpoint_is_refused(self, tmp_path):
        path = str(tmp_path / "run")
        with pytest.raises(KilledError):
            self.run_to_the_end(path, killed_at(5))
        with pytest.raises(ParameterError, match="belongs to another run"):
            make_run(Countdown([1]), 1, checkpoints=Checkpoints(path, 3, "other")).train()

    @pytest.mark.parametrize(
        ("ranker", "steps"),
        [
            (rankwell.LambdaMART(n_leaves=4, min_docs_leaf=2), "n_rounds"),
            (rankwell.RankBoost(), "n_rounds"),
            (rankwell.ListNet(random_state=1), "n_epochs"),
        ],
        ids=["lambdamart", "rankboost", "listnet"],
    )
    def test_a_shorter_run_does_not_take_a_longer_runs_checkpoint(self, tmp_path, ranker, steps):
        data = rankwell.make_ranking(n_queries=8, n_docs=80, n_features=4, random_state=2)
        path = tmp_path / "run"
        shared = {"checkpoint": str(path), "checkpoint_every": 1}
        with pytest.raises(KilledError):
            ranker.set_params(**{steps: 9}, **shared).fit(data, callback=killed_at(7))
        with pytest.raises(ParameterError, match=rf"{path} (is of step 6|belongs to another run)"):
            ranker.set_params(**{steps: 4}).fit(data)
        # What is refused is still there to go on with.
        assert ranker.set_params(**{steps: 9}).fit(data).history_["seconds"][8:]


class TestBatchSize:
    def test_it_quadruples_up_to_64_where_steps_are_fast(self):
        source = Countdown([1] * 300, seconds=1e-6)
        make_run(source, 300).train()
        assert source.batches == [1, 4, 16, 64, 64, 64, 64, 23]

    def test_a_batch_takes_a_quarter_of_a_second(self):
        """Steps of 30 ms: eight of them fit."""
        source = Countdown([1] * 40, seconds=0.03)
        make_run(source, 40).train()
        assert source.batches == [1, 4, 8, 8, 8, 8, 3]

    def test_slow_steps_are_run_one_by_one(self):
        source = Countdown([1] * 5, seconds=30.0)
        make_run(source, 5).train()
        assert source.batches == [1] * 5

    def test_it_recovers_from_a_slow_start_and_shrinks_when_steps_grow(self):
        batch = BatchSize()
        batch.measured(1, 20.0)  # compilation
        assert batch.n_steps == 1
        for expected in (4, 16, 25):
            batch.measured(batch.n_steps, 0.01 * batch.n_steps)
            assert batch.n_steps == expected
        batch.measured(25, 25 * 0.1)
        assert batch.n_steps == 2

    def test_a_short_batch_before_a_checkpoint_does_not_shrink_the_next(self):
        batch = BatchSize()
        batch.n_steps = 32
        batch.measured(3, 3e-6)
        assert batch.n_steps == 64
