"""The commands with columns that mean something else than they seem to."""

import numpy as np
import pandas as pd
import pytest

from hetcal.persistence import describe

N = 200


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a score, a confidence in two classes, and one in three."""
    folder = tmp_path_factory.mktemp("meaning")
    rng = np.random.default_rng(0)
    said, age = rng.uniform(0.02, 0.98, N).round(4), rng.integers(20, 70, N)
    income = np.where(rng.random(N) < said, ">50K", "<=50K")
    table = pd.DataFrame({"age": age, "score": said, "income": income})
    table.to_csv(folder / "scores.csv", index=False)
    top = np.where(said > 0.5, ">50K", "<=50K")
    sure = np.maximum(said, 1 - said)
    table.drop(columns="score").assign(said=top, sure=sure).to_csv(folder / "two.csv", index=False)
    truth = rng.choice(["bill", "parcel", "other"], N)
    sure = rng.uniform(0.4, 1, N).round(4)
    answer = np.where(rng.random(N) < sure, truth, np.where(truth == "other", "bill", "other"))
    columns = {"set": rng.choice(["a", "b"], N), "question": rng.integers(0, 80, N), "age": age}
    pd.DataFrame(columns | {"said": answer, "sure": sure, "truth": truth}).to_csv(
        folder / "three.csv", index=False
    )
    return folder


CONFIDENT = ("--predicted", "said", "--confidence", "sure")


@pytest.mark.parametrize("command", ["fit", "diagnose", "compare"])
def test_a_column_of_the_other_class_ends_at_the_door(call, place, tmp_path, capsys, command):
    roles = ("--label", "income", "--proba", "score", "--positive", "<=50K")
    out = ("-o", tmp_path / "out")
    assert call(command, place / "scores.csv", *roles, *out) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "Then pass --positive '>50K'" in shown
    assert "pass --accept-order" in shown
    assert not (tmp_path / "out").exists()


def test_who_insists_is_obeyed_and_the_file_says_so(call, place, tmp_path, capsys):
    roles = ("--label", "income", "--proba", "score", "--positive", "<=50K", "--accept-order")
    out = tmp_path / "m.hetcal"
    assert call("fit", place / "scores.csv", *roles, "--method", "platt", "-o", out) == 0
    assert capsys.readouterr().err.count("wrong way round") == 1
    assert "wrong way round" in describe(out)["metadata"]["fit"]["notes"][-1]
    quick = ("--methods", "platt", "--no-baselines", "--folds", "2", "--jobs", "1")
    assert call("compare", place / "scores.csv", *roles, *quick) == 0
    assert capsys.readouterr().err.count("wrong way round") == 1


def test_a_confidence_in_two_classes_gives_the_calibrator_of_the_probability(
    call, place, tmp_path, capsys
):
    for name, table, roles in (
        ("p", "scores.csv", ("--proba", "score", "--positive", ">50K")),
        ("c", "two.csv", CONFIDENT),
    ):
        out = tmp_path / f"{name}.hetcal"
        options = ("--label", "income", *roles, "--method", "swc", "-q", "-o", out)
        assert call("fit", place / table, *options) == 0
        result = tmp_path / f"{name}.csv"
        assert call("apply", out, place / table, "--columns", "q,class", "-q", "-o", result) == 0
    p, c = (pd.read_csv(tmp_path / f"{name}.csv") for name in "pc")
    np.testing.assert_allclose(p["q_>50K"], c["q_>50K"], atol=1e-9)
    assert (p["predicted_class"] == c["predicted_class"]).all()


def test_a_changed_label_is_another_one_than_was_predicted(call, place, tmp_path):
    """Also where the stated confidence in the prediction is below one half."""
    table = pd.read_csv(place / "two.csv")
    table.loc[::5, "sure"] = 0.3
    table.to_csv(tmp_path / "unsure.csv", index=False)
    roles = ("--label", "income", *CONFIDENT, "--method", "temperature", "-q")
    assert call("fit", tmp_path / "unsure.csv", *roles, "-o", tmp_path / "m.hetcal") == 0
    assert (
        call(
            "apply", tmp_path / "m.hetcal", tmp_path / "unsure.csv", "-q", "-o", tmp_path / "o.csv"
        )
        == 0
    )
    written = pd.read_csv(tmp_path / "o.csv")
    changed = written["flags"].fillna("").str.contains("label_changed")
    np.testing.assert_array_equal(changed, written["predicted_class"] != written["said"])
    assert changed[::5].any()


def test_confidence_that_says_nothing_of_being_right_is_noted_so(call, place, tmp_path, capsys):
    table = pd.read_csv(place / "three.csv")
    table["sure"] = np.random.default_rng(0).uniform(size=len(table))
    table.to_csv(tmp_path / "vague.csv", index=False)
    roles = ("--label", "truth", *CONFIDENT, "--method", "temperature")
    assert call("fit", tmp_path / "vague.csv", *roles, "-o", tmp_path / "m.hetcal") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "'sure' does not rank right before wrong answers better than chance (AUC 0." in said


def test_with_three_classes_every_command_is_about_being_right(call, place, tmp_path, capsys):
    out, table = tmp_path / "m.hetcal", place / "three.csv"
    roles = ("--label", "truth", *CONFIDENT, "--groups", "set,question")
    assert call("fit", table, *roles, "--method", "swc", "-o", out) == 0
    shown = capsys.readouterr()
    assert "200 items, 2 features, 2 classes (wrong, right)" in shown.out
    assert "the probability that 'said' is right" in " ".join(shown.err.split())
    assert call("inspect", out) == 0
    shown = capsys.readouterr().out
    assert "the probability that 'said' is right" in shown
    assert "set, question" in shown
    assert call("apply", out, table, "-q", "-o", tmp_path / "out.csv") == 0
    written = pd.read_csv(tmp_path / "out.csv")
    assert {"q_wrong", "q_right"} <= set(written.columns)
    assert "predicted_class" not in written.columns
    np.testing.assert_allclose(written["q_wrong"] + written["q_right"], 1)
    crossed = (written["q_right"] > 0.5) != (written["sure"] > 0.5)
    flags = written["flags"].fillna("")
    np.testing.assert_array_equal(flags.str.contains("crosses_half"), crossed)
    assert crossed.any()
    assert not flags.str.contains("label_changed").any()
    capsys.readouterr()
    new = tmp_path / "new.csv"
    pd.read_csv(table).assign(age=lambda rows: rows["age"] + 1).to_csv(new, index=False)
    assert call("monitor", out, new, "--calibration", table) == 0
    shown = capsys.readouterr().out
    assert "class right" in shown
    assert call("apply", out, place / "two.csv", "-q", "-o", tmp_path / "no.csv") == 0  # not needed
    quick = ("--methods", "platt", "--no-baselines", "--folds", "2", "--jobs", "1")
    assert call("compare", table, *roles, *quick) == 0


def test_a_drawn_table_by_pairs_of_groups_is_watched_with_the_same_rows(call, place, tmp_path):
    out, table = tmp_path / "m.hetcal", place / "three.csv"
    roles = ("--label", "truth", *CONFIDENT, "--groups", "set,question", "--max-rows", "90")
    assert call("fit", table, *roles, "--method", "swc", "-q", "-o", out) == 0
    new = tmp_path / "new.csv"
    pd.read_csv(table).assign(age=lambda rows: rows["age"] + 1).to_csv(new, index=False)
    assert call("monitor", out, new, "--calibration", table, "-q") == 0
