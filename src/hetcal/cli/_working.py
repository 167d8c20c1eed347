"""What people read while a command works and when it is done.

Progress goes to stderr, on a terminal only, and never with ``--quiet``.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hetcal._exceptions import HetcalWarning
from hetcal._printable import printable
from hetcal.cli._console import cell, errors


def tell(console: Console, text: str, style: str | None = None) -> None:
    """Print a sentence: broken between words on a terminal, one line in a pipe."""
    console.print(cell(text), style=style, soft_wrap=not console.is_terminal)


def tell_line(console: Console, text: str, style: str | None = None) -> None:
    """Print one line and never break it: people copy it."""
    console.print(cell(text), style=style, soft_wrap=True)


def file_size(n_bytes: int) -> str:
    """Return a size in words."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"


@contextlib.contextmanager
def warnings_as_notes() -> Iterator[list[str]]:
    """Collect what hetcal warns of, each text once; other warnings are not shown."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    said = (str(w.message) for w in caught if issubclass(w.category, HetcalWarning))
    notes += dict.fromkeys(said)


@contextlib.contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Callable[[str, float | None], None]]:
    """Show a bar; the result changes the words and the share that is done (None: not known)."""
    console = errors()
    if quiet or not console.is_terminal:
        yield lambda words, share: None
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(printable(what, keep=""), total=None)

        def update(words: str, share: float | None) -> None:
            total = None if share is None else 1.0
            progress.update(
                task, description=printable(words, keep=""), total=total, completed=share or 0.0
            )

        yield update
