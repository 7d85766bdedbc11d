"""Progress bars: on stderr, only in a terminal, and only for what takes longer than a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rankwell.cli.console import messages, shared_with_bar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from rankwell.rankers.base import TrainingStep

_SECONDS_BEFORE_IT_SHOWS = 1.0


class ProgressBar:
    """One bar. Every method does nothing where no bar is shown."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress = progress
        self._task = task

    def show(self, *, done: int, total: int, note: str = "") -> None:
        """`done` of `total` steps are done; `note` is shown after the bar."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, note=note)

    def bytes_read(self, done: int, total: int | None) -> None:
        """A reader's callback: the bytes read, and the total if it is known."""
        if total is not None:
            self.show(done=done, total=total)

    def describe(self, text: str) -> None:
        """What is being done now."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)

    def training_step(self, step: TrainingStep, more: str = "") -> None:
        """A ranker's callback: the step's number and its figures, without the seconds: the bar has its own clock."""
        figures = [f"{name} {value:.5g}" for name, value in step.values.items() if name != "seconds"]
        self.show(done=step.number, total=step.total, note="  ".join([*figures, *([more] if more else [])]))


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Iterator[ProgressBar]:
    """A bar for the block: a moving one until `ProgressBar.show` says how many steps there are."""
    console = messages()
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        yield ProgressBar(None, None)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
        console=console,
        transient=True,
    )
    task = progress.add_task(description, total=None, note="")
    timer = threading.Timer(_SECONDS_BEFORE_IT_SHOWS, progress.start)
    timer.daemon = True
    timer.start()
    try:
        with shared_with_bar(console):
            yield ProgressBar(progress, task)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
