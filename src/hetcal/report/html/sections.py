"""The sections that every report has: verdict, comparison, reliability, how it was made."""

from __future__ import annotations

from hetcal.report import model
from hetcal.report.html import charts
from hetcal.report.html.markup import Markup, el, join
from hetcal.report.html.pieces import Section, code, legend, optional, p_words, section
from hetcal.report.html.tables import Cell, Head, cell, numbers_of, table

_KIND = {
    "leave it": "leave",
    "global map is enough": "global",
    "go local": "local",
    "retrain instead": "retrain",
    "collect more data": "collect",
}

_HEADLINES = {
    "leave it": "Leave it as it is",
    "global map is enough": "A global map is enough",
    "go local": "Calibrate locally",
    "retrain instead": "Retrain instead",
    "collect more data": "Collect more data",
}

_METRICS = {
    "brier": ("Brier score", 4),
    "log_loss": ("log loss", 4),
    "ece": ("calibration error", 4),
    "accuracy": ("accuracy", 4),
}


def verdict(r: model.Report) -> Section:
    """Return what to do, and why."""
    v = r.verdict
    kind = _KIND.get(v.verdict, "collect")
    card = el(
        "div",
        el("p", "Verdict", class_="eyebrow"),
        el("h2", _HEADLINES.get(v.verdict, v.verdict), id="verdict-title"),
        el("p", v.meaning, class_="meaning"),
        _tiles(r),
        class_=f"card verdict {kind}",
    )
    doing = []
    if v.command:
        doing.append(code("In the terminal", v.command, "command"))
    doing.append(code("In Python", v.call, "call"))
    warned = None
    if r.warnings:
        n = len(r.warnings)
        warned = el(
            "p",
            el("strong", "Before you believe it: "),
            "there is one warning. " if n == 1 else f"there are {n} warnings. ",
            el("a", "Read it" if n == 1 else "Read them", href="#warnings"),
            class_="alert",
        )
    reasons = el("ul", [el("li", _opened(reason)) for reason in v.reasons], class_="reasons")
    markup = el(
        "section",
        card,
        warned,
        el("h3", "Do this"),
        doing,
        el("h3", "Why"),
        reasons,
        _evidence(r),
        id="verdict",
        aria_labelledby="verdict-title",
    )
    return "verdict", "Verdict", markup


def _opened(reason: str) -> Markup:
    """Return a reason whose first sentence, where it is a short one, stands out."""
    first, dot, rest = reason.partition(". ")
    if not dot or len(first) > 70:
        return join(reason)
    return join(el("strong", f"{first}."), " ", rest)


def _tiles(r: model.Report) -> Markup | None:
    if not r.comparison:
        return None
    before, after = r.method("uncalibrated"), r.method(r.verdict.recommended)
    tiles = []
    for metric, (name, _) in _METRICS.items():
        old, new = before.scores[metric].value, after.scores[metric].value
        if before is after:
            value, note = _shown(metric, old), "as it is"
        else:
            value = f"{_shown(metric, old)} → {_shown(metric, new)}"
            note = f"as it is → {after.label}"
        tiles.append(
            el("div", el("dt", name), el("dd", value), el("dd", note, class_="note"), class_="tile")
        )
    return el("dl", tiles, class_="tiles")


def _shown(metric: str, value: float) -> str:
    return f"{value:.1%}" if metric == "accuracy" else f"{value:.3f}"


def _evidence(r: model.Report) -> Markup | None:
    if not r.verdict.evidence:
        return None
    rows = [
        [
            cell(f.meaning),
            cell(optional(f.value, 4), f.value),
            cell("" if f.low is None else f"{f.low:.4f} to {f.high or 0:.4f}", f.low),
            cell("" if f.p_value is None else p_words(f.p_value), f.p_value),
        ]
        for f in r.verdict.evidence
    ]
    return el(
        "details",
        el("summary", "Every number behind the verdict"),
        table("Evidence", ["number", "value", "95 % interval", "p"], rows, key="evidence-table"),
    )


def _method_table(
    methods: list[model.MethodRow], recommended: str
) -> tuple[list[Head], list[list[Cell]]]:
    """Return heads and lines of a table of methods."""
    briers = [row.scores["brier"] for row in methods]
    low = min(s.value - (s.standard_error or 0) for s in briers)
    high = max(s.value + (s.standard_error or 0) for s in briers)
    rows = []
    for row in methods:
        chosen = row.method == recommended
        name = el(
            "div",
            el("span", class_=f"swatch {charts.SCOPE_CLASS[row.scope]}"),
            el(
                "div",
                row.label,
                el("span", "recommended", class_="chip") if chosen else None,
                el(
                    "span",
                    row.how if row.scope == "as it is" else f"{row.scope}, {row.how}",
                    class_="how",
                ),
            ),
            class_="method",
        )
        line = [
            cell(name, row.label, header=True),
            cell(charts.score_strip(row, (low, high), "brier"), None, class_="graphic"),
        ]
        for metric in _METRICS:
            s = row.scores[metric]
            mark = el(
                "span",
                "●",
                class_="best",
                title="within one standard error of the best",
                aria_label="within one standard error of the best",
            )
            error = "" if s.standard_error is None else f"± {s.standard_error:.4f}"
            line.append(
                cell(
                    join(
                        el("span", f"{s.value:.4f}", class_="strong" if s.best else None),
                        mark if s.within_one_se else None,
                        el("span", error, class_="error"),
                    ),
                    s.value,
                )
            )
        d = row.scores["brier"]
        gap = join(
            f"+{d.difference:.4f}", el("span", f"± {d.difference_se or 0:.4f}", class_="error")
        )
        line.append(cell("best" if d.best else gap, d.difference))
        rows.append(line)
    heads: list[Head] = [
        "method",
        ("Brier, ± one error", None),
        *[title for title, _ in _METRICS.values()],
        "Brier above the best",
    ]
    return heads, rows


def comparison(r: model.Report) -> Section | None:
    """Return all methods side by side."""
    if not r.comparison:
        return None
    heads, rows = _method_table(r.comparison, r.verdict.recommended)
    lead = (
        f"Every method on the same {r.data.n_scored:,} items, each predicted without its own label."
        " Lower is better, except for accuracy; ● marks what comes within one standard error of "
        "the best."
    )
    return section(
        "comparison",
        "Comparison",
        table("Comparison of methods", heads, rows, key="comparison-table"),
        legend(
            ("raw", "as it is"),
            ("global", "global map"),
            ("local", "local"),
            ("retrained", "model retrained on the calibration items"),
        ),
        lead=lead,
    )


def reliability(r: model.Report) -> Section | None:
    """Return the reliability diagrams, before and after."""
    scopes = {row.label: charts.SCOPE_CLASS[row.scope] for row in r.comparison}
    lead = (
        "When it says 0.8, does it happen 80 times in 100? Dots on the dashed line are right; "
        "vertical lines are 95 % intervals, and the bars below show how often each probability "
        "was given (heights on a square-root scale)."
    )
    return section(
        "reliability", "Reliability", _panels(r.reliability, scopes, r.data.event), lead=lead
    )


def _panels(curves: list[model.Reliability], scopes: dict[str, str], event: str) -> Markup:
    figures = []
    for place, curve in enumerate(curves):
        kind = scopes.get(curve.name, "raw")
        before = "before" if place == 0 else "after"
        title = "Before: as it is" if place == 0 else f"After: {curve.name}"
        figures.append(
            el(
                "figure",
                el(
                    "figcaption",
                    el("strong", title),
                    el("span", f"calibration error {curve.ece:.3f}"),
                ),
                charts.reliability(curve, kind, event),
                _bins(curve),
                class_=before,
            )
        )
    return el("div", figures, class_="panels")


def on_test(r: model.Report) -> Section | None:
    """Return the scores on the labels of the test table."""
    if not r.test:
        return None
    heads, rows = _method_table(r.test, r.verdict.recommended)
    scopes = {row.label: charts.SCOPE_CLASS[row.scope] for row in r.test}
    lead = (
        f"The {r.data.n_test_scored:,} items of the test table that have a label. Nothing has "
        "learned from them: the methods were fitted to all calibration items."
    )
    return section(
        "test",
        "On the test table",
        table("Methods on the test table", heads, rows, key="test-table"),
        el("h3", "Reliability on the test table"),
        _panels(r.test_reliability, scopes, r.data.event),
        lead=lead,
    )


def _bins(curve: model.Reliability) -> Markup:
    rows = [
        [
            cell(f"{b.predicted:.3f}", b.predicted),
            cell(f"{b.observed:.3f}", b.observed),
            cell(f"{b.low:.3f} to {b.high:.3f}", b.low),
            cell(f"{b.count:,}", b.count),
        ]
        for b in curve.bins
    ]
    heads = ["said", "observed", "95 % interval", "items"]
    return numbers_of(f"Reliability: {curve.name}", heads, rows)


def warnings(r: model.Report) -> Section | None:
    """Return what may mislead, and what was assumed about the table."""
    if not r.warnings and not r.notes:
        return None
    said = el("ul", [el("li", w) for w in r.warnings], class_="warnings") if r.warnings else None
    notes = None
    if r.notes:
        notes = join(el("h3", "About the table"), el("ul", [el("li", n) for n in r.notes]))
    return section("warnings", "Warnings" if r.warnings else "Notes", said, notes)


def settings(r: model.Report) -> Section:
    """Return how the report was made."""
    facts = dict(r.settings)
    facts |= {f"seconds: {name}": f"{value:.1f}" for name, value in r.seconds.items()}
    facts |= {
        "classes": ", ".join(
            f"{c} ({n:,})" for c, n in zip(r.data.classes, r.data.counts, strict=True)
        ),
        "features": ", ".join(r.data.features),
        "versions": ", ".join(f"{name} {value}" for name, value in r.versions.items()),
        "made": r.created,
    }
    rows = [el("div", el("dt", name), el("dd", value)) for name, value in facts.items()]
    command = None if r.command is None else code("Made by", r.command, "made")
    save = el("button", "Save the numbers (JSON)", type="button", id="save", class_="quiet")
    return section("settings", "How it was made", command, el("dl", rows, class_="settings"), save)
