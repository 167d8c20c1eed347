import json

import pandas as pd
import pytest

from hetcal.paper import settings
from hetcal.paper.settings import Trial, check_methods, make_trials
from hetcal.paper.store import COLUMNS, Store, default_folder, load_results

TRIAL = Trial("moons", "DT", 200, 0, "SWC")
RESULT = {"brier": 0.1, "accuracy": 0.95, "seconds": 0.5, "n_test": 500}


def test_what_is_written_is_read(tmp_path):
    store = Store(tmp_path)
    assert not store.has(TRIAL)
    assert store.read(TRIAL) is None
    store.write(TRIAL, RESULT)
    assert store.has(TRIAL)
    assert store.read(TRIAL) == RESULT
    table = load_results(tmp_path)
    assert tuple(table.columns) == COLUMNS
    row = table.iloc[0]
    assert (row["dataset"], row["method"], row["n_cal"]) == ("moons", "SWC", 200)
    assert row["brier"] == 0.1
    assert pd.isna(row["hh"])


def test_a_figure_without_a_column_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no column for \\['birer'\\]"):
        Store(tmp_path).write(TRIAL, {"birer": 0.1})


def test_every_field_and_the_version_decide_the_key(monkeypatch):
    others = [
        Trial("mnist-4v9", "DT", 200, 0, "SWC"),
        Trial("moons", "NB", 200, 0, "SWC"),
        Trial("moons", "DT", 201, 0, "SWC"),
        Trial("moons", "DT", 200, 1, "SWC"),
        Trial("moons", "DT", 200, 0, "swc"),
    ]
    keys = {TRIAL.key, *(other.key for other in others)}
    monkeypatch.setitem(settings.VERSIONS, "SWC", 2)
    keys.add(TRIAL.key)
    monkeypatch.setattr(settings, "PROTOCOL", 99)
    keys.add(TRIAL.key)
    assert len(keys) == 8


def test_keys_are_the_same_in_every_process():
    """Committed results are found by their key: pinned, so that no one changes it unknowingly."""
    assert Trial("mnist-4v9", "NB", 3000, 0, "SWC-HH").key == "a9b9a93df34e52b2"


def test_results_of_another_version_do_not_count(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.write(TRIAL, RESULT)
    store.export(tmp_path / "csv")
    monkeypatch.setitem(settings.VERSIONS, "SWC", 2)
    for folder in (tmp_path, tmp_path / "csv"):
        assert not Store(folder).has(TRIAL)
        assert load_results(folder).empty


def test_exported_tables_are_a_store(tmp_path):
    store = Store(tmp_path / "a")
    trials = make_trials("moons", ["SWC", "hh"], classifiers=["DT", "NB"], seeds=range(2))
    for number, trial in enumerate(trials):
        store.write(trial, RESULT | {"brier": 1 / (3 + number)})
    (path,) = store.export(tmp_path / "b")
    assert path.name == "moons.csv"
    again = Store(tmp_path / "b")
    assert all(again.has(trial) for trial in trials)
    assert again.read(trials[1])["brier"] == pytest.approx(1 / 4, abs=1e-9)
    pd.testing.assert_frame_equal(load_results(tmp_path / "a"), load_results(tmp_path / "b"))


def test_export_keeps_what_the_folder_has(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    other = Trial("moons", "NB", 200, 0, "SWC")
    first.write(TRIAL, RESULT)
    second.write(other, RESULT)
    first.export(tmp_path / "csv")
    second.export(tmp_path / "csv")
    second.export(tmp_path / "csv")
    assert set(load_results(tmp_path / "csv")["key"]) == {TRIAL.key, other.key}
    assert len(load_results(tmp_path / "csv")) == 2


def test_a_result_in_both_places_counts_once(tmp_path):
    store = Store(tmp_path)
    store.write(TRIAL, RESULT)
    store.export(tmp_path)
    assert len(load_results(tmp_path)) == 1


def test_an_interrupted_write_leaves_nothing_to_read(tmp_path, monkeypatch):
    store = Store(tmp_path)

    def power_cut(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", power_cut)
    with pytest.raises(KeyboardInterrupt):
        store.write(TRIAL, RESULT)
    monkeypatch.undo()
    assert not store.has(TRIAL)
    assert load_results(tmp_path).empty
    store.write(TRIAL, RESULT)
    assert len(load_results(tmp_path)) == 1


def test_a_file_tells_its_whole_setting(tmp_path):
    Store(tmp_path).write(TRIAL, RESULT)
    (path,) = tmp_path.rglob("*.json")
    kept = json.loads(path.read_text())
    assert kept["setting"] == TRIAL.setting
    assert kept["setting"]["preset"] == "paper"


def test_arrays_are_kept(tmp_path):
    store = Store(tmp_path)
    assert store.read_arrays("moons/DT") is None
    store.write_arrays("moons/DT", {"P": [1.0, 2.0]})
    assert store.read_arrays("moons/DT")["P"].tolist() == [1.0, 2.0]


def test_the_folder_is_named_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HETCAL_RESULTS", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("HETCAL_RESULTS")
    assert default_folder().name == "paper"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["SWCC"], "Did you mean 'SWC'"),
        (["Platt"], "Platt is for two classes; letter has more"),
        (["mcgrad"], "mcgrad is for two classes"),
    ],
)
def test_methods_that_cannot_be_run_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        check_methods(names, "letter")


def test_unknown_data_sets_and_classifiers_are_refused():
    with pytest.raises(ValueError, match="no experiment on 'mnist'; choose from mnist-1v7"):
        make_trials("mnist", ["SWC"])
    with pytest.raises(ValueError, match="has no classifier 'LR'; choose from DT"):
        make_trials("moons", ["SWC"], classifiers=["LR"])
