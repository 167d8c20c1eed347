"""The advice in words, as a table, and as plain values: views that compute nothing."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetcal.diagnosis.measurements import Gain, Measurements
from hetcal.diagnosis.sample_size import MOST_ITEMS
from hetcal.diagnosis.snippet import HYBRID
from hetcal.diagnosis.verdicts import (
    COLLECT_MORE,
    GLOBAL_IS_ENOUGH,
    GO_LOCAL,
    LEAST_GAIN,
    LEAVE_IT,
    LOCAL_LEVEL,
    RETRAIN,
    SURE_ERRORS,
    Answer,
)

if TYPE_CHECKING:
    from hetcal.diagnosis.advise import Advice

_WIDTH = 96
_RULES_SHOWN = 3

_MEANING = {
    LEAVE_IT: "The probabilities can be used as they are: nothing that was tried could improve "
    "them by an amount that matters.",
    GLOBAL_IS_ENOUGH: "One correction for everybody repairs the probabilities; looking at the "
    "features brings nothing more that matters.",
    GO_LOCAL: "Items that get the same probability differ, and their features show how: calibrate "
    "each by items that are like it.",
    RETRAIN: "A model trained on these very items is better than this one, and this one adds next "
    "to nothing to it.",
    COLLECT_MORE: "These items do not settle whether a repair would pay.",
}
_VOID = (
    "Something must be settled before anything can be recommended: read the first warning below."
)
_LEAVE_IT_HERE = (
    "The probabilities need no repair for items like these: nothing that was tried could improve "
    "them by an amount that matters."
)
_ANOTHER_BALANCE = (
    " The new data have another class balance: for them the probabilities need the correction "
    "below, and every Brier score here is one for the balance of the calibration items."
)
_BETTER_OF_BOTH = "the better of that map and the probabilities as they are"
_BEST_IS_THE_HYBRID = (
    " Of such models the hybrid is clearly the best here: it calibrates little and is in fact a "
    "model trained anew."
)


def report(advice: Advice) -> str:
    """Return the advice as plain text."""
    parts = [f"Verdict: {advice.verdict}", *_wrapped(_meaning(advice))]
    if advice.warnings:
        parts += ["", "Before you believe it:"]
        for warning in advice.warnings:
            parts += _bullet(warning.text)
    parts += ["", "Why:"]
    for sentence in _reasons(advice):
        parts += _bullet(sentence)
    parts += ["", _expectation(advice), textwrap.indent(advice.call, "    ")]
    return "\n".join(parts)


def table(advice: Advice) -> pd.DataFrame:
    """Return one row per number of the evidence."""
    columns = ["value", "low", "high", "p_value", "meaning"]
    rows = [] if advice.evidence is None else _rows(advice.evidence, advice)
    frame = pd.DataFrame(rows, columns=["evidence", *columns]).set_index("evidence")
    return frame.astype(dict.fromkeys(columns[:4], float))


def as_dict(advice: Advice) -> dict[str, Any]:
    """Return plain values."""
    shift = advice.prior_shift
    found = advice.subgroups
    return {
        "verdict": advice.verdict,
        "meaning": _meaning(advice),
        "reasons": _reasons(advice),
        "recommended": advice.recommended,
        "call": advice.call,
        "warnings": [{"code": w.code, "text": w.text} for w in advice.warnings],
        "global_map": str(advice.global_map),
        "local": str(advice.local),
        "expected_brier": _plain(advice.expected_brier),
        "n_items": advice.n_items,
        "n_needed": advice.n_needed,
        "worthwhile": advice.worthwhile,
        "worthwhile_locally": _plain(advice.worthwhile_locally),
        "best_map": None if advice.evidence is None else advice.evidence.best_map,
        "evidence": [
            {"evidence": name} | {key: _plain(value) for key, value in row.items()}
            for name, row in table(advice).to_dict("index").items()
        ],
        "subgroups": [
            {str(key): _plain(value) for key, value in row.items()}
            for row in found.to_dict("records")
        ],
        "prior_shift": None
        if shift is None
        else {name: getattr(shift, name).tolist() for name in ("old", "new", "low", "high")},
    }


def _meaning(advice: Advice) -> str:
    if _void(advice):
        return _VOID
    corrected = _corrected(advice)
    left_here = advice.verdict == LEAVE_IT and corrected
    hybrid_anew = advice.verdict == RETRAIN and advice.recommended == HYBRID
    return (
        (_LEAVE_IT_HERE if left_here else _MEANING[advice.verdict])
        + (_BEST_IS_THE_HYBRID if hybrid_anew else "")
        + (_ANOTHER_BALANCE if corrected else "")
    )


def _void(advice: Advice) -> bool:
    """Return whether a warning must be settled first; too few items are said to be too few."""
    return advice.evidence is not None and any(warning.voids for warning in advice.warnings)


def _corrected(advice: Advice) -> bool:
    return advice.prior_shift is not None and bool(advice.prior_shift.shifted.any())


def _reasons(advice: Advice) -> list[str]:
    e = advice.evidence
    if e is None:
        return [f"Collect about {advice.n_needed} labelled items, then ask again."]
    said = [
        f"Brier score of the probabilities as they are: {e.brier:.4f} on {advice.n_items} items; "
        f"{_what_matters(advice, e)}.",
        _global_reason(advice, e),
        _local_reason(advice, e),
        _retraining_reason(e),
        *([_choice_of_model(advice, e)] if advice.verdict == RETRAIN else []),
        _data_reason(advice, e),
    ]
    if advice.local is not Answer.NO:  # else what was found may be chance
        said += [_rule(row) for row in e.subgroups.head(_RULES_SHOWN).to_dict("records")]
    return said


def _what_matters(advice: Advice, e: Measurements) -> str:
    """Say from where on gains matter: locally it is a share of what a global map leaves."""
    share = ""
    if advice.worthwhile > LEAST_GAIN:
        share = f" ({100 * advice.worthwhile / e.brier:.2g}% of it)"
    said = f"a gain matters from {advice.worthwhile:.4f}{share}"
    if f"{advice.worthwhile:.4f}" == f"{advice.worthwhile_locally:.4f}":
        return said
    left = ""
    if advice.worthwhile_locally > LEAST_GAIN:
        left = (
            f" ({100 * advice.worthwhile_locally / e.reference_brier:.2g}% of the "
            f"{e.reference_brier:.4f} that it leaves)"
        )
    return (
        f"{said} for a global map, and from {advice.worthwhile_locally:.4f}{left} for what the "
        "features add to it"
    )


def _global_reason(advice: Advice, e: Measurements) -> str:
    start = {
        Answer.YES: "A global map helps.",
        Answer.NO: "A global map brings nothing that matters.",
        Answer.UNSURE: "Whether a global map helps is open.",
    }[advice.global_map]
    if _void(advice):
        start = "A global map, not to be relied on before the warning above is settled:"
    return (
        f"{start} It gains {_interval(e.global_gain)}; that the "
        f"probabilities are right on average has p {_p(e.global_p_value)}"
        f"{_bound(advice.global_map, e.global_most)}. Global part of hidden heterogeneity: "
        f"{e.hh_global:.4f}."
    )


def _local_reason(advice: Advice, e: Measurements) -> str:
    start = {
        Answer.YES: "Looking at the features helps.",
        Answer.NO: "Looking at the features brings nothing more that matters.",
        Answer.UNSURE: "Whether looking at the features helps is open.",
    }[advice.local]
    if _void(advice):
        start = "Looking at the features, no more to be relied on:"
    return (
        f"{start} The hybrid gains {_interval(e.local_gain)} over {_BETTER_OF_BOTH}; that a "
        f"global map repairs everything has p {_p(e.local_p_value)}"
        f"{_proof(advice, e)}{_bound(advice.local, e.local_most)}. Local part of hidden "
        f"heterogeneity: {e.hh_local:.4f} (standard error {e.hh_standard_error:.4f})."
    )


def _proof(advice: Advice, e: Measurements) -> str:
    """Say what shows that something is hidden, where the test does not."""
    if advice.local is not Answer.YES or e.local_p_value <= LOCAL_LEVEL:
        return ""
    return (
        " (the test misses it, as it may among many features or few items; the gain, more than "
        f"{SURE_ERRORS:.0f} standard errors, shows it)"
    )


def _bound(answer: Answer, most: float) -> str:
    """Say what is not ruled out, where a gain has not been shown anyway."""
    if answer is Answer.YES:
        return ""
    return f"; a gain of {most:.4f} is not ruled out (95 %, one-sided)"


def _retraining_reason(e: Measurements) -> str:
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


def _choice_of_model(advice: Advice, e: Measurements) -> str:
    scores = (
        f"The hybrid has a Brier score of {e.hybrid_brier:.4f}, {e.best_retrained} on the features "
        f"alone {e.retrained_brier:.4f}: a gain of {_interval(e.hybrid_over_retrained)}"
    )
    if advice.recommended == HYBRID:
        return (
            f"{scores}. So the call below fits the hybrid to these items. It goes on asking the "
            f"old model for its probabilities; to do without it, train {e.best_retrained}."
        )
    return f"{scores}, not clear enough to go on running the old model for it."


def _data_reason(advice: Advice, e: Measurements) -> str:
    gain = e.doubling_gain
    if advice.verdict == RETRAIN:
        helps = _training_data(advice, gain)
    elif gain.low > 0:
        helps = "more items would help further"
    elif gain.high < advice.worthwhile_locally:
        helps = "more items would add little"
    else:
        helps = "whether more items would help it is open"
    if _void(advice):
        enough = "Settle the warning above, then ask again. "
    elif advice.n_needed is None:
        enough = "Enough items to decide. "
    else:
        or_more = " or more" if advice.n_needed >= MOST_ITEMS else ""
        enough = f"Collect about {advice.n_needed} items{or_more}, then ask again. "
    return (
        f"{enough}A forest gained {_interval(gain)} from the second half of the items, so {helps}."
    )


def _training_data(advice: Advice, gain: Gain) -> str:
    """Say what the data that the old model was trained on could add."""
    if gain.low > 0:
        return (
            "more rows help: a new model trained on these items and the old model's training data "
            "together should do better still than one trained on these items"
        )
    if gain.high < advice.worthwhile_locally:
        return "adding the old model's training data to these items promises little"
    return "whether adding the old model's training data to these items would help is open"


def _expectation(advice: Advice) -> str:
    if advice.evidence is None:
        return "Do this:"
    if _void(advice):
        return "Until then:"
    before, after = advice.evidence.brier, advice.expected_brier
    where = ", for the old class balance" if _corrected(advice) else ""
    if before == after:
        return f"Do this (Brier score as it is{where}):"
    return f"Do this (Brier score to expect{where}: {after:.4f} instead of {before:.4f}):"


def _rule(row: dict) -> str:
    return (
        f"Where {row['rule']} (n = {row['n']}): the model says {row['predicted']:.2f} for class "
        f"{row['class']!r}, observed {row['observed']:.2f} (95 % interval {row['low']:.2f} to "
        f"{row['high']:.2f}). No global map repairs it."
    )


def _rows(e: Measurements, advice: Advice) -> list[tuple]:
    none = float("nan")

    def row(name: str, meaning: str, p_value: float = none, half_width: float = none) -> tuple:
        found = getattr(e if hasattr(e, name) else advice, name)
        if isinstance(found, Gain):
            return (name, found.value, found.low, found.high, p_value, meaning)
        return (name, found, found - half_width, found + half_width, p_value, meaning)

    out, both = "out-of-sample gain of", "the better of both"
    return [
        row("brier", "Brier score of the probabilities as they are"),
        row("best_map_brier", f"Brier score of a global map ({e.best_map!r}), out of sample"),
        row("reference_brier", f"Brier score of {both}, which is to be beaten"),
        row("worthwhile", "smallest gain of a global map that matters"),
        row("worthwhile_locally", f"smallest gain over {both} that matters"),
        row("global_gain", f"{out} the global map", e.global_p_value),
        row("global_most", "largest gain of a global map that is not ruled out"),
        row("hh_global", "global part of hidden heterogeneity", e.global_p_value),
        row("local_gain", f"{out} the hybrid over {both}", e.local_p_value),
        row("local_most", "largest gain of a local map that is not ruled out"),
        row(
            "hh_local",
            "local part of hidden heterogeneity",
            e.local_p_value,
            1.96 * e.hh_standard_error,
        ),
        row("retraining_gain", f"{out} a model on the features over {both}"),
        row("hybrid_over_retrained", f"{out} the hybrid over that model"),
        row("model_gain", f"{out} a forest from seeing the probabilities too"),
        row("reliance_on_model", "share of the hybrid's gain that is lost without the model"),
        row("doubling_gain", f"{out} a forest from the second half of the items"),
    ]


def _interval(gain: Any) -> str:
    return f"{gain.value:+.4f} (95 % interval {gain.low:+.4f} to {gain.high:+.4f})"


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"= {value:.2g}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _bullet(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
