"""``hetcal fit``: from a table to a calibrator in a file."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal.cli import _options as options
from hetcal.cli import _table_input as inputs
from hetcal.cli._console import errors, numbers_table, print_json, print_table, results
from hetcal.cli._working import bar, file_size, tell, tell_line, warnings_as_notes

if TYPE_CHECKING:
    from rich.table import Table

    from hetcal.data import CalibrationSet
    from hetcal.tables.labelled_table import LabelledTable

_EXPERTS_SHOWN, _LEAST_WEIGHT = 6, 0.005


# Known here, so that shell completion and messages about a mistyped column need not wait for the
# calibrators; a test compares them with the calibrators themselves.
_LOCAL = ("hybrid", "swc", "swc-hh", "sba", "sbaw")
_GLOBAL = (
    "global",
    "temperature",
    "bcts",
    "platt",
    "beta",
    "quadratic",
    "spline",
    "vector",
    "matrix",
    "ets",
    "isotonic",
    "venn-abers",
    "histogram",
    "atoms",
    "uncalibrated",
)
_METHODS = [*_LOCAL, *_GLOBAL]


def fit(
    *,
    table: options.Table,
    columns: options.Columns,
    out: Annotated[
        Path,
        options.file("MODEL.hetcal", "Where to write the calibrator.", "--out", "-o"),
    ],
    method: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(_LOCAL)}; or a map of the probability alone: {', '.join(_GLOBAL)}.",
            autocompletion=lambda: _METHODS,
        ),
    ] = "hybrid",
    preserve: Annotated[
        str | None,
        typer.Option(
            metavar="label",
            help="'label': no prediction changes its class, whatever that costs.",
        ),
    ] = None,
    forget_features: Annotated[
        bool,
        options.flag(
            "--forget-features",
            "Leave the features of the calibration items out of the file.",
            options.FILES,
        ),
    ] = False,
    drawing: options.Drawing,
    reading: options.Reading,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn to repair a model's probabilities from a table, and save what was learnt.

    The table has one row per item: the model's probabilities, what really happened, and features.

    Example: hetcal fit loans.csv --label outcome --proba 'p_*' -o loans.hetcal
    """
    from hetcal.tables.writing import check_model_target

    started = time.perf_counter()
    check_model_target(out, overwrite=overwrite)
    _check_choices(method, preserve)
    with bar(f"Reading {table}", quiet=quiet or as_json) as say:
        labelled = inputs.read(
            table,
            columns,
            reading,
            drawing,
            say,
            use_features=method in _LOCAL,
            otherwise="use a global method: --method temperature",
        )
        say(f"Fitting {method} on {labelled.n_items:,} items", None)
        calibrator, warned = _fitted(method, preserve, labelled, drawing.seed)
        say("Measuring", None)
        from hetcal.batches.row_sample import KEY, RowSample
        from hetcal.tables.later_rows import items_digest, row_hashes

        warned += _dependent_rows(labelled, drawing.seed) if method in _LOCAL else []
        record = {
            "source": Path(table).name,
            "rows_read": labelled.n_read,
            "items": labelled.n_items,
            "method": method,
            "preserve": preserve,
            "digest": items_digest(labelled.X, labelled.output, labelled.y),
            **_measured(calibrator, labelled.items, drawing.seed),
            "drawn": labelled.drawn,
            "left_out": labelled.left_out,
            "notes": labelled.notes + warned,
        }
        say(f"Saving {out}", None)
        from hetcal.persistence import save

        sample = RowSample.of(row_hashes(labelled.X, labelled.output))
        metadata = {"table": labelled.roles.to_dict(), "fit": record, KEY: sample.to_dict()}
        save(calibrator, out, forget_features=forget_features, metadata=metadata)
    fitted = _Fitted(out, labelled, calibrator, record, time.perf_counter() - started)
    if as_json:
        print_json(json.dumps(fitted.facts(), indent=2))
    elif quiet:
        tell(results(), fitted.scores())
    else:
        fitted.show(inputs.apply_command(str(out), table, reading, new="new"))


def _fitted(
    method: str, preserve: str | None, labelled: LabelledTable, seed: int
) -> tuple[Any, list[str]]:
    """Return the calibrator, and what hetcal warned of while it was fitted."""
    from hetcal._validation import warn_large_counts
    from hetcal.calibration.fitting import fitted_to, seeded
    from hetcal.calibration.registry import get_calibrator

    calibrator = get_calibrator(method, preserve=preserve, classes=labelled.classes)
    with warnings_as_notes() as said:
        if method in _GLOBAL:
            warn_large_counts(labelled.weight)
        fitted = fitted_to(seeded(calibrator, seed), labelled.items)
    return fitted, said


def _dependent_rows(labelled: LabelledTable, seed: int) -> list[str]:
    """Say what was measured that speaks for rows that belong together, and what to do."""
    from hetcal.diagnosis.checks import MAKESHIFT, what_was_seen
    from hetcal.diagnosis.dependence import find_dependence

    found = find_dependence(labelled.items, labelled.other_columns, random_state=seed)
    if found is None:
        return []
    column = ",".join(found.columns) or "COLUMN, which says which rows are of one event or person"
    if found.near_copies:
        column += f" ({MAKESHIFT}(X) makes one in Python)"
    doubt = " The gain above may be that of rows whose like were seen." if found.by_gain else ""
    return [f"{what_was_seen(found)}{doubt} Fit again with --groups {column}."]


def _measured(calibrator: Any, items: CalibrationSet, seed: int) -> dict[str, float | None]:
    """Return the Brier score before and after, each item predicted without its label."""
    import numpy as np

    from hetcal.calibration.fitting import out_of_sample_proba
    from hetcal.calibration.out_of_sample_support import low_support
    from hetcal.metrics.gains import Gain
    from hetcal.metrics.scores import brier_losses

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Q = out_of_sample_proba(calibrator, items, seed)
        low_quantile = low_support(calibrator)
    scored, known = items.with_positive_weight(), items.weights > 0
    before = float(np.average(brier_losses(scored.proba, scored.codes), weights=scored.weight))
    after = low = high = None
    if not np.isnan(Q).any():
        gain = Gain.between(scored.proba, Q[known], scored)
        after, low, high = before - gain.value, gain.low, gain.high
    return {
        "brier_before": before,
        "brier_after": after,
        "gain_low": low,
        "gain_high": high,
        "low_support": low_quantile,
    }


@dataclass(frozen=True)
class _Fitted:
    """A calibrator that was saved; tells about it."""

    out: Path
    labelled: LabelledTable
    calibrator: Any
    record: dict[str, Any]
    seconds: float

    def facts(self) -> dict[str, Any]:
        """Return everything, for machines."""
        facts = {"saved": str(self.out), "file_bytes": self.out.stat().st_size}
        facts |= {"seconds": round(self.seconds, 2), **self.record}
        facts["classes"] = self.labelled.classes.tolist()
        facts["features"] = list(self.labelled.roles.features)
        experts = self._experts()
        if experts is not None:
            facts["experts"] = experts.reset_index().to_dict("records")
        return facts

    def show(self, next_command: str) -> None:
        """Print what was found and what to type next."""
        console = results()
        for line in self._lines():
            tell(console, line)
        verdict = self._verdict()
        if verdict is not None:
            tell(console, verdict, "bold yellow")
        for note in self.record["notes"]:
            tell(errors(), f"note: {note}", "yellow")
        experts = self._experts()
        if experts is not None:
            shown = experts[experts["weight"] >= _LEAST_WEIGHT].head(_EXPERTS_SHOWN)
            console.print()
            print_table(console, _experts_table(shown))
            if len(experts) > len(shown):
                console.print(f"and {len(experts) - len(shown)} with less weight", style="dim")
            console.print("base: the average of global maps, which look at no feature", style="dim")
        size = file_size(self.out.stat().st_size)
        console.print()
        tell(console, f"Saved {self.out} ({size}, {self.seconds:.1f} s). Next:")
        tell_line(console, f"  {next_command}", "bold")
        tell(console, "(with --overwrite where that output is there already)", "dim")

    def _lines(self) -> list[str]:
        labelled, record = self.labelled, self.record
        classes = [str(name) for name in labelled.classes.tolist()]
        shown = ", ".join(classes[:8]) + (", ..." if len(classes) > 8 else "")
        n_features = None if labelled.X is None else labelled.X.shape[1]
        kept = record["preserve"] is not None
        lines = [
            f"{inputs.counted(labelled, n_features)}, {len(classes)} classes ({shown})",
            f"method {record['method']}" + (", labels preserved" if kept else ""),
            self.scores(),
        ]
        if kept and self.calibrator.price_ == self.calibrator.price_:
            lines.append(
                f"keeping every label costs {self.calibrator.price_:.4f} of Brier score "
                f"(± {self.calibrator.price_error_:.4f})"
            )
        return lines

    def scores(self) -> str:
        """Return the Brier score before and after."""
        before, after = self.record["brier_before"], self.record["brier_after"]
        if after is None:
            return f"Brier score {before:.4f} before; too few items to measure it after"
        return (
            f"Brier score {before:.4f} before, {after:.4f} after, each item predicted without its "
            f"label: gain {before - after:+z.4f} (95 % interval {self.record['gain_low']:+z.4f} to "
            f"{self.record['gain_high']:+z.4f})"
        )

    def _verdict(self) -> str | None:
        """Return a word where there is nothing to gain: people should know before they go on."""
        low, high = self.record["gain_low"], self.record["gain_high"]
        if low is None:
            return None
        if high < 0:
            return (
                "The probabilities get worse: keep the model's own, try another --method, or "
                "collect more items."
            )
        if low <= 0:
            return (
                "No clear gain: these items do not show that the calibrated probabilities are "
                "better than the model's own."
                + (
                    " hetcal diagnose says whether a method that looks at the features does better."
                    if self.record["method"] not in _LOCAL
                    else ""
                )
            )
        return None

    def _experts(self) -> Any:
        inner = getattr(self.calibrator, "calibrator_", self.calibrator)
        experts = getattr(inner, "experts_", None)
        return None if experts is None else experts.sort_values("weight", ascending=False)


def _check_choices(method: str, preserve: str | None) -> None:
    """Raise for a wrong name before the table is read."""
    from hetcal._exceptions import InputError

    if method not in _METHODS:
        from hetcal._validation.text import closest

        close = closest(method.lower(), _METHODS)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"Unknown method {method!r}.{hint} Known names: {', '.join(_METHODS)}.")
    if preserve not in (None, "label"):
        raise InputError(
            f"Unknown --preserve {preserve!r}. Pass --preserve label, or leave it out."
        )


def _experts_table(experts: Any) -> Table:
    table = numbers_table("expert", "weight", "Brier alone", "± error")
    table.add_column("uses the model")
    for name, row in experts.iterrows():
        table.add_row(
            str(name),
            f"{row['weight']:.2f}",
            f"{row['brier']:.4f}",
            f"{row['standard_error']:.4f}",
            "yes" if row["uses_model"] else "no",
        )
    return table
