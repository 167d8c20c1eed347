"""Where output goes: results to stdout, progress and errors to stderr.

Everything that a command says passes through here. Markup is for our own words and has to be asked
for (``markup=True``); text that comes from tables, files and arguments is shown as it is written,
its control and invisible characters as escapes.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hetcal._exceptions import HetcalWarning
from hetcal._printable import printable, printable_json

if TYPE_CHECKING:
    from rich.table import Table

# A pipe has no width of its own; tables must not be squeezed to the 80 columns assumed for one.
_PIPE_WIDTH = 120


class _VisibleConsole(Console):
    """Shows control characters instead of sending them to the terminal."""

    def __init__(self, **options: Any):
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text for layout, escapes included."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is written, of whatever kind the renderable is."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def results() -> Console:
    """Return the console for what was asked for."""
    console = _VisibleConsole()
    return console if console.is_terminal else _VisibleConsole(width=_PIPE_WIDTH)


def errors() -> Console:
    """Return the console for everything else."""
    return _VisibleConsole(stderr=True)


def cell(text: str, style: str = "") -> Text:
    """Return text from outside for one cell of a table: a line break in it is no line break."""
    return Text(printable(text, keep=""), style=style)


def numbers_table(first: str, *titles: str, gap: int = 2) -> Table:
    """Return an empty table: names on the left, and columns of numbers."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, gap, 0, 0))
    table.add_column(first)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table; in a pipe without the spaces that fill its last column."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as shown:
        console.print(table)
    for line in shown.get().splitlines():
        console.print(Text(line.rstrip()), soft_wrap=True)


def print_json(text: str) -> None:
    """Write JSON to stdout, the same whether people or machines read it."""
    sys.stdout.write(printable_json(text) + "\n")


def print_lines(text: str) -> None:
    """Write lines for other programs to stdout."""
    sys.stdout.write(printable(text) + "\n")


@contextlib.contextmanager
def visible_warnings() -> Iterator[None]:
    """Let warnings pass through the console too; those of hetcal as notes, without a place."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, HetcalWarning):  # the line of code is none of the user's
            errors().print(cell(f"note: {message}"), style="yellow", soft_wrap=True)
            return
        text = warnings.formatwarning(message, category, filename, lineno, line)
        errors().print(text, soft_wrap=True, end="")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


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
