"""The tables of ``hetcal monitor``, and one command line for the first run and the later ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.batches import load_model
from hetcal.persistence import describe

FIT = ("--label", "y", "--proba", "p_*", "--method", "swc", "--quiet")


def make_rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n).round(6)
    X = rng.normal(size=(n, 2)).round(6)
    y = (rng.random(n) < p).astype(int)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "p_0": 1 - p, "p_1": p, "y": y})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a table, a model of it, new rows, and a model of some of its rows."""
    from hetcal.cli import main

    place = tmp_path_factory.mktemp("monitor")
    rows = make_rows(120, 0)
    rows.insert(0, "who", [f"c{i // 2}" for i in range(120)])
    rows["y"] = rows["y"].astype("Int64")
    rows.loc[[3, 40], "y"] = None
    rows.to_csv(place / "cal.csv", index=False)
    rows.to_parquet(place / "cal.parquet", index=False)
    make_rows(60, 1).to_csv(place / "new.csv", index=False)
    few = ("--max-rows", "50", "--seed", "7")
    for name, more in (
        ("m", ("--drop", "who")),
        ("few", (*few, "--drop", "who")),
        ("groups", (*few, "--groups", "who")),
    ):
        words = ("fit", place / "cal.csv", *FIT, *more, "-o", place / f"{name}.hetcal")
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert not ended.value.code
    return place


def said(capsys) -> tuple[dict, str]:
    captured = capsys.readouterr()
    return json.loads(captured.out) if captured.out else {}, " ".join(captured.err.split())


@pytest.mark.parametrize("spelled", [("0.0", "1.0"), (" 0", "1.0"), ("False", "TRUE")])
def test_labels_are_read_as_fit_reads_them(call, place, tmp_path, capsys, spelled):
    new = pd.read_csv(place / "new.csv")
    assert call("monitor", place / "m.hetcal", place / "new.csv", "--json") == 0
    expected = said(capsys)[0]["labels"]
    new.assign(y=np.array(spelled)[new["y"]]).to_csv(tmp_path / "new.csv", index=False)
    assert call("monitor", place / "m.hetcal", tmp_path / "new.csv", "--json") == 0
    facts = said(capsys)[0]
    assert facts["labels"] == expected
    assert expected["n"] == 60
    assert not any("no class" in note for note in facts["notes"])


def test_labels_of_no_class_are_counted(call, place, tmp_path, capsys):
    new = pd.read_csv(place / "new.csv").astype({"y": object})
    new.loc[:9, "y"], new.loc[10:12, "y"] = "yes", "NA"
    new.to_csv(tmp_path / "new.csv", index=False)
    assert call("monitor", place / "m.hetcal", tmp_path / "new.csv", "--json") == 0
    facts = said(capsys)[0]
    assert facts["labels"]["n"] == 47
    assert any("10 of 57 labels in 'y' are no class" in note for note in facts["notes"])
    assert call("monitor", place / "m.hetcal", tmp_path / "new.csv") == 0
    assert "10 of 57 labels" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("model", ["few", "groups"])
@pytest.mark.parametrize("table", ["cal.csv", "cal.parquet"])
def test_rows_that_fit_has_drawn_are_drawn_again(call, place, capsys, model, table):
    words = ("monitor", place / f"{model}.hetcal", place / "new.csv", "--json")
    assert call(*words, "--calibration", place / table) == 0
    facts = said(capsys)[0]
    assert facts["scores"] == ["support", "distance"]
    assert 30 <= facts["reference"]["items"] <= 50


def test_another_table_is_no_calibration_table(call, place, tmp_path, capsys):
    rows = pd.read_csv(place / "cal.csv")
    rows[::-1].to_csv(tmp_path / "turned.csv", index=False)
    rows.assign(y=1 - rows["y"]).to_csv(tmp_path / "flipped.csv", index=False)
    rows.assign(a=rows["a"] + (rows.index == 5)).to_csv(tmp_path / "changed.csv", index=False)
    for name in ("turned.csv", "flipped.csv", "changed.csv"):
        words = ("--calibration", tmp_path / name)
        assert call("monitor", place / "m.hetcal", place / "new.csv", *words) == 2
        _, err = said(capsys)
        assert "118 items that the model was fitted on" in err
        assert "--held-out" in err
        assert "reference=" not in err


def test_files_without_a_fingerprint_know_their_table_by_its_labels(call, place, tmp_path):
    model = hetcal.load(place / "m.hetcal")
    metadata = describe(place / "m.hetcal")["metadata"]
    assert len(metadata["fit"].pop("digest")) == 64
    hetcal.save(model, tmp_path / "old.hetcal", metadata=metadata)
    rows = pd.read_csv(place / "cal.csv")
    rows.assign(a=rows["a"] + (rows.index == 5)).to_csv(tmp_path / "changed.csv", index=False)
    words = ("monitor", tmp_path / "old.hetcal", place / "new.csv", "-q")
    assert call(*words, "--calibration", tmp_path / "changed.csv") == 0


@pytest.mark.parametrize("form", ["parquet", "feather", "csv"])
def test_the_table_is_known_again_in_every_format(call, tmp_path, capsys, form):
    """Numbers, truth values, text with gaps, text labels, a single column of probabilities."""
    rng = np.random.default_rng(0)
    rows = (
        make_rows(80, 3)
        .drop(columns="p_0")
        .assign(
            y=lambda t: np.array(["nein", "j\u00e4"])[t["y"]],
            flag=rng.random(80) < 0.5,
            count=rng.integers(0, 9, 80),
            city=rng.choice(["K\u00f6ln", "Bonn", None], 80),
        )
    )
    rows.to_csv(tmp_path / "cal.csv", index=False)
    write = {"parquet": rows.to_parquet, "feather": rows.to_feather, "csv": rows.to_csv}[form]
    write(tmp_path / f"same.{form}", **({"index": False} if form == "csv" else {}))
    roles = ("--label", "y", "--proba", "p_1", "--positive", "j\u00e4", "--method", "sbaw", "-q")
    assert call("fit", tmp_path / "cal.csv", *roles, "-o", tmp_path / "m.hetcal") == 0
    words = ("monitor", tmp_path / "m.hetcal", tmp_path / "new.csv", "-q")
    rows.assign(a=rows["a"] + 1).to_csv(tmp_path / "new.csv", index=False)
    assert call(*words, "--calibration", tmp_path / f"same.{form}") == 0
    # The rows themselves are no new ones, whatever their order.
    capsys.readouterr()
    same = tmp_path / f"same.{form}"
    assert call("monitor", tmp_path / "m.hetcal", same, "--history", tmp_path / "h.hetcal") == 2
    assert f"All rows of {same} are rows that the model was fitted on" in said(capsys)[1]
    assert not (tmp_path / "h.hetcal").exists()


@pytest.mark.parametrize(("n_known", "code"), [(118, 2), (20, 0), (3, 0), (0, 0)])
def test_rows_that_the_model_was_fitted_on_are_no_new_ones(
    call, place, tmp_path, capsys, n_known, code
):
    """In any order, among others, and without labels."""
    known = pd.read_csv(place / "cal.csv").dropna().sample(n_known, random_state=0)
    new = pd.concat([make_rows(80, 5), known]).sample(frac=1, random_state=0)
    new.drop(columns=["y", "who"], errors="ignore").to_csv(tmp_path / "t.csv", index=False)
    words = (place / "m.hetcal", tmp_path / "t.csv")
    assert call("monitor", *words, "--json") == code
    facts, err = said(capsys)
    notes = err if code else " ".join(facts["notes"])
    assert ("the model was fitted on" in notes) == (n_known >= 20)
    assert (f"About {100 * n_known / len(new):.0f} % of the rows" in notes) == (n_known >= 20)
    assert call("apply", *words, "-o", tmp_path / "o.csv") == 0
    told = said(capsys)[1]
    assert ("fitted on: it has learned from their labels" in told) == (n_known >= 20)


def test_rows_of_the_fit_are_not_held_out(call, place, capsys):
    words = ("monitor", place / "m.hetcal", place / "new.csv", "--held-out", place / "cal.csv")
    assert call(*words) == 2
    assert "fitted on. Leave them out" in said(capsys)[1]


def test_rows_with_few_values_are_equal_by_chance(call, tmp_path, capsys):
    """New rows that only look like those of the fit are counted without a word."""
    rng = np.random.default_rng(0)
    for name, n in (("cal", 300), ("new", 3000)):
        p = rng.integers(1, 10, n) / 10
        table = {"a": rng.integers(0, 5, n), "p": p, "y": (rng.random(n) < p).astype(int)}
        pd.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
    roles = ("--label", "y", "--proba", "p", "--method", "swc", "-q")
    assert call("fit", tmp_path / "cal.csv", *roles, "-o", tmp_path / "m.hetcal") == 0
    capsys.readouterr()
    assert call("monitor", tmp_path / "m.hetcal", tmp_path / "new.csv", "--json") == 0
    assert not any("fitted on" in note for note in said(capsys)[0]["notes"])


def test_rows_of_a_refresh_are_no_new_ones_either(call, place, tmp_path, capsys):
    make_rows(50, 7).to_csv(tmp_path / "later.csv", index=False)
    model = tmp_path / "m2.hetcal"
    assert call("refresh", place / "m.hetcal", tmp_path / "later.csv", "-q", "-o", model) == 0
    capsys.readouterr()
    for table in (tmp_path / "later.csv", place / "cal.csv"):
        assert call("monitor", model, table) == 2
        assert "are rows that the model was fitted on" in said(capsys)[1]
    assert call("inspect", model) == 0
    assert "learned_rows" not in capsys.readouterr().out


def test_a_made_up_sample_of_rows_is_refused(call, place, tmp_path, capsys):
    model = hetcal.load(place / "m.hetcal")
    metadata = describe(place / "m.hetcal")["metadata"]
    good = metadata["learned_rows"]
    for bad in (3, good | {"hashes": "xyz"}, good | {"n_distinct": 0}, good | {"hashes": 5}):
        hetcal.save(model, tmp_path / "bad.hetcal", metadata=metadata | {"learned_rows": bad})
        assert call("monitor", tmp_path / "bad.hetcal", place / "new.csv") == 1
        assert "Make it again with hetcal fit" in said(capsys)[1]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("table", {"output": []}),
        ("table", {"output": "p_yes"}),
        ("table", {"output": [7]}),
        ("table", {"classes": [["no"], ["yes"]]}),
        ("table", {"percent": "no"}),
        ("table", {"below_one": "nan"}),
        ("table", {"features": [["age", ["number"]]]}),
        ("table", {"features": [["age", "vector"]]}),
        ("table", {"features": [[3, "number"]]}),
        ("table", {"levels": {"region": 7}}),
        ("table", {"levels": []}),
        ("table", {"groups": [None]}),
        ("table", {"weight": 1.5}),
        ("table", {"predicted": ["said"]}),
        ("fit", {"low_support": "nan"}),
        ("fit", {"drawn": [100, 0]}),
        ("fit", {"drawn": {"max_rows": 100, "seed": "0"}}),
        ("fit", None),
    ],
)
def test_what_a_file_says_about_its_columns_and_fit_is_checked(
    call, place, tmp_path, capsys, part, change
):
    metadata, bad = describe(place / "m.hetcal")["metadata"], tmp_path / "bad.hetcal"
    changed = 7 if change is None else metadata[part] | change
    hetcal.save(hetcal.load(place / "m.hetcal"), bad, metadata=metadata | {part: changed})
    assert call("monitor", bad, place / "new.csv") == 1
    assert "Make it again with hetcal fit" in said(capsys)[1]


def test_one_command_line_serves_every_run(call, place, tmp_path, capsys):
    past = tmp_path / "h.hetcal"
    words = ("monitor", place / "m.hetcal", place / "new.csv", "--history", past)
    same = ("--calibration", place / "cal.csv", "--rate", "0.05", "--json")
    for seen in (60, 120):
        assert call(*words, *same) == 0
        facts, _ = said(capsys)
        assert (facts["seen"], facts["rate"]) == (seen, 0.05)
    assert any("--calibration makes no new one" in note for note in facts["notes"])
    for more, told in (
        (("--rate", "0.01"), "begun with --rate 0.05; got 0.01"),
        (("--alarm-rate", "0.5"), "begun with --alarm-rate 0.01; got 0.5"),
        (("--dependence", "7"), "begun with --dependence 1; got 7"),
        (("--held-out", place / "new.csv"), "begun without --held-out"),
        (("--held-out", "a.csv", "--calibration", "b.csv"), "not both"),
    ):
        assert call(*words, *more) == 2
        assert told in said(capsys)[1]
    assert hetcal.load(past).n_seen_ == 120


def test_calibration_cannot_be_added_to_a_history(call, place, tmp_path, capsys):
    words = ("monitor", place / "m.hetcal", place / "new.csv", "--history", tmp_path / "h.hetcal")
    assert call(*words) == 0
    capsys.readouterr()
    assert call(*words, "--calibration", place / "cal.csv") == 2
    assert "begun without --calibration" in said(capsys)[1]


def test_a_decimal_comma(call, place, tmp_path, capsys):
    for name in ("new", "cal"):
        pd.read_csv(place / f"{name}.csv").to_csv(
            tmp_path / f"{name}.csv", index=False, decimal=",", sep=";"
        )
    facts = []
    for folder, more in ((place, ()), (tmp_path, ("--decimal", ","))):
        words = ("--calibration", folder / "cal.csv", "--json", *more)
        assert call("monitor", place / "m.hetcal", folder / "new.csv", *words) == 0
        facts.append(said(capsys)[0])
    assert facts[0] == facts[1]


def test_a_history_is_no_model(call, place, tmp_path, capsys):
    past = tmp_path / "h.hetcal"
    assert call("monitor", place / "m.hetcal", place / "new.csv", "--history", past) == 0
    capsys.readouterr()
    for words in (
        ("monitor", past, place / "new.csv"),
        ("apply", past, place / "new.csv", "-o", tmp_path / "out.csv"),
    ):
        assert call(*words) == 2
        assert "h.hetcal is no calibrator but what a monitor has counted" in said(capsys)[1]


def test_the_users_file_is_named_in_errors(place, tmp_path):
    path = tmp_path / "mine.hetcal"
    hetcal.save(load_model(place / "m.hetcal").calibrator, path)
    with pytest.raises(ValueError, match="saved from Python") as told:
        hetcal.batches.BatchCalibrator(path)
    assert str(told.value).startswith(f"{path} does not say")


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")  # flipped on purpose
def test_a_model_with_flipped_labels_is_another_one(call, place, tmp_path, capsys):
    """Support does not depend on labels, where the similarity does not."""
    rows = pd.read_csv(place / "cal.csv").dropna().drop(columns="who")
    words = (
        "monitor",
        tmp_path / "0.hetcal",
        place / "new.csv",
        "--history",
        tmp_path / "h.hetcal",
    )
    for flip in (0, 1):
        y = rows["y"].to_numpy(dtype=int) ^ flip
        swc = hetcal.SimilarityCalibrator("rbf").fit(
            rows[["a", "b"]], y, y_proba=rows[["p_0", "p_1"]].to_numpy()
        )
        metadata = describe(place / "m.hetcal")["metadata"]
        hetcal.save(swc, tmp_path / f"{flip}.hetcal", metadata=metadata)
    assert call(*words) == 0
    assert call(*words) == 0
    capsys.readouterr()
    assert call(words[0], tmp_path / "1.hetcal", *words[2:]) == 2
    assert "another calibrator" in said(capsys)[1]


def test_an_extended_history_goes_on(call, place, tmp_path, capsys):
    past, model = tmp_path / "h.hetcal", place / "m.hetcal"
    words = (place / "new.csv", "--history", past, "--json")
    assert call("monitor", model, *words, "--calibration", place / "cal.csv") == 0
    said(capsys)
    monitor, more = hetcal.load(past), make_rows(40, 5)
    output = more[["p_0", "p_1"]].to_numpy()
    monitor.extend(more[["a", "b"]], more["y"], y_proba=output)
    hetcal.save(monitor, past)
    assert call("monitor", model, *words) == 0
    facts, _ = said(capsys)
    assert facts["seen"] == 120
    assert any("extended in Python to 158" in note for note in facts["notes"])
    metadata = describe(model)["metadata"]
    hetcal.save(monitor.calibrator_, tmp_path / "m2.hetcal", metadata=metadata)
    assert call("monitor", tmp_path / "m2.hetcal", *words) == 0
    facts, _ = said(capsys)
    assert facts["seen"] == 180
    assert not any("extended in Python" in note for note in facts["notes"])
    platt = ("--method", "platt", "-o", tmp_path / "platt.hetcal")
    assert call("fit", place / "cal.csv", *FIT[:4], *platt, "--quiet") == 0
    for other in (place / "few.hetcal", tmp_path / "platt.hetcal"):
        capsys.readouterr()
        assert call("monitor", other, *words) == 2
        assert "another calibrator" in said(capsys)[1]


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """Return a folder with tables of three months, in which rows come by the hour."""
    place = tmp_path_factory.mktemp("later")
    for seed, name in enumerate(("jan", "feb", "mar")):
        rows = make_rows(100, 10 + seed)
        hours = pd.date_range(f"2026-0{seed + 1}-01", periods=100, freq="h")
        rows["seen"] = np.random.default_rng(seed).permutation(hours.strftime("%Y-%m-%dT%H:%M"))
        rows["shop"] = np.where(np.arange(100) % 3, "north", "south")
        rows.loc[5, "y"] = None
        rows.to_csv(place / f"{name}.csv", index=False)
    make_rows(60, 1).assign(shop="north").to_csv(place / "new.csv", index=False)
    return place


def features_of(path, keep) -> np.ndarray:
    return pd.read_csv(path).dropna()[["a", "b"]].to_numpy()[keep]


def watched_items(monkeypatch) -> list:
    """Return a list that gets the features and names that monitors are fitted to."""
    seen, fit = [], hetcal.SupportMonitor.fit

    def noted(self, X=None, **more):
        seen.append((np.asarray(X), more.get("by")))
        return fit(self, X, **more)

    monkeypatch.setattr(hetcal.SupportMonitor, "fit", noted)
    return seen


def refreshed_model(call, capsys, later, *options, by_tables=False):
    """Fit to January, then refresh by February and by March."""
    model, tables = later / "model.hetcal", []
    roles = ("--drop", "seen,shop", "--method", "swc", "-q", "--overwrite")
    assert call("fit", later / "jan.csv", *FIT[:4], *roles, "-o", model) == 0
    for name in ("jan", "feb"):
        tables += ["--calibration", later / f"{name}.csv"]
        newer = later / ("feb.csv" if name == "jan" else "mar.csv")
        before = tables if by_tables else ()
        words = (model, newer, *options, *before, "-o", model, "--overwrite", "-q")
        assert call("refresh", *words) == 0
    capsys.readouterr()
    return model


def calibration(place, *names):
    return [word for name in names for word in ("--calibration", place / f"{name}.csv")]


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")
@pytest.mark.parametrize("by_tables", [False, True])
def test_a_refreshed_model_is_watched_by_the_rows_of_its_window(
    call, later, monkeypatch, capsys, by_tables
):
    model = refreshed_model(call, capsys, later, "--window", "120", by_tables=by_tables)
    seen = watched_items(monkeypatch)
    words = ("monitor", model, later / "new.csv")
    assert call(*words, "--json") == 0
    assert any("--calibration feb.csv --calibration mar.csv" in n for n in said(capsys)[0]["notes"])
    window = [features_of(later / "feb.csv", slice(-21, None)), features_of(later / "mar.csv", ...)]
    page = ("--html", model.with_suffix(".html"))
    for names in (("feb", "mar"), ("jan", "feb", "mar")):
        assert call(*words, *calibration(later, *names), *page, "--by", "shop", "--json") == 0
        assert said(capsys)[0]["scores"] == ["support", "distance"]
        X, by = seen[-1]
        np.testing.assert_array_equal(X, np.vstack(window))
        assert by.tolist()[:4] == ["north", "north", "south", "north"]
    for names, told in (
        (("mar", "feb"), "mar.csv does not hold the rows of feb.csv"),
        (("mar",), "does not hold the 120 items"),
        (("jan", "jan", "feb", "mar"), "does not hold the 120 items"),
    ):
        assert call(*words, *calibration(later, *names)) == 2
        err = said(capsys)[1]
        assert told in err
        assert "Pass --calibration feb.csv --calibration mar.csv as it was" in err


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")
def test_rows_of_a_window_of_time_are_found_wherever_they_stand(
    call, place, later, monkeypatch, capsys
):
    model = refreshed_model(call, capsys, later, "--time", "seen", "--window", "30 days")
    seen = watched_items(monkeypatch)
    names = calibration(later, "feb", "mar")
    assert call("monitor", model, place / "new.csv", *names, "--quiet") == 0
    times = pd.concat([pd.read_csv(later / f"{n}.csv").dropna() for n in ("feb", "mar")])
    when = pd.to_datetime(times["seen"])
    stays = (when.max() - when < pd.Timedelta("30 days")).to_numpy()
    assert 110 < stays.sum() < 190
    np.testing.assert_array_equal(seen[-1][0], times[["a", "b"]].to_numpy()[stays])


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")
def test_what_a_file_says_about_its_tables_is_checked(call, place, later, tmp_path, capsys):
    model = refreshed_model(call, capsys, later)
    bad, metadata = tmp_path / "bad.hetcal", describe(model)["metadata"]
    assert [table["source"] for table in metadata["items"]] == ["jan.csv", "feb.csv", "mar.csv"]
    for change in (
        {"runs": [[0, 10**15]]},
        {"runs": [[50, 99], [0, 50]]},
        {"runs": 7},
        {"runs": [[1000, 1099]]},
        {"runs": [[10**30, 10**30 + 99]]},
        {"runs": [["0", "99"]]},
        {"runs": [[0.0, 99.0]]},
        {"runs": [[False, 99]]},
        {"max_rows": "all"},
        {"max_rows": True},
        {"more": 1},
        None,
    ):
        first = metadata["items"][0] | (change or {})
        fit = metadata["fit"] if change else {}
        changed = metadata | {"items": [first, *metadata["items"][1:]], "fit": fit}
        hetcal.save(hetcal.load(model), bad, metadata=changed)
        words = ("monitor", bad, place / "new.csv", *calibration(later, "jan", "feb", "mar"))
        assert call(*words) == 1
        assert "is not what hetcal refresh writes" in said(capsys)[1]
        bad.unlink()
    last = metadata["items"][2] | {"runs": [[1, 100]]}  # of 99 rows that can be learned from
    changed = metadata | {"items": [*metadata["items"][:2], last]}
    hetcal.save(hetcal.load(model), bad, metadata=changed)
    assert call(*words) == 1
    assert "is not what hetcal refresh writes" in said(capsys)[1]


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")
def test_a_model_that_does_not_know_its_tables_asks_for_one(call, later, tmp_path, capsys):
    model, old = refreshed_model(call, capsys, later), tmp_path / "old.hetcal"
    metadata = describe(model)["metadata"]
    del metadata["items"]
    hetcal.save(hetcal.load(model), old, metadata=metadata)
    names = ("jan", "feb", "mar")
    pd.concat([pd.read_csv(later / f"{name}.csv") for name in names]).to_csv(
        tmp_path / "all.csv", index=False
    )
    words = ("monitor", old, later / "new.csv")
    assert call(*words, "--json") == 0
    note = said(capsys)[0]["notes"][-1]
    assert "--calibration TABLE (one table of all rows that the model holds), and" in note
    assert call(*words, *calibration(later, *names)) == 2
    assert "Pass one --calibration TABLE of all rows" in said(capsys)[1]
    assert call(*words, *calibration(tmp_path, "all"), "--quiet") == 0


def test_rows_of_weight_0_are_no_items_of_a_hybrid(call, place, tmp_path, capsys):
    rows = pd.read_csv(place / "cal.csv").drop(columns="who").dropna()
    rows["w"] = np.where(np.arange(len(rows)) % 10, 1.0, 0.0)
    rows.to_csv(tmp_path / "cal.csv", index=False)
    model = tmp_path / "hybrid.hetcal"
    roles = ("--weight", "w", "--method", "hybrid", "--quiet", "-o", model)
    assert call("fit", tmp_path / "cal.csv", *FIT[:4], *roles) == 0
    words = ("monitor", model, place / "new.csv", "--calibration", tmp_path / "cal.csv", "--json")
    capsys.readouterr()
    assert call(*words) == 0
    assert said(capsys)[0]["scores"] == ["support", "distance"]
