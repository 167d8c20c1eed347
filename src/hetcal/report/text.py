"""The report as plain text for a terminal: two answers first, then tables, numbers last."""

from __future__ import annotations

from hetcal._printable import counted, printable
from hetcal.diagnosis import findings
from hetcal.diagnosis.render import wrapped
from hetcal.report import model

_MOST_GROUPS = 5
_IN_PYTHON = "No command trains a model; code for Python is in the report and in --json."


def text(report: model.Report, *, width: int = 80) -> str:
    """Return the report in lines of at most ``width`` characters."""
    lines = [
        *verdict_lines(report, width),
        "",
        *comparison_lines(report),
        *subgroup_lines(report, width),
        *test_lines(report),
        *support_lines(report),
        *reason_lines(report, width),
    ]
    return printable("\n".join(lines).rstrip())


def verdict_lines(r: model.Report, width: int = 80) -> list[str]:
    """Return what to do now, what may mislead, how sure it is, and what to type."""
    v = r.verdict
    return [
        f"Verdict: {v.headline or v.verdict}",
        *_wrapped(v.meaning, width, "  "),
        *warning_lines(r, width),
        "",
        f"How sure: {v.certainty.state}",
        *_wrapped(v.certainty.meaning, width, "  "),
        *_to_type(v),
    ]


def _to_type(v: findings.Verdict) -> list[str]:
    """Return the commands, or where there are none the code."""
    blocks = {"Do this": v.call, "To retrain": v.retraining_call}
    if v.command is not None:
        blocks = {v.command_title: v.command, "To retrain": v.retraining_call and _IN_PYTHON}
    lines: list[str] = []
    for title, block in blocks.items():
        if block is not None:
            lines += ["", f"{title}:", *(f"    {line}" for line in block.splitlines())]
    return lines


def reason_lines(r: model.Report, width: int = 80) -> list[str]:
    """Return the numbers behind the verdict."""
    if not r.verdict.reasons:
        return []
    lines = ["", "The numbers:"]
    for reason in r.verdict.reasons:
        lines += _wrapped(reason, width, "    ", first="  - ")
    return lines


def comparison_lines(r: model.Report) -> list[str]:
    """Return the comparison; a star stands beside what is within one error of the best."""
    if not r.comparison or r.verdict.void:  # what a warning makes doubtful invites nobody
        return []
    lines = _method_lines(r.comparison, r.verdict.recommended)
    legend = "> recommended   * within one standard error of the best"
    return [*lines, legend, "X: the features, P: the model's probabilities"]


def _method_lines(methods: list[findings.MethodRow], recommended: str | None) -> list[str]:
    head = f"{'method':<28}{'Brier':>8}  {'95 % interval':>14} {'log loss':>8}"
    lines = [f"{head} {'ECE':>6} {'accuracy':>8}"]
    for row in methods:
        s = row.scores
        star = "*" if s["brier"].within_one_se else " "
        chosen = ">" if row.method == recommended else " "
        lines.append(
            f"{chosen} {row.label[:26]:<26}{s['brier'].value:>8.4f}{star}"
            f" {interval_text(s['brier']):>14} {s['log_loss'].value:>8.4f} "
            f"{s['ece'].value:>6.3f} {s['accuracy'].value:>8.3f}"
        )
    return lines


def interval_text(score: findings.Score) -> str:
    """Return the interval of a score; nothing where there is none."""
    return "" if score.low is None else f"{score.low:.3f} to {score.high:.3f}"


def subgroup_lines(r: model.Report, width: int = 80) -> list[str]:
    """Return the largest sub-populations that a global map does not repair."""
    groups = [g for g in r.subgroups if not g.global_map_repairs][:_MOST_GROUPS]
    if not groups or r.verdict.void:
        return []
    title = (
        "Who gets wrong probabilities (no global map repairs it; rules that were searched for are "
        "measured on the other half of the items):"
    )
    lines = ["", *_wrapped(title, width, "")]
    for g in groups:
        said = (
            f"{g.rule}: {g.label} predicted {g.predicted:.2f}, observed {g.observed:.2f} "
            f"({g.low:.2f} to {g.high:.2f}), {counted(g.count, 'item')}"
        )
        lines += _wrapped(said, width, "    ", first="  - ")
    return lines


def test_lines(r: model.Report) -> list[str]:
    """Return the scores on the labels of the test table."""
    if not r.test:
        return []
    title = f"On {r.data.n_test_scored:,} labelled rows of the test table (nothing learned from)"
    return [
        "",
        f"{title}:",
        *_method_lines(r.test, None if r.verdict.void else r.verdict.recommended),
    ]


def support_lines(r: model.Report) -> list[str]:
    """Return one line on the support of the test table."""
    if r.support is None or len(r.support.histograms) < 2:
        return []
    test = r.support.histograms[1]
    return ["", f"Test table: {test.share_low:.1%} of the items have low support (expected: 5 %)."]


def warning_lines(r: model.Report, width: int = 80) -> list[str]:
    """Return the warnings."""
    if not r.warnings:
        return []
    lines = ["", "Warnings:"]
    for warning in r.warnings:
        lines += _wrapped(warning, width, "    ", first="  - ")
    return lines


def _wrapped(line: str, width: int, indent: str, *, first: str | None = None) -> list[str]:
    return wrapped(printable(line), width, indent, first=first)
