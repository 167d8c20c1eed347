"""Tables whose columns mean something else than they seem to: confidences, orders, groups."""

import numpy as np
import pandas as pd
import pytest

from hetcal._exceptions import InputError
from hetcal.tables import TableRoles, draw_labelled, draw_rows, read_labelled

N = 120
RNG = np.random.default_rng(0)
SAID = RNG.uniform(0.02, 0.98, N)
Y = np.where(RNG.random(N) < SAID, ">50K", "<=50K")
AGE = RNG.integers(20, 70, N)


def scores(**more):
    return pd.DataFrame({"age": AGE, "score": SAID, "income": Y} | more)


def answers(spell=str):
    """Return the same model, as a predicted class with a confidence."""
    top = np.where(SAID > 0.5, ">50K", "<=50K")
    sure = np.maximum(SAID, 1 - SAID)
    return pd.DataFrame({"age": AGE, "said": [*map(spell, top)], "sure": sure, "income": Y})


def topics(n=N, seed=0):
    """Return answers among three classes."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(["bill", "parcel", "other"], n)
    sure = rng.uniform(0.4, 1, n)
    wrong = np.where(truth == "other", "bill", "other")
    said = np.where(rng.random(n) < sure, truth, wrong)
    return pd.DataFrame({"words": rng.integers(1, 99, n), "said": said, "sure": sure, "t": truth})


CONFIDENT = {"predicted": "said", "confidence": "sure"}


# -- the other class -----------------------------------------------------------------------------


def test_a_column_of_the_other_class_is_refused_with_what_to_type():
    with pytest.raises(InputError, match=r"AUC is 0\.\d\d \(p < 0.001\).*pass --positive '>50K'"):
        read_labelled(scores(), label="income", proba="score", positive="<=50K")
    labelled = read_labelled(scores(), label="income", proba="score", positive=">50K")
    assert labelled.classes.tolist() == ["<=50K", ">50K"]


def test_who_insists_gets_the_column_as_it_stands_and_a_note():
    given = {"label": "income", "proba": "score", "positive": "<=50K"}
    labelled = read_labelled(scores(), **given, accept_order=True)
    np.testing.assert_allclose(labelled.proba[:, 1], SAID)
    assert any("wrong way round" in note for note in labelled.notes)


def test_a_column_of_log_odds_of_the_other_class_is_refused_too():
    table = scores(score=np.log(SAID / (1 - SAID)))
    with pytest.raises(InputError, match="pass --positive '>50K'"):
        read_labelled(table, label="income", logits="score", positive="<=50K")


def test_a_few_groups_are_no_proof():
    table = scores(customer=np.arange(N) // 15)
    given = {"label": "income", "proba": "score", "positive": "<=50K"}
    read_labelled(table, **given, groups="customer")


def test_columns_that_are_named_the_wrong_way_round_are_refused():
    table = pd.DataFrame({"age": AGE, "p_<=50K": SAID, "p_>50K": 1 - SAID, "income": Y})
    with pytest.raises(InputError, match="pass --classes '>50K,<=50K'"):
        read_labelled(table, label="income", proba="p_*")
    labelled = read_labelled(table, label="income", proba="p_*", classes=">50K,<=50K")
    assert labelled.classes.tolist() == [">50K", "<=50K"]


# -- classes that the columns are not named after --------------------------------------------------


def risk():
    names = {"prob_class0": 1 - SAID, "prob_class1": SAID}
    return pd.DataFrame({"age": AGE} | names | {"risk": np.where(Y == ">50K", "high", "low")})


def test_classes_are_named_in_the_order_of_the_columns():
    with pytest.raises(InputError, match="in the order of the columns, for example --classes high"):
        read_labelled(risk(), label="risk", proba="prob_*")
    with pytest.raises(InputError, match="pass --classes low,high"):  # as the example, blindly
        read_labelled(risk(), label="risk", proba="prob_*", classes="high,low")
    for classes in ("low, high", ["Low", "High"], ["low", "high"]):
        labelled = read_labelled(risk(), label="risk", proba="prob_*", classes=classes)
        assert [name.lower() for name in labelled.classes] == ["low", "high"]
        np.testing.assert_allclose(labelled.proba[:, 1], SAID)


def test_of_a_single_column_the_second_class_is_meant():
    labelled = read_labelled(
        risk(), label="risk", proba="prob_class1", classes="low,high", drop="prob_class0"
    )
    assert labelled.classes.tolist() == ["low", "high"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"classes": "low"}, "--classes names 1 classes"),
        ({"classes": "low,low"}, "each class once"),
        ({"classes": "low,medium"}, "holds 'high', which --classes does not name"),
        ({"classes": "low,high", "proba": "prob_class1", "positive": "low"}, "Pass one"),
        ({"classes": "a,b,c", "proba": "prob_class1"}, "for a single column"),
    ],
)
def test_classes_that_do_not_fit_are_refused(given, error):
    with pytest.raises(InputError, match=error):
        read_labelled(risk(), **({"label": "risk", "proba": "prob_*"} | given))


def test_a_class_that_no_row_has_is_kept_and_numbers_stay_numbers():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 60)
    table = pd.DataFrame(P, columns=["a", "b", "c"]).assign(y=np.where(P[:, 0] > 0.3, 10, 30))
    labelled = read_labelled(table, label="y", proba="a,b,c", classes=[10, 20, 30])
    assert labelled.classes.tolist() == [10, 20, 30]
    assert labelled.y.dtype.kind == "i"
    assert any("'20'" in note for note in labelled.notes)


@pytest.mark.parametrize("positive", ["1", 1, 1.0, np.int64(1), True, np.True_])
@pytest.mark.parametrize("kind", [int, bool])
def test_the_positive_class_may_be_a_number(positive, kind):
    table = scores()
    table["y"] = (table.pop("income") == ">50K").astype(kind)
    labelled = read_labelled(table, label="y", proba="score", positive=positive)
    assert labelled.classes.tolist() == [0, 1]
    np.testing.assert_allclose(labelled.proba[:, 1], table["score"])
    with pytest.raises(InputError, match="--positive 2 is not a label"):
        read_labelled(table, label="y", proba="score", positive=2)


# -- a predicted class with a confidence -----------------------------------------------------------


@pytest.mark.parametrize("spell", [str, str.lower, lambda text: f" {text} "])
def test_with_two_classes_it_is_the_same_as_a_probability(spell):
    labelled = read_labelled(answers(spell), label="income", **CONFIDENT)
    expected = read_labelled(scores(), label="income", proba="score", positive=">50K")
    np.testing.assert_allclose(labelled.output, expected.output)
    assert labelled.classes.tolist() == expected.classes.tolist()
    assert list(labelled.X.columns) == ["age"]
    assert (labelled.roles.predicted, labelled.roles.being_right) == ("said", False)


def test_labels_of_minus_one_and_one_are_not_the_same():
    number = {">50K": 1, "<=50K": -1}
    table = answers()
    table = table.assign(**{name: table[name].map(number) for name in ("income", "said")})
    labelled = read_labelled(table, label="income", **CONFIDENT)
    assert labelled.classes.tolist() == [-1, 1]
    np.testing.assert_allclose(labelled.proba[:, 1], SAID)


def test_with_three_classes_being_right_is_calibrated_and_that_is_said():
    table = topics()
    labelled = read_labelled(table, label="t", **CONFIDENT)
    assert labelled.classes.tolist() == ["wrong", "right"]
    assert (labelled.y == np.where(table["t"] == table["said"], "right", "wrong")).all()
    np.testing.assert_allclose(labelled.proba[:, 1], table["sure"])
    assert list(labelled.X.columns) == ["words", "said"]
    assert "the probability that 'said' is right" in labelled.notes[0]


def test_later_tables_are_read_the_same_way_from_what_is_stored():
    for table, label in ((answers(), "income"), (topics(), "t")):
        labelled = read_labelled(table, label=label, groups="said,sure", **CONFIDENT)
        roles = TableRoles.from_dict(labelled.roles.to_dict())
        assert roles == labelled.roles
        again = roles.items(table)
        np.testing.assert_allclose(again.output, labelled.output)
        labels, known = roles.labels(table)
        assert known.all()
        assert labels.tolist() == labelled.y.tolist()
    with pytest.raises(InputError, match="predicts 'maybe'; the classes are"):
        read_labelled(answers(), label="income", **CONFIDENT).roles.items(
            answers().assign(said="maybe")
        )


def test_files_from_before_have_groups_by_one_name():
    roles = read_labelled(topics(), label="t", **CONFIDENT).roles.to_dict()
    for key in ("predicted", "being_right"):
        del roles[key]
    assert TableRoles.from_dict(roles | {"groups": "words"}).groups == ("words",)
    assert TableRoles.from_dict(roles | {"groups": None}).groups == ()


REFUSED = {
    "half": ({"predicted": "said"}, "go together"),
    "both": (CONFIDENT | {"proba": "sure"}, "one of the three"),
    "positive": (CONFIDENT | {"positive": ">50K"}, "Leave them out"),
    "classes": (CONFIDENT | {"classes": "a,b"}, "Leave them out"),
    "no prediction": (CONFIDENT | {"predicted": "age"}, "are none of the labels"),
    "never below one half": (
        {"proba": "sure", "positive": ">50K"},
        "--predicted said --confidence sure",
    ),
    "which class": ({"proba": "sure"}, "--predicted COLUMN --confidence sure"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_confidence_is_refused_and_what_is_one_is_noticed(name):
    given, error = REFUSED[name]
    with pytest.raises(InputError, match=error):
        read_labelled(answers(), label="income", **given)


def test_a_single_column_for_three_classes_leads_to_the_confidence():
    with pytest.raises(InputError, match="--predicted COLUMN --confidence sure"):
        read_labelled(topics(), label="t", proba="sure")


def test_the_probability_of_one_class_is_no_confidence():
    table = answers().assign(sure=SAID)
    with pytest.raises(InputError, match="--proba sure --positive '>50K'"):
        read_labelled(table, label="income", **CONFIDENT)


def test_a_confidence_that_is_higher_where_the_model_is_wrong_is_refused():
    table = topics()
    table["sure"] = 1 - table["sure"]
    with pytest.raises(InputError, match="the probability of being wrong"):
        read_labelled(table, label="t", **CONFIDENT)
    read_labelled(table, label="t", **CONFIDENT, accept_order=True)


def test_rows_without_a_prediction_are_refused_or_left_out():
    table = topics().astype({"said": object})
    table.loc[[3, 5], "said"] = None
    with pytest.raises(InputError, match=r"'said': nothing in rows 4, 6"):
        read_labelled(table, label="t", **CONFIDENT)
    assert read_labelled(table, label="t", **CONFIDENT, drop_missing=True).n_items == N - 2


def test_a_drawn_table_is_read_as_the_whole_one_would_be(tmp_path):
    table = topics(600)
    table["t"], table["said"] = (table[c].replace("parcel", "bill") for c in ("t", "said"))
    table.loc[0, "t"] = "lost"  # a third class, in one row that is hardly drawn
    table.to_csv(tmp_path / "t.csv", index=False)
    drawn = draw_labelled(tmp_path / "t.csv", max_rows=100, label="t", **CONFIDENT)
    assert drawn.roles.being_right
    right = np.mean(table["t"] == table["said"])
    counts = drawn.drawn["overall"]["class_counts"]
    assert counts["right"] == round(right * 600)
    table.iloc[1:].to_csv(tmp_path / "t.csv", index=False)
    drawn = draw_labelled(tmp_path / "t.csv", max_rows=100, label="t", **CONFIDENT)
    assert drawn.classes.tolist() == ["bill", "other"]
    whole = read_labelled(table.iloc[1:], label="t", **CONFIDENT)
    truth = whole.y[:, None] == whole.classes
    brier = ((whole.proba - truth) ** 2).sum(axis=1).mean()
    assert drawn.drawn["overall"]["brier"] == pytest.approx(brier)


# -- groups by several columns ---------------------------------------------------------------------


def test_two_columns_name_a_group_together():
    table = scores(dataset=["a", "b"] * 60, question=np.arange(N) // 4)
    labelled = read_labelled(
        table, label="income", proba="score", positive=">50K", groups="dataset,question"
    )
    pairs = list(zip(table["dataset"], table["question"], strict=True))
    together = set(zip(pairs, labelled.groups, strict=True))
    assert len(together) == len(set(pairs)) == len(set(labelled.groups)) == 60
    assert list(labelled.X.columns) == ["age"]
    assert labelled.roles.groups == ("dataset", "question")


def test_a_missing_value_in_a_column_of_groups_is_refused_by_name():
    table = scores(dataset=["a", "b"] * 60, question=[None, *range(N - 1)])
    with pytest.raises(InputError, match=r"Column 'question' \(groups\) is empty in row 1"):
        read_labelled(
            table, label="income", proba="score", positive=">50K", groups=["dataset", "question"]
        )


def test_pairs_are_drawn_whole():
    table = pd.DataFrame({"a": np.arange(400) % 10, "b": np.arange(400) % 4})
    sample = draw_rows([table.iloc[:250], table.iloc[250:]], 100, groups=["a", "b"])
    drawn = sample.table.groupby(["a", "b"]).size()
    assert (drawn == table.groupby(["a", "b"]).size()[drawn.index]).all()
    assert 0 < len(drawn) < 20
