"""``hetcal demo``: one example with known truth, from the model to the repaired probabilities."""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from pathlib import Path

from rich.table import Table

from hetcal.cli._console import numbers_table, progress, results
from hetcal.cli._demo_example import Example, calibrate, left_out, make_example, method_names, score
from hetcal.cli._working import tell_line

_DEFAULT_PICTURE = Path("hetcal-demo.png")
_HOW_TO_GET_THE_PICTURE = (
    "No picture: matplotlib is not installed. Get it with: pip install 'hetcal[plot]'"
)


def run_demo(*, seed: int = 0, out: Path | None = None, quiet: bool = False) -> None:
    """Print the table and write the picture."""
    console = results()
    _check_target(out)
    started = time.perf_counter()
    example = make_example(seed)
    if not quiet:
        console.print(_introduction(example), soft_wrap=True)
    names = progress(method_names(), what="Calibrating", quiet=quiet)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        predictions = {name: calibrate(example, name) for name in names}
    scores = score(example, predictions)
    console.print(_table(scores), markup=True)
    if not quiet:
        for line in verdict(example, scores):
            console.print(line, soft_wrap=True, markup=True)
        for note in notes:
            tell_line(console, f"note: {note.message}", "dim")
        if left_out():
            console.print(
                f"Left out: {', '.join(left_out())}, which takes minutes on the pure core.",
                style="dim",
            )
    written = _write_picture(example, predictions, scores, out)
    if not quiet:
        seconds = time.perf_counter() - started
        tell_line(console, f"{written} ({seconds:.1f} s)", "dim")


def verdict(example: Example, scores) -> list[str]:
    """Return what the table says, in two lines."""
    before = scores.loc["uncalibrated"]
    best_global = scores[scores["scope"] == "global"]["brier"].idxmin()
    best = scores[scores["scope"] != "truth"]["brier"].idxmin()
    floor = scores.loc["the truth", "brier"]
    repaired = scores.loc[best_global]
    rule, said, happened = example.worst_group()
    first = (
        f"[bold]Global calibration[/] ({best_global}) takes the ECE from {before['ece']:.3f} to "
        f"{repaired['ece']:.3f}, but the Brier score only from {before['brier']:.3f} to "
        f"{repaired['brier']:.3f}; the truth itself gets {floor:.3f}."
    )
    if scores.loc[best, "scope"] == "local":
        gain = repaired["brier"] - scores.loc[best, "brier"]
        outcome = f"{best} repairs {gain / (repaired['brier'] - floor):.0%} of it."
    else:
        outcome = "No map of the probability alone can repair that."
    second = (
        f"[bold]The rest is hidden heterogeneity[/]: where {rule}, the model says {said:.2f} "
        f"and {happened:.2f} happens. {outcome}"
    )
    return [first, second]


def _introduction(example: Example) -> str:
    return (
        f"A gradient boosting is trained on {example.n_train} items and gives probabilities for "
        f"{len(example.cal.y)} calibration\nand {len(example.test.y)} test items. The truth "
        "P(y | x) of each item is known: the example is synthetic.\n"
    )


def _table(scores) -> Table:
    titles = ("Brier", "log loss", "ECE", "accuracy", "distance to truth")
    table = numbers_table("method", *titles)
    columns = ["brier", "log_loss", "ece", "accuracy", "distance"]
    candidates = scores[scores["scope"] != "truth"]
    best = {
        column: candidates[column].max() if column == "accuracy" else candidates[column].min()
        for column in columns
    }
    for name, row in scores.iterrows():
        truth = row["scope"] == "truth"
        cells = [
            f"[bold green]{row[column]:.4f}[/]"
            if not truth and row[column] == best[column]
            else f"{row[column]:.4f}"
            for column in columns
        ]
        table.add_row(str(name), *cells, style="dim" if truth else None, end_section=truth)
    return table


def _check_target(out: Path | None) -> None:
    """Refuse a picture that cannot be written before any work is done."""
    if out is None:
        return
    if find_spec("matplotlib") is None:
        raise ImportError(
            f"--out {out} needs matplotlib, which is not installed. "
            "Install it with: pip install 'hetcal[plot]', or leave --out away."
        )
    if out.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise ValueError(
            f"--out {out} must end in .png, .svg or .pdf. For example: --out hetcal-demo.png"
        )
    from hetcal.tables.writing import check_target

    check_target(out, overwrite=True)


def _write_picture(example: Example, predictions, scores, out: Path | None) -> str:
    """Write the picture, or say why there is none."""
    if find_spec("matplotlib") is None:
        return _HOW_TO_GET_THE_PICTURE
    from hetcal.cli._demo_picture import draw

    target = out or _DEFAULT_PICTURE
    draw(example, predictions, scores, target)
    return f"Picture: {target}"
