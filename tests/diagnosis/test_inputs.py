"""The four functions take the same items: as arrays, or as a set that was checked before."""

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity

pytestmark = pytest.mark.usefixtures("with_small_hybrids")

QUICK = {"methods": ["temperature", "isotonic"], "n_repeats": 1}


FACES = {
    "diagnose": hetcal.diagnose,
    "advise": lambda *given, **options: hetcal.advise(*given, **options).frame(),
    "compare": lambda *given, **options: hetcal.compare(
        *given, baselines=False, **QUICK, **options
    ).frame(),
    "learning_curve": lambda *given, **options: hetcal.learning_curve(
        *given, **QUICK, **options
    ).frame(),
}


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(60, heterogeneity=1.0, random_state=1)


@pytest.mark.parametrize("face", ["advise", "compare", "learning_curve"])
def test_a_checked_set_is_handed_on_and_says_the_same(face, data, monkeypatch):
    given = {"y_proba": data.y_proba}
    items = CalibrationSet.check(data.X, data.y, caller="test", **given)
    expected = FACES[face](data.X, data.y, **given)

    def again(cls, *args, **named):
        raise AssertionError("checked twice")

    monkeypatch.setattr(CalibrationSet, "check", classmethod(again))
    pd.testing.assert_frame_equal(FACES[face](items), expected)


@pytest.mark.parametrize("face", FACES)
def test_a_set_and_its_parts_again_are_refused(face, data):
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test")
    with pytest.raises(TypeError, match=rf"{face} got a CalibrationSet.*Pass the set alone"):
        FACES[face](items, y_proba=data.y_proba)


def test_columns_of_new_items_in_another_order_are_refused_by_both(data):
    y = np.array(["no", "yes"])[data.y]
    P = pd.DataFrame(data.y_proba, columns=["no", "yes"])
    turned = P[["yes", "no"]]
    with pytest.raises(ValueError, match="columns of y_proba_test are named"):
        hetcal.diagnose(data.X, y, y_proba=P, X_test=data.X, y_proba_test=turned)
    with pytest.raises(ValueError, match="columns of y_proba_new are named"):
        hetcal.advise(data.X, y, y_proba=P, X_new=data.X, y_proba_new=turned)
