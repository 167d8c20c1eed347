"""Commands that other packages add: entry points of the group ``hetcal.commands``.

An entry point names a typer app, which becomes a sub-command of that name. The commands around the
paper come in this way too, so that hetcal works without them.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import typer
from rich.markup import escape

GROUP = "hetcal.commands"
# What is announced even where it is missing: name -> how to get it.
_KNOWN = {
    "paper": "Install what the published experiments need: pip install 'hetcal[paper]' "
    "(in a source tree: pip install -e '.[paper]')."
}


def add_installed_commands(app: typer.Typer) -> None:
    """Add every app that an entry point names; one that cannot be loaded says so when called."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted({*_KNOWN, *points}):
        try:
            app.add_typer(_load(name, points.get(name)), name=name)
        except (ImportError, AttributeError) as error:
            _add_missing(app, name, error)


def _load(name: str, point: EntryPoint | None) -> typer.Typer:
    if point is None:
        raise ImportError(f"no entry point {name!r} in the group {GROUP!r}")
    return point.load()


def _add_missing(app: typer.Typer, name: str, error: Exception) -> None:
    remedy = _KNOWN.get(name, "Install the package that has these commands again, or remove it.")
    message = f"The commands of 'hetcal {name}' are not installed here ({error}). {remedy}"

    def missing(context: typer.Context) -> None:
        raise ImportError(message)

    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=escape(f"Not installed here. {remedy}"), context_settings=settings)(
        missing
    )
