"""The four functions take the same items: as arrays, or as a set that was checked before."""

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis.inputs import in_order_of_time

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


@pytest.mark.parametrize(
    "dates",
    [
        ["05.03.2024", "16.04.2024", "01.12.2023", "06.04.2024 10:30"],
        ["05.03.2024", "06.04.2024", "01.12.2023", "06.04.2024 10:30"],  # points: the day first
        ["05.03.24", "16.04.24", "01.12.23", "06.04.24"],
        ["05/03/2024", "16/04/2024", "01/12/2023", "06/04/2024"],
        ["03/05/2024", "04/16/2024", "12/01/2023", "04/06/2024"],
        ["2024-03-05", "2024-04-16", "2023-12-01", "2024-04-06T10:30"],
        ["5 Mar 2024", "16 Apr 2024", "1 Dec 2023", "6 Apr 2024"],
        [20240305, 20240416, 20231201, 20240406],
        ["2024-W10", "2024-W16", "2023-W48", "2024-W14"],
        ["9", "11", "1", "10"],
    ],
)
def test_dates_are_read_alike_in_all_rows(dates):
    """The rows of a column are of one form: 05.03. is in March where 16.04. is in April."""
    items = CalibrationSet.check([[0.0]] * 4, [0, 1] * 2, y_proba=[0.5] * 4, caller="test")
    _, rows, moment, _ = in_order_of_time(items, dates, None)
    assert rows[:2].tolist() == [2, 0]
    assert rows[1] == 0
    assert moment.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dates", [["05/03/2024", "06/04/2024"], ["16/04/2024", "04/16/2024"]])
def test_dates_that_do_not_show_what_is_the_month_are_refused(dates, data):
    given = (data.X, data.y)
    with pytest.raises(ValueError, match=r"time holds dates such as '.*2024-03-05"):
        hetcal.diagnose(*given, y_proba=data.y_proba, time=dates * 30)
    with pytest.raises(ValueError, match="time holds dates, but 'soon' in row 59"):
        hetcal.diagnose(*given, y_proba=data.y_proba, time=["2024-03-05"] * 59 + ["soon"])
