"""Texts of the library show control and invisible characters that names and labels bring along."""

from __future__ import annotations

import json

from hetcal import compare
from hetcal._printable import printable, printable_json
from hetcal.calibration import Uncalibrated
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import VERDICTS, Advice, Certainty
from hetcal.diagnosis.checks import AdviceWarning
from hetcal.diagnosis.verdicts import State

EVIL = "\x1b]0;OWNED\x07\x1b[2J\x9b31m\x7f\u202eseitil\u2066\u200b\ufeff"
SHOWN = r"\x1b]0;OWNED\x07\x1b[2J\x9b31m\x7f\u202eseitil\u2066\u200b\ufeff"


def test_what_is_shown_and_what_stays():
    assert printable(EVIL) == SHOWN
    assert printable("a\nb\tc") == "a\nb\\tc"
    assert printable("a\nb", keep="") == r"a\nb"
    assert printable("\udc80 \U000e0041 \u3164") == r"\udc80 \U000e0041 \u3164"
    ordinary = "Zoë naïve 日本　語 한국어 עברית العربية 👩‍🔬 1️⃣ 🇩🇪 می‌خواهم €½ \xa0 ﷺ"
    assert printable(ordinary) == ordinary
    assert printable("ad\u200dmin") == r"ad\u200dmin"


def test_json_says_the_same_without_unseen_characters():
    text = json.dumps({EVIL: [EVIL, "日本", "\U000e0041"]}, ensure_ascii=False)
    assert printable_json(text).isprintable()
    assert json.loads(printable_json(text)) == json.loads(text)


def test_advice():
    told = AdviceWarning("few-items", f"Look at {EVIL} first.")
    advice = Advice(
        VERDICTS[-1], "uncalibrated", "q_new = p_new", Certainty(State.OPEN), (told,), 5, 0.02, 0.1
    )
    assert "".join(str(advice).split("\n")).isprintable()
    assert SHOWN in str(advice)


def test_comparison():
    data = make_hidden_heterogeneity(60, random_state=0)
    found = compare(
        data.X, data.y, y_proba=data.y_proba, methods={EVIL: Uncalibrated()}, baselines=False, cv=2
    )
    assert "".join(repr(found).split("\n")).isprintable()
    assert SHOWN in repr(found)
