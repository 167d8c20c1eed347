"""The steps of long work: told to whoever waits, and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Called as progress(steps done, steps in all, what is being done).
Progress = Callable[[int, int, str], object]


class Steps:
    """Tells a listener which step begins, and remembers how long parts of the work took."""

    def __init__(self, progress: Progress | None, total: int):
        self.progress, self.total = progress, total
        self.done = -1
        self.seconds: dict[str, float] = {}

    def begin(self, what: str) -> None:
        """Say what is done next."""
        self.done += 1
        self._tell(what)

    def finish(self) -> None:
        """Say that everything is done, also where steps were left out."""
        self.done = self.total
        self._tell("done")

    def _tell(self, what: str) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total, what)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Remember how long the block takes."""
        start = time.perf_counter()
        yield
        self.seconds[what] = round(time.perf_counter() - start, 2)
