"""Where output goes: results to stdout, progress and errors to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console

T = TypeVar("T")

# A pipe has no width of its own; tables must not be squeezed to the 80 columns assumed for one.
_PIPE_WIDTH = 120


def results() -> Console:
    """Return the console for what was asked for."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def errors() -> Console:
    """Return the console for everything else."""
    return Console(stderr=True, highlight=False)


def progress(names: Iterable[str], *, what: str, quiet: bool) -> Iterator[str]:
    """Yield the names and show on stderr which one is being worked on; silent when piped."""
    console = errors()
    if quiet or not console.is_terminal:
        yield from names
        return
    with console.status(what) as status:
        for name in names:
            status.update(f"{what}: {name}")
            yield name
