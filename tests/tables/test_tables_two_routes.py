"""Tables by two routes: in one piece and in batches, as fractions and percentages."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from hetcal._exceptions import InputError
from hetcal.batches.additions import Additions
from hetcal.batches.model import LoadedModel
from hetcal.metrics import accuracy, brier_score, expected_calibration_error, log_loss
from hetcal.tables.class_columns import ClassMatch
from hetcal.tables.groups import group_names
from hetcal.tables.kinds import as_table
from hetcal.tables.large_tables import draw_labelled
from hetcal.tables.roles import TableRoles
from hetcal.tables.stream_scores import StreamScores
from hetcal.tables.writing import TableWriter


def log(n=300):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    happened = np.where(rng.random(n) < p, "yes", "no").astype(object)
    return pd.DataFrame({"p": p, "outcome": happened, "w": rng.uniform(1, 9, n)})


def overall(table, folder, **roles):
    table.to_csv(folder / "t.csv", index=False)
    given = {"label": "outcome", "proba": "p", "positive": "yes", "use_features": False}
    labelled = draw_labelled(folder / "t.csv", max_rows=50, batch_rows=70, **given, **roles)
    return labelled.drawn["overall"]


def test_weights_of_a_large_table_are_those_of_the_rows_that_count(tmp_path):
    table = log()
    table.loc[::3, "outcome"] = None
    known = table.dropna()
    p = known["p"]
    expected = brier_score(known["outcome"], p, sample_weight=known["w"], classes=["no", "yes"])
    assert overall(table, tmp_path, weight="w")["brier"] == pytest.approx(expected)


@pytest.mark.parametrize("held", [None, -5.0])
def test_a_weight_that_is_none_is_refused_in_rows_that_are_not_drawn_too(tmp_path, held):
    table = log()
    for row in (0, 150, 299):  # the scores over all rows would be wrong without a word
        spoilt = table.copy()
        spoilt.loc[row, "w"] = held
        with pytest.raises(InputError, match=rf"'w' \(weight\) .* row {row + 1} "):
            overall(spoilt, tmp_path, weight="w")


def test_percentages_of_a_large_table_are_divided(tmp_path):
    table = log()
    plain = overall(table, tmp_path)
    percent = overall(table.assign(p=100 * table["p"]), tmp_path, percent=True)
    for name in ("brier", "log_loss", "accuracy"):
        assert percent[name] == pytest.approx(plain[name])


class Calibrator:
    """Says of each item what it was told, and where the truth may lie."""

    def predict_proba(self, X, *, y_proba):
        return np.array(y_proba)

    def predict_interval(self, X, *, y_proba, level):
        return y_proba - 0.1, y_proba + 0.2


def test_rows_without_a_probability_have_no_interval():
    roles = TableRoles("y", ("p",), "y_proba", ("no", "yes"))
    model = LoadedModel(Calibrator(), roles, {"fit": {}}, {})
    adding = Additions(model, columns="q,interval,flags", leave_missing=True)
    new = adding.to(pd.DataFrame({"p": [0.3, None, 0.6]}))
    np.testing.assert_allclose(new["q_yes"], [0.3, np.nan, 0.6])
    np.testing.assert_allclose(new["q_yes_low"], [0.2, np.nan, 0.5])
    np.testing.assert_allclose(new["q_yes_high"], [0.5, np.nan, 0.8])
    np.testing.assert_allclose(new["q_no_low"], [0.6, np.nan, 0.3])
    assert new["flags"].tolist() == ["", "no_probability", ""]


def test_nothing_is_null_in_a_file_with_types(tmp_path):
    with TableWriter(tmp_path / "t.parquet") as table:
        for _ in range(2):
            table.write({"q": np.array([0.5, np.nan]), "label": np.array(["a", None], object)})
    read = pq.read_table(tmp_path / "t.parquet")
    assert [read[name].null_count for name in ("q", "label")] == [2, 2]


def test_a_stream_has_the_scores_of_its_rows_also_where_the_impossible_happens():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 40)
    P[:4] = np.eye(3)[[0, 0, 1, 2]]
    labels, weight = np.array(list("abc"))[rng.integers(0, 3, 40)], rng.uniform(0.5, 2.0, 40)
    scores = StreamScores(3)
    for rows in (slice(0, 7), slice(7, 40)):
        scores.update(labels[rows].tolist(), P[rows], weight[rows])
    found = scores.overall(ClassMatch(list("abc"), {name: name for name in "abc"}))
    for name, metric in (("brier", brier_score), ("log_loss", log_loss), ("accuracy", accuracy)):
        assert found[name] == pytest.approx(metric(labels, P, sample_weight=weight))
    ece = expected_calibration_error(labels, P, sample_weight=weight, binning="equal-width")
    assert found["ece"] == pytest.approx(ece)


def test_groups_of_two_columns_are_pairs():
    table = pd.DataFrame({"ward": ["a", "ab", "a"], "bed": ["bc", "c", "bc"]})
    names = group_names(as_table(table), ["ward", "bed"])
    assert names[0] == names[2] != names[1]
