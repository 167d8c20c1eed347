"""``hetcal fit``: from a table to a calibrator in a file."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal.cli import _options as options
from hetcal.cli import _table_input as inputs
from hetcal.cli._console import errors, print_json, results
from hetcal.cli._working import file_size, tell, tell_line, working

if TYPE_CHECKING:
    from rich.table import Table

    from hetcal.tables.labelled_table import LabelledTable

_SUPPORT_QUANTILE = 0.01
_EXPERTS_SHOWN, _LEAST_WEIGHT = 6, 0.005


def fit(
    table: options.Table,
    label: options.Label,
    out: options.ModelOut,
    proba: options.Proba = None,
    logits: options.Logits = None,
    positive: options.Positive = None,
    classes: options.Classes = None,
    predicted: options.Predicted = None,
    confidence: options.Confidence = None,
    percent: options.Percent = False,
    features: options.Features = None,
    drop: options.Drop = None,
    groups: options.Groups = None,
    weight: options.Weight = None,
    drop_missing: options.DropMissing = False,
    accept_order: options.AcceptOrder = False,
    method: Annotated[
        str,
        typer.Option(
            help="hybrid, swc, swc-hh, sba, sbaw; or global: temperature, bcts, platt, beta, "
            "vector, isotonic, histogram, uncalibrated.",
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
        typer.Option(
            "--forget-features",
            help="Leave the features of the calibration items out of the file.",
            rich_help_panel="Files",
        ),
    ] = False,
    max_rows: options.MaxRows = options.MAX_ROWS,
    seed: Annotated[
        int,
        typer.Option(min=0, help="Of the rows drawn by --max-rows.", rich_help_panel="Files"),
    ] = 0,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn to repair a model's probabilities from a table, and save what was learnt.

    The table has one row per item: the model's probabilities, what really happened, and features.

    Example: hetcal fit loans.csv --label outcome --proba 'p_*' -o loans.hetcal
    """
    roles = {
        "label": label,
        "proba": proba,
        "logits": logits,
        "positive": positive,
        "classes": classes,
        "predicted": predicted,
        "confidence": confidence,
        "percent": percent,
        "features": features,
        "drop": drop,
        "groups": groups,
        "weight": weight,
        "drop_missing": drop_missing,
        "accept_order": accept_order,
    }
    calm = quiet or as_json
    with working(f"Reading {table}", quiet=calm) as say:
        how = inputs.reading(format, encoding, decimal)
        drawing = {"max_rows": max_rows, "random_state": seed}
        outcome = _Fit(table, out, roles, method, preserve, how, drawing, overwrite)
        outcome.run(say, forget_features=forget_features)
    if as_json:
        print_json(json.dumps(outcome.facts(), indent=2))
    else:
        outcome.show(quiet=quiet)


# Known here, so that neither shell completion nor whoever mistyped a column waits for the
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


class _Fit:
    """One run: reads, fits, measures and saves; then tells about it."""

    def __init__(
        self,
        table: str,
        out: Path,
        roles: dict[str, Any],
        method: str,
        preserve: str | None,
        how: dict[str, Any],
        drawing: dict[str, Any],
        overwrite: bool,
    ):
        self.started = time.perf_counter()
        from hetcal.tables.writing import check_target

        self.table, self.out, self.roles, self.method = table, out, roles, method
        self.preserve, self.how, self.drawing = preserve, how, drawing
        check_target(out, overwrite=overwrite)
        _check_choices(method, preserve)
        self.local = method in _LOCAL

    def run(self, say: Any, *, forget_features: bool) -> None:
        from hetcal.tables.large_tables import draw_labelled

        self.labelled: LabelledTable = draw_labelled(
            self.table,
            use_features=self.local,
            progress=lambda share: say(_reading(self.table, share)),
            **self.drawing,
            **self.how,
            **self.roles,
        )
        say(f"Fitting {self.method} on {self.labelled.n_items:,} items")
        self.calibrator, self.warnings = self._fitted()
        say("Measuring")
        self._measure()
        say(f"Saving {self.out}")
        from hetcal.persistence import save

        self.forget_features = forget_features
        save(
            self.calibrator,
            self.out,
            forget_features=forget_features,
            metadata={"table": self.labelled.roles.to_dict(), "fit": self.record()},
        )
        self.seconds = time.perf_counter() - self.started

    def _fitted(self) -> tuple[Any, list[str]]:
        from hetcal._exceptions import ColumnOrderWarning, InputError
        from hetcal.calibration.fitting import fitted_to
        from hetcal.calibration.registry import get_calibrator

        calibrator = get_calibrator(
            self.method, preserve=self.preserve, classes=self.labelled.classes
        )
        if self.local and self.labelled.X is None:
            raise InputError(
                f"{self.method} compares items by features, and no column is left for them. Name "
                "some with --features, or use a global method: --method temperature."
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ColumnOrderWarning)  # said when the table was read
            fitted = fitted_to(calibrator, self.labelled.items)
        return fitted, _said_by_hetcal(caught)

    def _measure(self) -> None:
        import numpy as np

        from hetcal.calibration.fitting import out_of_sample_proba
        from hetcal.metrics.scores import brier_losses
        from hetcal.metrics.standard_errors import mean_and_error

        items = self.labelled.items
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Q = out_of_sample_proba(self.calibrator, items)
            support = _support_of(self.calibrator)
        losses = brier_losses(items.proba, items.codes)
        self.before = float(np.average(losses, weights=items.weight))
        self.after = self.change = self.change_error = None
        if not np.isnan(Q).any():
            new = brier_losses(Q, items.codes)
            change, error = mean_and_error(new - losses, items.weight, items.groups)
            self.change, self.change_error = float(change), float(error)
            self.after = self.before + self.change
        self.low_support = (
            None if support is None else float(np.quantile(support, _SUPPORT_QUANTILE))
        )

    def record(self) -> dict[str, Any]:
        """Return what is remembered in the file."""
        return {
            "source": Path(self.table).name,
            "rows_read": self.labelled.n_read,
            "items": self.labelled.n_items,
            "method": self.method,
            "preserve": self.preserve,
            "brier_before": self.before,
            "brier_after": self.after,
            "brier_change_error": self.change_error,
            "low_support": self.low_support,
            "drawn": self.labelled.drawn,
            "left_out": self.labelled.left_out,
            "notes": self.labelled.notes + self.warnings,
        }

    def facts(self) -> dict[str, Any]:
        """Return everything, for machines."""
        facts = {"saved": str(self.out), "file_bytes": self.out.stat().st_size}
        facts |= {"seconds": round(self.seconds, 2), **self.record()}
        facts["classes"] = self.labelled.classes.tolist()
        facts["features"] = list(self.labelled.roles.features)
        experts = self._experts()
        if experts is not None:
            facts["experts"] = experts.reset_index().to_dict("records")
        return facts

    def show(self, *, quiet: bool) -> None:
        """Print what was found and what to type next."""
        console = results()
        if quiet:
            tell(console, self._scores())
            return
        labelled = self.labelled
        for line in self._lines():
            tell(console, line)
        verdict = self._verdict()
        if verdict is not None:
            tell(console, verdict, "bold yellow")
        for note in labelled.notes + self.warnings:
            tell(errors(), f"note: {note}", "yellow")
        experts = self._experts()
        if experts is not None:
            shown = experts[experts["weight"] >= _LEAST_WEIGHT].head(_EXPERTS_SHOWN)
            console.print()
            console.print(_experts_table(shown))
            if len(experts) > len(shown):
                console.print(f"and {len(experts) - len(shown)} with less weight", style="dim")
        size = file_size(self.out.stat().st_size)
        console.print()
        tell(console, f"Saved {self.out} ({size}, {self.seconds:.1f} s). Next:")
        tell_line(console, f"  {self._next_command()}", "bold")

    def _lines(self) -> list[str]:
        labelled = self.labelled
        classes = [str(name) for name in labelled.classes.tolist()]
        shown = ", ".join(classes[:8]) + (", ..." if len(classes) > 8 else "")
        n = len(labelled.roles.features)
        features = f"{n} feature{'s' if n != 1 else ''}" if self.local else "features not used"
        drawn = "" if labelled.drawn is None else f" drawn from {labelled.n_read:,} rows"
        lines = [
            f"{labelled.n_items:,} items{drawn}, {features}, {len(classes)} classes ({shown})",
            f"method {self.method}" + (", labels preserved" if self.preserve else ""),
            self._scores(),
        ]
        if self.preserve and self.calibrator.price_ == self.calibrator.price_:
            lines.append(
                f"keeping every label costs {self.calibrator.price_:.4f} of Brier score "
                f"(± {self.calibrator.price_error_:.4f})"
            )
        return lines

    def _scores(self) -> str:
        if self.after is None:
            return f"Brier score {self.before:.4f} before; too few items to measure it after"
        return (
            f"Brier score {self.before:.4f} before, {self.after:.4f} after "
            f"({self.change:+.4f} ± {self.change_error:.4f}), each item predicted without its label"
        )

    def _verdict(self) -> str | None:
        """Return a word where there is nothing to gain, which people should know before they go on.

        Two standard errors, as everywhere.
        """
        if self.change is None or self.change_error is None:
            return None
        if self.change > 2 * self.change_error:
            return (
                "The probabilities get worse: keep the model's own, try another --method, or "
                "collect more items."
            )
        if self.change > -2 * self.change_error:
            return "No clear gain: these items do not show that the model's own are wrong."
        return None

    def _experts(self) -> Any:
        inner = getattr(self.calibrator, "calibrator_", self.calibrator)
        experts = getattr(inner, "experts_", None)
        return None if experts is None else experts.sort_values("weight", ascending=False)

    def _next_command(self) -> str:
        new = "new" + ("".join(Path(self.table).suffixes[-2:]) if self.table != "-" else ".csv")
        output = new.replace("new", "calibrated", 1)
        read_so = inputs.arguments_of(inputs.unusual(self.how))
        return inputs.command_line("apply", str(self.out), new, *read_so, "-o", output)


def _reading(table: str, share: float | None) -> str:
    return f"Reading {table}" + ("" if share is None else f" ({share:.0%})")


def _check_choices(method: str, preserve: str | None) -> None:
    """Raise for a wrong name before the table is read."""
    from hetcal._exceptions import InputError

    if method not in _METHODS:
        from difflib import get_close_matches

        close = get_close_matches(method.lower(), _METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"Unknown method {method!r}.{hint} Known names: {', '.join(_METHODS)}.")
    if preserve not in (None, "label"):
        raise InputError(
            f"Unknown --preserve {preserve!r}. Pass --preserve label, or leave it out."
        )


def _experts_table(experts: Any) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("expert")
    for title in ("weight", "Brier alone", "± error"):
        table.add_column(title, justify="right")
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


def _said_by_hetcal(caught: list[warnings.WarningMessage]) -> list[str]:
    from hetcal._exceptions import HetcalWarning

    said = [str(w.message) for w in caught if issubclass(w.category, HetcalWarning)]
    return list(dict.fromkeys(said))


def _support_of(calibrator: Any) -> Any:
    """Return the support of the calibration items, each as if it were new; None without any."""
    calibrator = getattr(calibrator, "calibrator_", calibrator)
    return (
        calibrator.out_of_sample_support() if hasattr(calibrator, "out_of_sample_support") else None
    )
