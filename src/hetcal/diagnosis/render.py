"""The advice in words, as a table, and as plain values: views that compute nothing."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetcal.diagnosis.measurements import Gain, Measurements
from hetcal.diagnosis.sample_size import MOST_ITEMS, WANTED_OF_SECOND_CLASS
from hetcal.diagnosis.verdicts import (
    AS_IT_IS,
    HYBRID,
    LEAST_GAIN,
    LEAVE_IT,
    LEVEL,
    LEVEL_OF_TEST,
    RETRAIN,
    SURE_ERRORS,
    State,
)
from hetcal.heterogeneity.limits import least_p_of

if TYPE_CHECKING:
    from hetcal.diagnosis.advise import Advice

_WIDTH = 80
_RULES_SHOWN = 3

# What to do first, by the code of the warning that voids the advice.
_REMEDIES = {
    "column-order": "check the order of the columns first",
    "class-never-seen": "collect items of every class first",
    "repeated-rows": "drop or group the repeated rows first",
    "dependent-rows": "group the rows that belong together first",
}
_VOID = (
    "Settle the first warning before anything else: until then nothing is recommended, and the "
    "numbers are not to be relied on."
)
_RETRAIN = (
    "Retrain when you can: a model trained on these items alone beats any single map of the old "
    "probabilities, the old model adds next to nothing to it, and the hybrid is not clearly better "
    "by anything that matters. Until then:"
)
# Share of what the hybrid knows, as where it warns of a calibration set that trains.
_LITTLE = 0.01
_RETRAIN_LATER = (
    "Next to nothing of what it knows would be lost without the old model: to do without that one, "
    "retrain it on data that include these items."
)
_FINER = "Smaller differences, and patterns finer than these, may be there."
_BLIND = (
    "every column of the features is constant, follows the probabilities, or is another for every "
    "item. No number of items would settle it with these features; others may."
)
_BETTER_OF_BOTH = "the better of that map and the probabilities as they are"


def report(advice: Advice) -> str:
    """Return the advice as plain text: two answers, what to type, and the numbers last."""
    parts = [f"Verdict: {headline(advice)}", *_wrapped(what_to_do(advice))]
    if advice.warnings:
        parts += ["", "Warnings:"]
        for warning in advice.warnings:
            parts += _bullet(warning.text)
    parts += ["", f"How sure: {advice.certainty.state}", *_wrapped(how_sure(advice))]
    parts += ["", "Until then:" if advice.is_void else "Do this:"]
    parts += [textwrap.indent(advice.call, "    ")]
    if advice.retraining_call is not None:
        parts += ["", "To retrain:", textwrap.indent(advice.retraining_call, "    ")]
    numbers = reasons(advice)
    if numbers:
        parts += ["", "The numbers:"]
        for sentence in numbers:
            parts += _bullet(sentence)
    return "\n".join(parts)


def headline(advice: Advice) -> str:
    """Return the verdict, or where a warning voids it what to do first."""
    first = next((warning.code for warning in advice.warnings if warning.voids), None)
    return advice.verdict if first is None else _REMEDIES[first]


def table(advice: Advice) -> pd.DataFrame:
    """Return one row per number of the evidence."""
    columns = ["value", "low", "high", "p_value", "meaning"]
    rows = [] if advice.evidence is None else _rows(advice.evidence, advice)
    frame = pd.DataFrame(rows, columns=["evidence", *columns]).set_index("evidence")
    return frame.astype(dict.fromkeys(columns[:4], float))


def as_dict(advice: Advice) -> dict[str, Any]:
    """Return plain values."""
    shift, gain, sure = advice.prior_shift, advice.expected_gain, advice.certainty
    return {
        "verdict": advice.verdict,
        "headline": headline(advice),
        "meaning": what_to_do(advice),
        "recommended": advice.recommended,
        "call": advice.call,
        "retraining_call": advice.retraining_call,
        "expected_brier": _plain(advice.expected_brier),
        "expected_gain": None
        if gain is None
        else {name: _plain(getattr(gain, name)) for name in ("value", "low", "high")},
        "certainty": {
            "state": str(sure.state),
            "meaning": how_sure(advice),
            "p_value": _plain(sure.p_value),
            "detectable": _plain(sure.detectable),
            "detectable_share": _plain(sure.detectable_share),
            "items_to_settle": sure.items_to_settle,
            "groups_to_settle": sure.groups_to_settle,
        },
        "reasons": reasons(advice),
        "warnings": [{"code": w.code, "text": w.text} for w in advice.warnings],
        "n_items": advice.n_items,
        "n_groups": advice.n_groups,
        "share": advice.share,
        "worthwhile": advice.worthwhile,
        "worthwhile_locally": _plain(advice.worthwhile_locally),
        "best_map": None if advice.evidence is None else advice.evidence.best_map,
        "evidence": [
            {"evidence": name} | {key: _plain(value) for key, value in row.items()}
            for name, row in table(advice).to_dict("index").items()
        ],
        "subgroups": [
            {str(key): _plain(value) for key, value in row.items()}
            for row in advice.subgroups.to_dict("records")
        ],
        "prior_shift": None
        if shift is None
        else {name: getattr(shift, name).tolist() for name in ("old", "new", "low", "high")},
    }


# -- the first answer ------------------------------------------------------------------------------


def what_to_do(advice: Advice) -> str:
    """Return what to do now and what it should bring."""
    if advice.is_void:
        return _VOID
    sentences = [_action(advice), _expectation(advice)]
    if advice.verdict == RETRAIN:
        sentences = [_RETRAIN, sentences[0][:1].lower() + sentences[0][1:], sentences[1]]
    elif advice.recommended == HYBRID and advice.known_evidence.reliance_on_model < _LITTLE:
        sentences.append(_RETRAIN_LATER)
    if _corrected(advice):
        sentences.append(
            "The new data have another class balance: the code below corrects for it, and every "
            "Brier score here is one for the balance of the calibration items."
        )
    return " ".join(filter(None, sentences))


def _action(advice: Advice) -> str:
    if advice.recommended == HYBRID:
        return "Calibrate with the hybrid, which also looks at the features."
    if advice.recommended != AS_IT_IS:
        return "Correct the probabilities with one map for everybody."
    if advice.verdict == LEAVE_IT:
        return "Use the probabilities as they are: no repair promises a gain that matters."
    if advice.has_too_few_groups:
        s = "" if advice.n_groups == 1 else "s"
        rest = (
            f"with only {advice.n_groups} group{s} no gain can be proved, however large it looks."
        )
    else:
        rest = "no repair promises a gain yet that could be relied on."
    now = "" if advice.verdict == RETRAIN else " for now"  # that says "until then" already
    return f"Use the probabilities as they are{now}: {rest}"


def _expectation(advice: Advice) -> str:
    gain, e = advice.expected_gain, advice.evidence
    if gain is None or e is None:
        return ""
    said = (
        f"Expect a Brier score of {advice.expected_brier:.4f} instead of {e.brier:.4f}: "
        f"{_share(gain.value / e.brier)} less (95 % interval {_number(100 * gain.low / e.brier)} "
        f"to {_share(gain.high / e.brier)})."
    )
    if gain.value < advice.worthwhile:
        said += f" That is less than {_share(advice.share)}, but it is sure."
    return said


# -- the second answer -----------------------------------------------------------------------------


def how_sure(advice: Advice) -> str:
    """Return whether something is hidden, what would have been found, and what would settle it."""
    sure, e = advice.certainty, advice.evidence
    if advice.is_void:
        return "Nothing is known before the first warning is settled."
    if e is None:
        return f"Too few items to measure anything. {_more_items(advice)}"
    if sure.state is State.REAL:
        return _real(advice, e)
    if sure.state is State.NOT_FOUND:
        return _not_found(advice, e)
    if not sure.more_would_help:
        return f"{_found(advice)} ({_tested(advice)}), but hardly anything could be: {_BLIND}"
    if sure.items_to_settle is None:
        return _too_few_groups(advice)
    return f"{_open(advice, e)} {_more_items(advice)}"


def _not_found(advice: Advice, e: Measurements) -> str:
    sure = advice.certainty
    clearly = "clearly " if _is_rejected_by_test(advice) else ""
    found = f"Nothing hidden was {clearly}found ({_tested(advice)})"
    if np.isnan(sure.detectable_share):
        return (
            f"{found}, nor is there room for it: a Brier score of {e.reference_brier:.2g} is left."
        )
    return (
        f"{found}. A difference worth {_share(sure.detectable_share)} of the Brier score, a step "
        "or trend in one column or a corner of two, would have been found with 80 % probability. "
        f"{_FINER}"
    )


def _too_few_groups(advice: Advice) -> str:
    G = advice.n_groups
    return (
        f"{G} groups are too few to tell, however many rows they have: no p-value of theirs can be "
        f"below {least_p_of(G):.2g}, and {LEVEL:g} is asked for. Collect items of other groups (at "
        f"least {advice.certainty.groups_to_settle} groups in all)."
    )


def _real(advice: Advice, e: Measurements) -> str:
    said = "Items that get the same probability differ, and their features show how "
    if e.local_p_value <= LEVEL:
        said += f"(p {_p(e.local_p_value)})."
    else:
        said += (
            f"(the hybrid's gain of more than {SURE_ERRORS:.0f} standard errors shows it; the test "
            f"alone does not, p {_p(e.local_p_value)})."
        )
    if advice.recommended != HYBRID and e.n_later is not None:
        said += " But what earlier items teach of it does not improve later ones enough to use it."
    elif advice.recommended != HYBRID:
        said += " From so few items it cannot be learned well enough to use it; more would help."
    return said


def _open(advice: Advice, e: Measurements) -> str:
    sure = advice.certainty
    tested = _tested(advice)
    if min(sure.detectable, e.reference_brier) <= advice.worthwhile_locally:
        return (
            f"The signs disagree: the hybrid seems to gain, but the test finds nothing ({tested})."
        )
    found = _found(advice)
    if not np.isfinite(sure.detectable):
        return f"{found} ({tested}), but in {_all_items(advice)} hardly anything could be."
    return (
        f"{found} ({tested}), but in {_all_items(advice)} a difference is found with 80 % "
        f"probability only if it is worth {_share(sure.detectable_share)} of the Brier score."
    )


def _all_items(advice: Advice) -> str:
    return f"{advice.n_items:,} items" + (f" of {advice.n_groups:,} groups" * (advice.n_groups > 0))


def _found(advice: Advice) -> str:
    return "Something may be hidden" if _is_rejected_by_test(advice) else "Nothing hidden was found"


def _tested(advice: Advice) -> str:
    """Return the p-value; where the test alone would reject, also what the advice asks for."""
    p = advice.certainty.p_value
    return (
        f"p = {p:.3g}; the advice asks for {LEVEL:g}"
        if _is_rejected_by_test(advice)
        else f"p {_p(p)}"
    )


def _is_rejected_by_test(advice: Advice) -> bool:
    return LEVEL < advice.certainty.p_value <= LEVEL_OF_TEST


def _more_items(advice: Advice) -> str:
    sure = advice.certainty
    wanted, groups = sure.items_to_settle or 0, sure.groups_to_settle
    or_more = " or more" if wanted >= MOST_ITEMS else ""
    asked, settled = f"{wanted:,} items{or_more}", "would settle it"
    if groups is not None:
        more = groups - advice.n_groups
        asked = f"{more:,} more group{'' if more == 1 else 's'}{or_more} like these"
        settled += f" ({wanted:,} rows{or_more} in all)"
    rare = ""
    if sure.for_second_class:
        rare = f": {WANTED_OF_SECOND_CLASS} of the second most frequent class are among so many"
    return f"About {asked} {settled}{rare}."


# -- the numbers -----------------------------------------------------------------------------------


def reasons(advice: Advice) -> list[str]:
    """Return the numbers behind both answers, in sentences."""
    e = advice.evidence
    if e is None:
        return []
    said = [
        f"Brier score of the probabilities as they are: {e.brier:.4f} on {_scored(advice, e)}; "
        f"{_what_matters(advice, e)}.",
        f"A global map gains {_interval(e.global_gain)}. Test that the probabilities are right on "
        f"average: p {_p(e.global_p_value)}. Global part of hidden heterogeneity: "
        f"{e.hh_global:.4f}.",
        f"The hybrid gains {_interval(e.local_gain)} over {_BETTER_OF_BOTH}. Test that a global "
        f"map repairs everything: p {_p(e.local_p_value)}. Local part of hidden heterogeneity: "
        f"{e.hh_local:.4f} (standard error {e.hh_standard_error:.4f}).",
        _retraining(e),
        *([_choice_of_model(e)] if advice.verdict == RETRAIN else []),
        f"A forest gained {_interval(e.doubling_gain)} from the second half of the items: "
        f"{_more_data(advice, e.doubling_gain)}.",
    ]
    if advice.certainty.state is not State.NOT_FOUND:  # else what was found may be chance
        said += [_rule(row) for row in e.subgroups.head(_RULES_SHOWN).to_dict("records")]
    return said


def _scored(advice: Advice, e: Measurements) -> str:
    return f"{advice.n_items:,} items" if e.n_later is None else f"{e.n_later:,} later items"


def _what_matters(advice: Advice, e: Measurements) -> str:
    """Say from where on gains matter: locally it is a share of what a global map leaves."""
    share = f" ({_share(advice.share)} of it)" if advice.worthwhile > LEAST_GAIN else ""
    said = f"a gain matters from {advice.worthwhile:.4f}{share}"
    if f"{advice.worthwhile:.4f}" == f"{advice.worthwhile_locally:.4f}":
        return said
    return (
        f"{said}, and from {advice.worthwhile_locally:.4f} where the features add to a global map, "
        f"which leaves {e.reference_brier:.4f}"
    )


def _retraining(e: Measurements) -> str:
    gain = e.retraining_gain
    versus = "better" if gain.low > 0 else "worse" if gain.high < 0 else "neither better nor worse"
    said = (
        f"A forest or boosting trained on these items' features alone is {versus} than "
        f"{_BETTER_OF_BOTH}: {_interval(gain)}. To a forest the probabilities add "
        f"{_interval(e.model_gain)}"
    )
    if e.model_gain.low > 0:
        return f"{said}."
    if np.isnan(e.reliance_on_model):
        return f"{said}; the hybrid itself is not clearly better than the class frequencies."
    return f"{said}; {e.reliance_on_model:.0%} of what the hybrid knows would be lost without them."


def _choice_of_model(e: Measurements) -> str:
    return (
        f"The hybrid has a Brier score of {e.hybrid_brier:.4f}, {e.best_retrained} on the features "
        f"alone {e.retrained_brier:.4f}: a gain of {_interval(e.hybrid_over_retrained)}. The "
        "hybrid goes on asking the old model for its probabilities."
    )


def _more_data(advice: Advice, gain: Gain) -> str:
    old = ", also rows that the old model was trained on" if advice.verdict == RETRAIN else ""
    if gain.low > 0:
        return f"more rows would help it further{old}"
    if gain.high < advice.worthwhile_locally:
        return f"more rows would add little{old}"
    return f"whether more rows would help it is open{old}"


def _rule(row: dict) -> str:
    return (
        f"Where {row['rule']} (n = {row['n']}): the model says {row['predicted']:.2f} for class "
        f"{row['class']!r}, observed {row['observed']:.2f} (95 % interval {row['low']:.2f} to "
        f"{row['high']:.2f}). No global map repairs it."
    )


def _rows(e: Measurements, advice: Advice) -> list[tuple]:
    none = float("nan")

    def row(name: str, meaning: str, p_value: float = none, half_width: float = none) -> tuple:
        holder = next(part for part in (e, advice, advice.certainty) if hasattr(part, name))
        found = getattr(holder, name)
        if isinstance(found, Gain):
            return (name, found.value, found.low, found.high, p_value, meaning)
        return (name, found, found - half_width, found + half_width, p_value, meaning)

    # On later items a gain has a test of its own; the others are about the whole period.
    global_p, local_p = (
        (e.global_p_value, e.local_p_value)
        if e.n_later is None
        else (e.global_gain.p_value, e.local_gain.p_value)
    )
    out, both = "out-of-sample gain of", "the better of both"
    return [
        row("brier", "Brier score of the probabilities as they are"),
        row("best_map_brier", f"Brier score of a global map ({e.best_map!r}), out of sample"),
        row("reference_brier", f"Brier score of {both}, which is to be beaten"),
        row("worthwhile", "smallest gain over the probabilities that matters"),
        row("worthwhile_locally", f"smallest gain over {both} that matters"),
        row("global_gain", f"{out} the global map", global_p),
        row("hh_global", "global part of hidden heterogeneity", e.global_p_value),
        row("hybrid_gain", f"{out} the hybrid over the probabilities as they are"),
        row("local_gain", f"{out} the hybrid over {both}", local_p),
        row(
            "hh_local",
            "local part of hidden heterogeneity",
            e.local_p_value,
            1.96 * e.hh_standard_error,
        ),
        row("detectable", "hidden heterogeneity that is found with 80 % probability (simulated)"),
        row("retraining_gain", f"{out} a model on the features over {both}"),
        row("hybrid_over_retrained", f"{out} the hybrid over that model"),
        row("model_gain", f"{out} a forest from seeing the probabilities too"),
        row("reliance_on_model", "share of the hybrid's gain that is lost without the model"),
        row("doubling_gain", f"{out} a forest from the second half of the items"),
    ]


# -- pieces ----------------------------------------------------------------------------------------


def _corrected(advice: Advice) -> bool:
    return advice.prior_shift is not None and bool(advice.prior_shift.shifted.any())


def _interval(gain: Any) -> str:
    return f"{gain.value:+z.4f} (95 % interval {gain.low:+z.4f} to {gain.high:+z.4f})"


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"= {value:.2g}"


def _number(value: float) -> str:
    """Return a number with about two digits that say something."""
    return f"{round(value, 0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2) + 0.0:g}"


def _share(value: float) -> str:
    return f"{_number(100 * value)} %"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _wrapped(text: str) -> list[str]:
    return wrapped(text, _WIDTH, "  ")


def _bullet(text: str) -> list[str]:
    return wrapped(text, _WIDTH, "    ", first="  - ")


def wrapped(text: str, width: int, indent: str, *, first: str | None = None) -> list[str]:
    """Return lines of at most ``width`` characters; numbers stay with their signs."""
    together = text.replace(" %", "\u00a0%").replace("p < ", "p\u00a0<\u00a0")
    lines = textwrap.wrap(
        together.replace("p = ", "p\u00a0=\u00a0"),
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
    )
    return [line.replace("\u00a0", " ") for line in lines]
