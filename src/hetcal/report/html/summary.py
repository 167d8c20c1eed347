"""How far off, for whom, how sure: plain sentences for somebody who reads nothing else."""

from __future__ import annotations

from hetcal.diagnosis import findings
from hetcal.report import model
from hetcal.report.html.filters import p_value, percent, thousands

# A range is called wrong beyond three standard errors, not two: a dozen ranges are looked at.
_CLEARLY = 1.5
_LEVEL = 0.05  # of the test that the probabilities are right on average


def summary(report: model.Report) -> dict[str, str]:
    """Return how far off the probabilities are, for whom, and how sure it is."""
    sure = report.verdict.certainty
    known = {"How sure": f"{sure.state[:1].upper()}{sure.state[1:]}. {sure.meaning}"}
    if not report.comparison or report.verdict.void:  # nothing that could be claimed
        return known
    return {"How far off": _how_far_off(report), "For whom": _for_whom(report)} | known


def _how_far_off(r: model.Report) -> str:
    before = r.reliability[0]
    average = _on_average(r)
    wrong = [b for b in before.bins if _is_off(b)]
    if not wrong:
        return f"{average}; in no range of values by more than three standard errors."
    worst = max(wrong, key=lambda b: abs(b.predicted - b.observed))
    event = "of the predicted class" if r.data.positive is None else f"“{r.data.positive}”"
    return (
        f"{average}. Furthest off: of {thousands(worst.count)} items with a probability of about "
        f"{percent(worst.predicted)}, {percent(worst.observed)} were {event}."
    )


def _on_average(r: model.Report) -> str:
    before = r.reliability[0]
    p = next((f.p_value for f in r.verdict.evidence if f.name == "global_gain"), None)
    if p is None or p <= _LEVEL:
        error, beyond = before.ece_debiased, " beyond chance"
        if error is None:  # a report of an older version
            error, beyond = before.ece, ""
        points = f"{100 * error:.1f} percentage points"
        return f"On average the probabilities are off by about {points}{beyond}"
    # The average of distances in small bins is above 0 also where every probability is right.
    return (
        f"Probabilities and observed frequencies differ by {100 * before.ece:.1f} percentage "
        f"points on average, which may be chance ({p_value(p)})"
    )


def _for_whom(r: model.Report) -> str:
    wrong = [g for g in r.subgroups if _is_off(g)]
    if not wrong:
        return "No group of items was found that differs by more than three standard errors."
    worst = max(wrong, key=_gap)
    said = f"Worst for {_told(worst)}. One correction for everybody "
    if not worst.global_map_repairs:
        return f"{said}does not repair it."
    hidden = [g for g in wrong if not g.global_map_repairs]
    others = f", but not {_told(max(hidden, key=_gap))}" if hidden else ""
    return f"{said}repairs it{others}."


def _told(group: findings.Subgroup) -> str:
    return (
        f"the {thousands(group.count)} items with {group.rule}: predicted "
        f"{percent(group.predicted)} “{group.label}”, observed {percent(group.observed)}"
    )


def _gap(group: findings.Subgroup) -> float:
    return abs(group.predicted - group.observed)


def _is_off(part: findings.Bin | findings.Subgroup) -> bool:
    bound = part.high if part.predicted > part.observed else part.low
    return abs(part.predicted - part.observed) > _CLEARLY * abs(bound - part.observed)
