"""Rows that come later: the last of a large table, numbered as there, with all their roles."""

import numpy as np
import pandas as pd
import pytest

from hetcal._exceptions import InputError
from hetcal.tables.later_rows import read_later
from hetcal.tables.roles import TableRoles

ROLES = TableRoles("y", ("p",), "y_proba", ("no", "yes"), weight="w", groups=("who",))


def table(n=60):
    return pd.DataFrame(
        {
            "p": np.linspace(0.1, 0.9, n).round(6).astype(object),
            "y": np.where(np.arange(n) % 3, "no", "yes").astype(object),
            "w": np.arange(n) % 4 + 1.0,
            "who": [f"g{k // 2}" for k in range(n)],
            "seen": np.arange(n).astype(object),
            "site": [f"s{k % 5}" for k in range(n)],
        }
    )


def read(frame, folder, roles=ROLES, max_rows=20, **options):
    frame.to_csv(folder / "t.csv", index=False)
    return read_later(folder / "t.csv", roles, max_rows=max_rows, **options)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("p", None, "nothing in row 55"),
        ("p", "many", "row 55"),
        ("p", -0.5, "in row 55"),
        ("w", "heavy", "row 55"),
        ("w", -1.0, "holds -1 in row 55"),
        ("who", None, "is empty in row 55"),
        ("seen", "soon", "in row 55"),
    ],
)
def test_rows_have_their_numbers_in_the_whole_table(tmp_path, column, value, told):
    frame = table().astype(object)
    frame.loc[54, column] = value
    with pytest.raises(InputError, match=told):
        read(frame, tmp_path, time="seen")


def test_the_last_rows_come_with_their_weights_groups_times_and_names(tmp_path):
    frame = table()
    frame.loc[[45, 50], "y"] = None
    frame.loc[47, "w"] = 0.0
    frame.loc[52, "p"] = None
    found = read(frame, tmp_path, time="seen", by="site", drop_missing=True)
    kept = frame.loc[np.setdiff1d(np.arange(40, 60), [45, 47, 50, 52])]
    assert (found.n_items, found.n_read) == (16, 60)
    np.testing.assert_array_equal(found.y, kept["y"])
    np.testing.assert_allclose(found.output[:, 1], kept["p"].astype(float))
    np.testing.assert_array_equal(found.weight, kept["w"])
    np.testing.assert_array_equal(found.groups, kept["who"])
    np.testing.assert_array_equal(found.times.astype(int), kept["seen"].astype(int))
    np.testing.assert_array_equal(found.names, kept["site"])
    assert found.notes == [
        "The last 20 of 60 rows; --max-rows 20 takes no more.",
        "2 rows without a label left out.",
        "1 row without a probability left out.",
    ]


def test_fractions_are_told_from_percentages_in_the_last_rows_too(tmp_path):
    percent = TableRoles("y", ("p",), "y_proba", ("no", "yes"), percent=True)
    with pytest.raises(InputError, match="fitted on percentages"):
        read(table(), tmp_path, percent)
    found = read(table().assign(p=lambda t: 100 * t["p"].astype(float)), tmp_path, percent)
    np.testing.assert_allclose(found.output[:, 1], table()["p"].astype(float)[40:])


@pytest.mark.parametrize("n", [20, 45, 60])
def test_the_last_rows_are_the_last_however_they_are_read(tmp_path, n):
    found = read(table(n), tmp_path)
    np.testing.assert_allclose(found.output[:, 1], table(n)["p"].astype(float)[-20:])
