"""Tables as users have them: what is understood, what is said about it, and what is refused how."""

from __future__ import annotations

import json

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from hetcal import get_calibrator
from hetcal._exceptions import InputError
from hetcal.calibration.fitting import fitted_to
from hetcal.tables import TableRoles, read_batches, read_labelled, read_table
from hetcal.tables.class_columns import match_classes
from hetcal.tables.kinds import first_infinite

N = 120

LOANS_OF_FORTY = pd.DataFrame(
    {"age": [20, 30, 40, 50] * 10, "p": [0.2, 0.7, 0.4, 0.6] * 10, "y": [0, 1] * 20}
)


def loans(n=N, seed=0, classes=("no", "yes")) -> pd.DataFrame:
    """Return a plain table: features, probabilities that are right on average, and labels."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(len(classes)), n)
    labels = [rng.choice(len(classes), p=p) for p in P]
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "income": rng.normal(30, 5, n),
            "region": rng.choice(["north", "south east"], n),
        }
    )
    for j, name in enumerate(classes):
        table[f"p_{name}"] = P[:, j]
    table["outcome"] = np.array(classes)[labels]
    return table


def read(table, **roles):
    return read_labelled(table, **({"label": "outcome", "proba": "p_*"} | roles))


def test_a_plain_table():
    table = loans()
    labelled = read(table)
    assert labelled.classes.tolist() == ["no", "yes"]
    assert labelled.y.tolist() == table["outcome"].tolist()
    np.testing.assert_array_equal(labelled.output, table[["p_no", "p_yes"]])
    assert list(labelled.X.columns) == ["age", "income", "region"]
    assert labelled.roles.features == {"age": "number", "income": "number", "region": "text"}
    assert labelled.roles.levels == {"region": ["north", "south east"]}
    assert labelled.notes == []


@pytest.mark.parametrize("size", [N, 5 * N], ids=["all", "some"])
def test_whole_numbers_that_never_repeat_are_no_feature(size):
    table = loans()
    numbers = 40_000 + np.random.default_rng(1).permutation(size)[:N]
    labelled = read(table.assign(policy=numbers))
    assert "policy" not in labelled.X
    assert "policy (a different whole number in every row, like an id)" in labelled.notes[0]
    assert "policy" in read(table.assign(policy=numbers), features="policy,age").X
    # Amounts of money may all be different by chance; so may numbers that are not whole.
    kept = read(table.assign(cents=1000 * numbers, share=numbers / 7))
    assert {"cents", "share"} <= set(kept.X)


@pytest.mark.parametrize("name", ["sample_weight", "weights", "wt", "survey_wt", "W"])
def test_a_column_that_may_be_a_weight_is_noted(name):
    table = loans().assign(**{name: np.linspace(0.5, 2, N)})
    (note,) = read(table).notes
    assert f"{name!r} is used as a feature" in note
    assert f"--weight {name}" in note
    assert read(table, weight=name).notes == []
    assert read(loans().assign(weight_loss=1.5 - np.linspace(0, 3, N))).notes == []


@pytest.mark.parametrize("container", ["polars", "arrow", "csv", "parquet", "feather"])
def test_every_container_gives_the_same_problem(tmp_path, container):
    table = loans()
    if container == "polars":
        other = pl.from_pandas(table)
    elif container == "arrow":
        other = pa.Table.from_pandas(table)
    else:
        path = tmp_path / f"t.{container}"
        getattr(table, f"to_{container}")(path, **({"index": False} if container == "csv" else {}))
        other = read_table(path)
    mine, theirs = read(table), read(other)
    np.testing.assert_array_equal(theirs.output, mine.output)
    assert theirs.y.tolist() == mine.y.tolist()
    assert theirs.roles == mine.roles
    pd.testing.assert_frame_equal(theirs.X, mine.X)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("p_*", ["no", "yes"]),
        ("p_yes,p_no", ["yes", "no"]),
        (["p_yes", "p_no"], ["yes", "no"]),
        ("p_[ny]*", ["no", "yes"]),
    ],
)
def test_ways_to_name_the_probabilities(wanted, expected):
    assert read(loans(), proba=wanted).classes.tolist() == expected


@pytest.mark.parametrize(
    ("columns", "labels", "classes"),
    [
        (["p_10", "p_1", "p_2"], ["1", "2", "10"], ["10", "1", "2"]),
        (["yes_prob", "no_prob"], ["no", "yes"], ["yes", "no"]),
        (["yes", "no"], ["no", "yes"], ["yes", "no"]),
        (["p_new_york", "p_rome"], ["New York", "Rome"], ["New York", "Rome"]),
        (["p_1", "p_0"], ["True", "False"], ["True", "False"]),
        (["p_TRUE", "p_FALSE"], ["1", "0"], ["1", "0"]),
        (["p_None", "p_some"], ["None", "some"], ["None", "some"]),
        (["p_a", "p_b"], ["a", "NA", "b"], ["a", "b"]),
        (["p_a", "p_b", "p_c"], ["a", "b"], ["a", "b", "c"]),
        (["p_yes", "p_no"], ["yes", "yes ", "no"], ["yes", "no"]),
    ],
)
def test_classes_by_name(columns, labels, classes):
    assert match_classes(columns, labels, label_column="y").classes == classes


@given(
    st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=6, unique_by=str.casefold),
    st.text(max_size=3),
    st.text(max_size=3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=200)
def test_any_labels_behind_any_common_beginning_are_found(labels, before, after, random):
    columns = [f"{before}{label}{after}" for label in labels]
    shuffled = random.sample(labels, len(labels))
    match = match_classes(columns, shuffled, label_column="y", stars=labels)
    assert match.classes == labels
    assert all(match.of_label[label] == label for label in labels if label in match.of_label)


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        ([1.0, np.inf, -np.inf], 1),
        (["1", "none", "-inf", "Infinity", "2"], 2),
        (["info", np.inf, "inf"], 1),
        (["nine", None, "1e3"], None),
    ],
)
def test_the_first_infinite_number_is_named(cells, place):
    column = np.array(cells, dtype=object if isinstance(cells[0], str) else float)
    assert first_infinite(nw.new_series("a", column, backend="pandas")) == place


def test_a_label_that_could_be_either_of_two_columns_is_neither():
    with pytest.raises(InputError, match="Name their classes in the order of the columns"):
        match_classes(["p_A", "p_a"], [" a"], label_column="y")


def test_other_classes_list_both_sides():
    table = loans().rename(columns={"p_no": "p_paid", "p_yes": "p_default"})
    with pytest.raises(InputError, match="'no', 'yes'.*'p_paid', 'p_default'.*'paid', 'default'"):
        read(table)


def test_whole_numbers_and_truth_keep_their_type():
    table = loans(classes=("0", "1"))
    table["outcome"] = table["outcome"].astype(float)
    labelled = read(table)
    assert labelled.classes.dtype == np.int64
    assert set(labelled.y.tolist()) == {0, 1}
    table["outcome"] = table["outcome"] == 1
    assert read(table).classes.tolist() == [False, True]


def test_one_column_and_positive():
    table = loans()
    both = read(table)
    one = read(table.drop(columns="p_no"), proba="p_yes", positive="yes")
    assert one.classes.tolist() == ["no", "yes"]
    np.testing.assert_allclose(one.output, both.output, atol=1e-15)
    other = read(table, proba="p_no", positive="no", drop="p_yes")
    assert other.classes.tolist() == ["yes", "no"]
    score = table.rename(columns={"p_yes": "score"})
    with pytest.raises(InputError, match="Is 'score' the probability of 'no' or of 'yes'"):
        read(score, proba="score")
    with pytest.raises(InputError, match="--positive maybe is not a label"):
        read(score, proba="score", positive="maybe")
    three = loans(classes=("a", "b", "c"))
    with pytest.raises(InputError, match="enough for two classes, but 'outcome' holds 3"):
        read(three, proba="p_a", positive="a")


def test_zero_and_one_speak_for_themselves_with_a_word():
    table = loans(classes=("0", "1")).rename(columns={"p_1": "score"})
    table["outcome"] = table["outcome"].astype(int)
    labelled = read(table, proba="score", drop="p_0")
    assert labelled.classes.tolist() == [0, 1]
    assert "score is read as the probability of '1' (--positive)." in labelled.notes


@pytest.mark.parametrize("positive", ["1.0", "1", "True"])
def test_a_positive_label_may_be_spelled_as_the_table_does(positive):
    table = loans(classes=("0", "1"))
    table["outcome"] = table["outcome"].astype(float)
    assert read(table, proba="p_1", positive=positive, drop="p_0").classes.tolist() == [0, 1]


def test_log_odds_that_look_like_probabilities_are_questioned():
    table = loans().rename(columns={"p_yes": "score"})
    given = {"proba": None, "logits": "score", "positive": "yes", "drop": "p_no"}
    assert any("is between 0 and 1 in every row" in note for note in read(table, **given).notes)
    table["score"] = np.log(table["score"] / (1 - table["score"]))
    assert not any("between 0 and 1" in note for note in read(table, **given).notes)


def test_a_mistyped_feature_is_refused_where_features_are_not_used_too():
    with pytest.raises(InputError, match="There is no column 'incme'.*'income'"):
        read(loans(), features="incme", use_features=False)


def test_logits():
    table = loans()
    for name in ("no", "yes"):
        table[f"z_{name}"] = np.log(table[f"p_{name}"])
    labelled = read(table, proba=None, logits="z_*", drop="p_*")
    assert labelled.roles.output_kind == "logits"
    np.testing.assert_allclose(labelled.proba, table[["p_no", "p_yes"]])
    with pytest.raises(InputError, match="one of the three"):
        read(table, logits="z_*")
    with pytest.raises(InputError, match="--proba"):
        read(table, proba=None)


def test_percentages_are_noticed_and_divided_on_request():
    table = loans()
    expected = read(table).output
    table[["p_no", "p_yes"]] *= 100
    with pytest.raises(InputError, match="holds? percentages.*--percent"):
        read(table)
    np.testing.assert_allclose(read(table, percent=True).output, expected)
    with pytest.raises(InputError, match="holds? percentages.*--percent"):
        read(table, proba="p_yes", positive="yes")
    table["p_yes"] = table["p_yes"].map("{:.12f}%".format)
    table["p_no"] = table["p_no"].map("{:.12f} %".format)
    with pytest.raises(InputError, match="--percent"):
        read(table)
    np.testing.assert_allclose(read(table, percent=True).output, expected, atol=1e-12)


ONE = {"proba": "p_yes", "positive": "yes", "features": "age"}


@pytest.mark.parametrize("output", [{}, ONE], ids=["columns", "column"])
def test_fractions_are_no_percentages(output):
    table = loans()
    with pytest.raises(InputError, match="not percentages.*Leave --percent"):
        read(table, percent=True, **output)
    in_percent = table.assign(p_no=100 * table["p_no"], p_yes=100 * table["p_yes"])
    roles = TableRoles.from_dict(read(in_percent, percent=True, **output).roles.to_dict())
    with pytest.raises(InputError, match="fitted on percentages.*multiply by 100"):
        roles.items(table)
    roles.items(table.assign(p_no="99.6%", p_yes="0.4%"))
    if output:  # too few rows, or later ones of a table of percentages, may all be small
        roles.items(table.head(19))
        roles.items(table, first_row=21)


def test_percentages_of_a_rare_event_may_all_be_below_one():
    table = loans()
    table["p_yes"] = np.where(np.arange(N) % 10 == 0, 30.0, 0.5)
    roles = read(table, percent=True, **ONE).roles
    assert roles.below_one == pytest.approx(0.9)
    roles.items(table[table["p_yes"] < 1].head(60))
    with pytest.raises(InputError, match="multiply by 100"):
        roles.items(table[table["p_yes"] < 1])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([-0.1, 1.1], "'p_no' holds -0.1 in row 4.*--logits"),
        ([0.5, 0.9], "sum to 1.4 in row 4.*1 row is off"),
        ([np.nan, 0.3], "^'p_no': nothing in row 4 .*--drop-missing"),
    ],
)
def test_a_wrong_probability_is_named_by_its_row(row, said):
    table = loans()
    table.loc[3, ["p_no", "p_yes"]] = row
    with pytest.raises(InputError, match=said):
        read(table)


def test_missing_labels_and_probabilities_are_left_out_with_a_word():
    table = loans()
    table.loc[[2, 5], "outcome"] = None
    table.loc[7, "outcome"] = "  "
    table.loc[[9, 2], "p_no"] = np.nan
    labelled = read(table, drop_missing=True)
    assert labelled.n_read == N
    assert labelled.n_items == N - 4
    assert labelled.rows.tolist() == [i for i in range(N) if i not in {2, 5, 7, 9}]
    assert labelled.y.tolist() == table["outcome"].iloc[labelled.rows].tolist()
    assert "3 rows without a label left out." in labelled.notes
    assert "1 row without a probability left out." in labelled.notes


def test_ids_dates_and_text_are_left_out_with_a_word():
    table = loans()
    table.insert(0, "Unnamed: 0", range(N))
    table["customer_id"] = np.arange(N) * 7 + 1000
    table["accountId"] = np.arange(N) // 2
    table["counter"] = np.arange(N) + 1
    table["opened"] = pd.date_range("2024-01-01", periods=N)
    table["closed"] = table["opened"].dt.strftime("%Y-%m-%d %H:%M")
    table["note"] = [f"note {i}" for i in range(N)]
    table["zip"] = [f"0{i % 110:04d}" for i in range(N)]
    table["currency"] = "EUR"
    table["nothing"] = np.nan
    table["tags"] = [[1, 2]] * N
    labelled = read(table)
    assert list(labelled.X.columns) == ["age", "income", "region"]
    assert labelled.left_out == {
        "Unnamed: 0": "an id",
        "customer_id": "an id",
        "accountId": "an id, 60 different ones",
        "counter": "a row number",
        "opened": "a date",
        "closed": "a date",
        "note": "a different text in every row",
        "zip": "text with 110 different values",
        "currency": "the same in every row",
        "nothing": "empty",
        "tags": "lists or records",
    }
    assert "customer_id (an id)" in labelled.notes[0]
    remedy = "Name a column in --features to use it all the same"
    assert labelled.notes[0].endswith(f"{remedy} (a date cannot be).")
    used = list(loans().columns)
    assert read(table[[*used, "note"]]).notes[0].endswith(f"{remedy}.")
    assert read(table[[*used, "opened"]]).notes[0] == "Not used as features: opened (a date)."
    insisted = read(table, features="age,zip,counter")
    assert insisted.roles.features == {"age": "number", "zip": "text", "counter": "number"}
    with pytest.raises(InputError, match="'opened' is a date and cannot be a feature"):
        read(table, features="age,opened")


def test_features_drop_groups_weight_by_and_time():
    table = loans()
    table["patient"] = np.arange(N) // 4
    table["w"] = np.linspace(0.5, 2, N)
    table["day"] = pd.date_range("2024-01-01", periods=N)
    labelled = read(table, groups="patient", weight="w", by="region", time="day", drop="inc*")
    assert list(labelled.X.columns) == ["age", "region"]
    assert labelled.groups.tolist() == [str(i // 4) for i in range(N)]
    np.testing.assert_array_equal(labelled.weight, table["w"])
    assert labelled.by["region"].tolist() == table["region"].tolist()
    assert len(labelled.time) == N
    items = labelled.items
    assert items is labelled.items  # checked once
    assert np.bincount(items.groups).tolist() == [4] * (N // 4)
    np.testing.assert_array_equal(items.weight, labelled.weight)
    fitted = fitted_to(get_calibrator("temperature"), items)  # which has no use for groups
    assert fitted.classes_.tolist() == ["no", "yes"]
    with pytest.raises(InputError, match="'outcome' cannot be a feature"):
        read(table, features="age,outcome")
    table.loc[4, "patient"] = np.nan
    with pytest.raises(InputError, match=r"'patient' \(groups\) is empty in row 5"):
        read(table, groups="patient")
    table.loc[[0, 2], "outcome"] = None  # rows that are left out are counted all the same
    with pytest.raises(InputError, match=r"'patient' \(groups\) is empty in row 5 \("):
        read(table, groups="patient")


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ({"label": "Outcom"}, r"no column 'Outcom' \(label\). Did you mean 'outcome'\?"),
        ({"proba": "q_*"}, "No column matches 'q_\\*'.*'age'"),
        ({"proba": "p_no,p_ye"}, "Did you mean 'p_yes'"),
        ({"features": "agge"}, "Did you mean 'age'"),
        ({"groups": "patient"}, r"no column 'patient' \(groups\)"),
        ({"proba": "*o*"}, "is named as the label and is among"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(roles, said):
    with pytest.raises(InputError, match=said):
        read(loans(), **roles)


def test_copies_and_giveaways_get_a_word():
    table = pd.concat([loans(), loans().head(30)], ignore_index=True)
    alike = "30 rows are like an earlier one in all used columns"
    assert any(alike in note for note in read(table).notes)
    unused = table.assign(number=np.arange(len(table)))  # tells them apart, and is not read
    assert any(alike in note for note in read(unused, drop="number").notes)
    table["item"] = np.arange(len(table)) % N
    assert not any("earlier one" in note for note in read(table, groups="item").notes)
    rounded = loans().assign(p_no=lambda t: t["p_no"].round(1), p_yes=lambda t: 1 - t["p_no"])
    few = read(rounded, features="region")  # so that equal rows are natural
    assert not any("earlier one" in note for note in few.notes)
    table["repaid"] = (table["outcome"] == "no").astype(int)
    assert any("'repaid' tells the label" in note for note in read(table, drop="item").notes)


@pytest.mark.parametrize("n", [0, 1])
def test_no_row_and_one_row(n):
    with pytest.raises(InputError, match="no rows|1 of 1 rows can be used|One column|two classes"):
        read(loans().head(n))


def test_one_class_and_too_many_labels():
    table = loans()
    with pytest.raises(InputError, match="Every row of 'outcome' holds 'yes'"):
        read(table.assign(outcome="yes"))
    many = loans(n=1500).assign(outcome=np.random.default_rng(0).random(1500))
    with pytest.raises(InputError, match="1,500 different values"):
        read(many)


def test_no_features_left_is_said():
    labelled = read(loans()[["p_no", "p_yes", "outcome"]])
    assert labelled.X is None
    assert "only global methods" in labelled.notes[-1]


def test_roles_go_through_json_and_read_text_like_the_table(tmp_path):
    table = loans().astype({"age": float})
    table["member"] = np.arange(N) % 3 == 0
    table.loc[3, ["income", "region"]] = None
    labelled = read(table)
    roles = TableRoles.from_dict(json.loads(json.dumps(labelled.roles.to_dict(), sort_keys=True)))
    assert roles == labelled.roles
    assert list(roles.features) == list(labelled.X.columns)
    table.to_csv(tmp_path / "t.csv", index=False)
    (batch,) = read_batches(tmp_path / "t.csv")
    items = roles.items(batch)
    pd.testing.assert_frame_equal(items.X, labelled.X)
    np.testing.assert_array_equal(items.output, labelled.output)
    assert np.flatnonzero(items.missing_features).tolist() == [3]


def test_later_tables_that_do_not_fit():
    table = loans()
    roles = read(table).roles
    with pytest.raises(
        InputError, match="lacks the column 'income'.*Did you mean 'incone'.*--drop income"
    ):
        roles.items(table.rename(columns={"income": "incone"}))
    # A column that is needed itself is no candidate, however near its name.
    with pytest.raises(
        InputError, match=r"lacks the column 'p_no'.*fitted with\. The table has [^.]*\.$"
    ):
        roles.items(table.drop(columns="p_no"))
    strange = table.assign(region="west")
    assert roles.items(strange).unknown_category.all()
    strange.loc[2, "p_no"] = np.nan
    with pytest.raises(InputError, match="nothing in row 103 .*--leave-missing"):
        roles.items(strange, first_row=101)
    items = roles.items(strange, leave_missing=True)
    assert np.flatnonzero(~items.known).tolist() == [2]
    np.testing.assert_allclose(items.output.sum(axis=1), 1)
    with pytest.raises(InputError, match="'age' should hold numbers, but row 1 .* holds 'old'"):
        roles.items(table.assign(age="old"))


CELLS = st.sampled_from(
    [
        "0",
        "1",
        "0.5",
        "1.0",
        "50",
        "-1",
        "1e400",
        "nan",
        "NA",
        "None",
        "inf",
        "a",
        "A",
        "50%",
        "true",
        "False",
        "2024-01-01",
        "007",
        "ü",
        "[r]",
        "1_0",
        "",
        " ",
        "a ",
        '"',
        "0,5",
        "line\nbreak",
        "\x00",
    ]
)
LABELS = st.sampled_from(["a", "b", "a", "b", "a", "b", "", "NA", "a "])
PAIRS = st.sampled_from(
    [("0.5", "0.5"), ("1", "0"), ("0.2", "0.8"), ("0.333", "0.667"), ("", "0.5"), ("nan", "nan")]
)


@given(st.lists(st.tuples(LABELS, PAIRS, CELLS, CELLS), max_size=8), st.booleans())
@settings(max_examples=150)
def test_any_cells_give_a_problem_or_a_line_about_them(tmp_path_factory, rows, drop_missing):
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    start = [("a", ("0.5", "0.5"), "1", "a"), ("b", ("1", "0"), "2", "b")]
    cells = [(label, *pair, x, z) for label, pair, x, z in start + rows]
    columns = ["label", "p_a", "p_b", "x", "z"]
    pd.DataFrame(cells, columns=columns, dtype=object).to_csv(path, index=False)
    try:
        labelled = read(read_table(path), label="label", drop_missing=drop_missing)
    except InputError:
        event("refused")
        return
    event("read")
    assert labelled.output.shape == (labelled.n_items, 2)
    np.testing.assert_allclose(labelled.output.sum(axis=1), 1, atol=0.02)
    assert set(labelled.y.tolist()) <= set(labelled.classes.tolist())
    # The same rows, read from a later table, give the same items.
    (batch,) = read_batches(path)
    items = labelled.roles.items(batch, leave_missing=True)
    np.testing.assert_array_equal(items.output[labelled.rows], labelled.output)
    if labelled.X is not None:
        kept = items.X.iloc[labelled.rows].reset_index(drop=True)
        pd.testing.assert_frame_equal(kept, labelled.X)


def test_labels_of_a_later_table():
    table = pd.DataFrame(
        {"p_1": [0.2, 0.7, 0.4], "p_0": [0.8, 0.3, 0.6], "y": [0.0, 1.0, 0.0], "x": [1, 2, 3]}
    )
    roles = read_labelled(table, label="y", proba="p_*").roles
    assert roles.labels(table.drop(columns="y")) is None
    y, known = roles.labels(pd.DataFrame({"y": ["1", "", " 0 "]}))
    assert known.tolist() == [True, False, True]
    assert y[known].tolist() == [1, 0]
    with pytest.raises(InputError, match="holds '2'"):
        roles.labels(pd.DataFrame({"y": ["1", "2"]}))


def test_an_infinite_feature_is_named_by_row_and_column():
    table = pd.DataFrame(
        {"a": [1.0, 2.0, 5.0] * 4, "p": [0.2, 0.7, 0.6] * 4, "y": ["no", "yes", "yes"] * 4}
    )
    columns = {"label": "y", "proba": "p", "positive": "yes", "features": "a"}
    roles = read_labelled(table, **columns).roles
    later = pd.DataFrame({"a": ["1", "-inf"], "p": ["0.5", "0.5"]})
    with pytest.raises(InputError, match="'a' holds an infinite number in row 102 "):
        roles.items(later, first_row=101)
    table.loc[7, "a"] = np.inf
    with pytest.raises(InputError, match="'a' holds an infinite number in row 8 of those with a"):
        read_labelled(table, **columns)


@pytest.mark.parametrize("cell", [np.inf, "-inf"])
def test_an_infinite_feature_without_a_label_is_refused_as_it_would_be_later(cell):
    table = pd.DataFrame(
        {"a": [1.0, 2.0, 5.0] * 4, "p": [0.2, 0.7, 0.6] * 4, "y": ["no", "yes", None] * 4}
    )
    columns = {"label": "y", "proba": "p", "positive": "yes"}
    table["a"] = table["a"].astype(object if isinstance(cell, str) else float)
    roles = read_labelled(table, **columns).roles
    table.loc[8, "a"] = cell
    for read_it in (lambda: read_labelled(table, **columns), lambda: roles.items(table)):
        with pytest.raises(InputError, match="'a' holds an infinite number in row 9 "):
            read_it()
    read_labelled(table, **columns, drop="a")
    table.loc[8, "a"] = None
    assert read_labelled(table, **columns).n_items == 8


def test_weights_and_groups_follow_the_rows_that_are_kept():
    table = loans().assign(w=np.arange(N) + 1.0, patient=np.arange(N) // 3)
    table.loc[[0, 7], "outcome"] = None
    labelled = read(table, weight="w", groups="patient", by="region")
    kept = np.setdiff1d(np.arange(N), [0, 7])
    assert labelled.rows.tolist() == kept.tolist()
    np.testing.assert_array_equal(labelled.weight, kept + 1.0)
    assert labelled.groups.tolist() == [str(row // 3) for row in kept]
    assert labelled.by["region"].tolist() == table["region"][kept].tolist()


@pytest.mark.parametrize(("held", "told"), [(None, "nothing"), (-5.0, "-5"), ("inf", "inf")])
def test_a_weight_that_is_none_is_told_with_its_column_and_row(held, told):
    table = loans().assign(w=1.0).astype({"w": object})
    table.loc[3, "outcome"] = None
    table.loc[3, "w"] = "not known"  # left out, as the row is
    table.loc[7, "w"] = held
    with pytest.raises(InputError, match=rf"'w' \(weight\) holds {told} in row 8 \(counted from 1"):
        read(table, weight="w")


def test_a_new_level_of_any_column_is_noticed():
    table = loans().assign(colour=np.where(np.arange(N) % 2, "red", "blue"))
    roles = read(table).roles
    assert list(roles.levels) == ["region", "colour"]
    new = table.head(4).copy()
    new.loc[0, "region"] = "west"
    new.loc[1, "colour"] = "green"
    new.loc[2, ["region", "colour"]] = ["west", "green"]
    assert roles.items(new).unknown_category.tolist() == [True, True, True, False]
    new.loc[:1, ["region", "colour"]] = None  # missing is not unknown
    items = roles.items(new)
    assert items.unknown_category.tolist() == [False, False, True, False]
    assert items.missing_features.tolist() == [True, True, False, False]


def test_a_later_label_that_could_be_either_class_is_refused():
    table = loans(classes=("Yes", "yes"))
    roles = read(table).roles
    y, known = roles.labels(pd.DataFrame({"outcome": ["yes", "Yes", None, " yes "]}))
    assert y[known].tolist() == ["yes", "Yes", "yes"]
    with pytest.raises(InputError, match="holds 'YES'"):
        roles.labels(pd.DataFrame({"outcome": ["YES"]}))
    clear = read(loans(classes=("no", "yes"))).roles
    assert clear.labels(pd.DataFrame({"outcome": ["YES", " No"]}))[0].tolist() == ["yes", "no"]


@pytest.mark.parametrize("container", ["pandas", "polars", "parquet"])
def test_a_named_column_of_vectors_is_a_feature_per_component(tmp_path, container):
    table = loans()
    table["text"] = [[age / 70, 1.0] for age in table["age"]]
    given = pl.from_pandas(table) if container == "polars" else table
    if container == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
        given = read_table(tmp_path / "t.parquet")
    labelled = read(given, features="region,text")
    assert list(labelled.X.columns) == ["region", "text[0]", "text[1]"]
    np.testing.assert_allclose(labelled.X["text[0]"], table["age"] / 70)
    roles = TableRoles.from_dict(json.loads(json.dumps(labelled.roles.to_dict())))
    pd.testing.assert_frame_equal(roles.items(given).X, labelled.X)
    with pytest.raises(InputError, match="vectors of 3 numbers.*fitted with 2"):
        roles.items(table.assign(text=[[1.0, 2.0, 3.0]] * N))
    with pytest.raises(InputError, match="must hold lists of numbers only|holds no vectors"):
        read(table.assign(text=[["a", "b"]] * N), features="text")
    unnamed = read(given)
    assert "text" in unnamed.left_out
    assert "Name a column in --features" in unnamed.notes[0]


@pytest.mark.parametrize("values", [["0,5", "12,25"], [f"{v},5" for v in range(40)]])
def test_numbers_with_a_comma_are_no_levels(values):
    table = LOANS_OF_FORTY.assign(income=values * (40 // len(values)))
    labelled = read_labelled(table, label="y", proba="p")
    assert labelled.left_out == {"income": "numbers with a comma"}
    assert any("'income'" in note and "--decimal ," in note for note in labelled.notes)
    named = read_labelled(table, label="y", proba="p", features="income")
    assert list(named.X.columns) == ["income"]  # who insists is obeyed


@pytest.mark.parametrize("values", [["5 %", "12.5%"], [f"{v}.5 %" for v in range(40)]])
def test_numbers_with_a_percent_sign_are_no_levels(values):
    table = LOANS_OF_FORTY.assign(usage=values * (40 // len(values)))
    labelled = read_labelled(table, label="y", proba="p")
    assert labelled.left_out == {"usage": "numbers with a % sign"}
    named = read_labelled(table, label="y", proba="p", features="usage")
    assert list(named.X.columns) == ["usage"]  # who insists is obeyed, and told
    for found in (labelled, named):
        (note,) = [note for note in found.notes if "without the sign" in note]
        assert "'usage'" in note
    mixed = read_labelled(table.assign(usage=["5 %", "some"] * 20), label="y", proba="p")
    assert "usage" in mixed.X.columns


def test_labels_that_differ_in_spelling_only_are_one_class_with_a_single_column_too():
    table = LOANS_OF_FORTY.assign(y=["No", "Yes", "NO", "yes "] * 10)
    labelled = read_labelled(table, label="y", proba="p", positive="yes")
    assert labelled.classes.tolist() == ["NO", "Yes"]
    assert labelled.y.tolist() == ["NO", "Yes"] * 20
    assert any("differ in spelling only" in note for note in labelled.notes)
    with pytest.raises(InputError, match="holds 3: 'maybe', 'no', 'yes'"):
        read_labelled(table.assign(y=["no", "yes", "maybe", "yes"] * 10), label="y", proba="p")


def test_nothing_but_zero_and_one_is_said_to_be_no_probability():
    for table, expected in ((LOANS_OF_FORTY, 0), (LOANS_OF_FORTY.assign(p=[0, 1, 1, 1] * 10), 1)):
        labelled = read_labelled(table, label="y", proba="p")
        assert sum("nothing but 0 and 1" in note for note in labelled.notes) == expected


def test_probabilities_that_are_named_as_logits_are_noticed():
    with pytest.raises(InputError, match=r"'p_no', 'p_yes' hold probabilities.*with --proba"):
        read_labelled(loans(), label="outcome", logits="p_*")


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ("loans.csv", r"read_table\(path\)"),
        (pl.LazyFrame({"p": [0.5], "y": [1]}), r"table\.collect\(\)"),
        ({"p": [0.5], "y": [1]}, r"pandas\.DataFrame"),
    ],
)
def test_what_is_no_table_says_how_to_make_one(table, remedy):
    with pytest.raises(TypeError, match=remedy):
        read_labelled(table, label="y", proba="p")


def test_columns_of_the_same_name_and_columns_named_by_numbers():
    named = LOANS_OF_FORTY.rename(columns={"age": 0})
    labelled = read_labelled(named, label="y", proba="p")
    assert list(labelled.X.columns) == ["0"]
    np.testing.assert_array_equal(labelled.roles.items(named).X, labelled.X)
    both = LOANS_OF_FORTY.assign(**{"0": 1.0}).rename(columns={"age": 0})
    for table in (LOANS_OF_FORTY.rename(columns={"age": "p"}), both):
        with pytest.raises(InputError, match="two columns named '[p0]'"):
            read_labelled(table, label="y", proba="p")
