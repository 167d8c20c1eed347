"""The commands and their options; each command's work is in a module imported when needed."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hetcal._exceptions import InputError
from hetcal.cli._apply import apply
from hetcal.cli._compare import compare
from hetcal.cli._console import cell, errors, results, visible_warnings
from hetcal.cli._diagnose import diagnose
from hetcal.cli._ending import ended_in_order
from hetcal.cli._export import export
from hetcal.cli._extensions import add_installed_commands
from hetcal.cli._fit import fit
from hetcal.cli._inspect import inspect
from hetcal.cli._monitor import monitor
from hetcal.cli._options import command
from hetcal.cli._refresh import refresh

EXIT_ERROR, EXIT_INPUT, EXIT_INTERRUPTED = 1, 2, 130
_DEBUG = "HETCAL_DEBUG"
_EXPECTED = (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError)

# One string per paragraph: typer keeps line breaks, and the terminal decides where lines end.
_HELP = "\n\n".join(
    [
        "Find hidden heterogeneity in a classifier's probabilities, and repair it item by item.",
        "A classifier is calibrated when, of all items that it gives 0.8, about 80 % turn out "
        "right. It may be so on average and still be wrong for every group of items: too sure "
        "here, too timid there, at the same 0.8. That is hidden heterogeneity. hetcal measures it "
        "and repairs it.",
    ]
)
_EPILOG = "\n\n".join(
    [
        "Start with [bold]hetcal demo[/bold]: a model, its mistakes and their repair in seconds.",
        "Exit codes: 0 done, 1 could not be done, 2 the command or the table was not understood, "
        "3 an alarm of support and 4 of labels alone (monitor --fail-on-alarm), 130 interrupted, "
        "143 terminated.",
        "HETCAL_CORE=auto, native or pure chooses between the compiled core and pure Python.",
    ]
)

app = typer.Typer(
    name="hetcal",
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the app; what goes wrong is one readable line and an exit code."""
    with ended_in_order(), visible_warnings():
        _run(arguments)


def _run(arguments: Sequence[str] | None) -> None:
    given = None if arguments is None else list(arguments)
    try:
        # Not standalone: then typer would print what is wrong with the arguments itself.
        code = app(args=given, prog_name="hetcal", standalone_mode=False)
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_ERROR) from None
    except Exception as error:
        raise SystemExit(_report_error(error)) from None
    raise SystemExit(code or 0)


def _report_error(error: Exception) -> int:
    """Print what went wrong and return the exit code; a defect of ours with its traceback."""
    if hasattr(error, "format_message"):  # typer has not understood the command
        reason, code = _about_command(error), EXIT_INPUT
    elif os.environ.get(_DEBUG) or not isinstance(error, _EXPECTED):
        errors().print("".join(traceback.format_exception(error)), soft_wrap=True, end="")
        return EXIT_ERROR
    else:
        reason = str(error) or type(error).__name__
        code = EXIT_INPUT if isinstance(error, InputError) else EXIT_ERROR
    if reason:
        text = cell("error:", "bold red") + cell(" " + " ".join(reason.split()))
        errors().print(text, soft_wrap=True)
    return code


def _about_command(error: Any) -> str:
    message = error.format_message().strip()
    if not message or error.ctx is None:  # without any argument the help has been printed
        return message
    return f"{message.rstrip('.')}. See: {error.ctx.command_path} --help"


def _show_version(wanted: bool) -> None:
    if wanted:
        from hetcal.cli._version import version_text

        results().print(version_text(), soft_wrap=True)
        raise typer.Exit


def _show_versions(wanted: bool) -> None:
    if wanted:
        from hetcal._show_versions import versions_text

        results().print(versions_text(), soft_wrap=True, markup=False)
        raise typer.Exit


def _set_debug(wanted: bool) -> None:
    if wanted:
        os.environ[_DEBUG] = "1"


@app.callback()
def hetcal(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version, the core in use and the libraries below, and exit.",
        ),
    ] = False,
    show_versions: Annotated[
        bool,
        typer.Option(
            "--show-versions",
            callback=_show_versions,
            is_eager=True,
            help="Show all that a report of a problem should say about versions and machine.",
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            callback=_set_debug,
            is_eager=True,
            help="Show the full traceback when something goes wrong.",
        ),
    ] = False,
) -> None:
    """Options that stand before every command."""


for function in (diagnose, compare, fit, apply, monitor, refresh, inspect, export):
    app.command()(command(function))


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws another example.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Where to write the picture (also .svg or .pdf). "
            "Default: hetcal-demo.png in the current folder, if matplotlib is installed.",
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No explanations and no progress; the table only.")
    ] = False,
) -> None:
    """Train a model on data whose truth is known, calibrate it, and see what is left.

    Prints a table of every calibration method and writes a picture. Nothing is downloaded.
    """
    from hetcal.cli._demo import run_demo

    run_demo(seed=seed, out=out, quiet=quiet)


add_installed_commands(app)

if __name__ == "__main__":
    run(sys.argv[1:])
