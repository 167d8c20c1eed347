import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from hetcal import get_calibrator
from hetcal.calibration import register_calibrator, registry
from hetcal.datasets import paper_classifier, paper_split
from hetcal.paper.data import trial_data
from hetcal.paper.methods import Workbench, scores_of
from hetcal.paper.plan import everything, expected_seconds
from hetcal.paper.runner import missing, run_trials
from hetcal.paper.settings import Trial, make_trials, paper_methods
from hetcal.paper.store import Store, load_results

N_CAL = 200
FAST = ["Uncal.", "Platt", "Iso Reg"]


def moons(methods, classifiers=("DT",), seeds=(0,)):
    return make_trials("moons", methods, classifiers=classifiers, seeds=seeds, n_cal=N_CAL)


def by_method(store):
    return store.frame().set_index("method")


def test_methods_are_the_registry_with_the_paper_preset(tmp_path):
    """SWC-HH shares its forest and its hidden heterogeneity with others; alone it is the same."""
    store = Store(tmp_path)
    run_trials(moons([*paper_methods("moons"), "hh"]), store)
    split = paper_split("moons", 0, N_CAL)
    model = paper_classifier("DT").fit(split.X_train, split.y_train)
    P_cal, P_test = model.predict_proba(split.X_cal), model.predict_proba(split.X_test)
    for method, name in [("SWC-HH", "swc-hh"), ("SWC", "swc"), ("SBA-10", "sba")]:
        calibrator = get_calibrator(name, preset="paper").fit(
            split.X_cal, split.y_cal, y_proba=P_cal
        )
        Q = calibrator.predict_proba(split.X_test, y_proba=P_test)
        brier = np.mean(
            [sum((q - (np.arange(2) == y)) ** 2) for q, y in zip(Q, split.y_test, strict=True)]
        )
        found = by_method(store).loc[method]
        assert found["brier"] == pytest.approx(brier, abs=1e-10), method
        assert found["accuracy"] == np.mean(Q.argmax(axis=1) == split.y_test)
        if name == "swc-hh":
            hh = calibrator.heterogeneity_.score_samples(P_test)
            assert by_method(store).loc["hh", "hh"] == pytest.approx(hh.mean())


class ClassFrequencies(BaseEstimator):
    """A calibrator as a user may write it, without ``classes``."""

    def fit(self, X, y, *, y_proba):
        self.frequencies_ = np.bincount(y) / len(y)
        return self

    def predict_proba(self, X, *, y_proba):
        return np.tile(self.frequencies_, (len(y_proba), 1))


def test_a_calibrator_of_your_own_runs_too(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    register_calibrator("frequencies", ClassFrequencies)
    store = Store(tmp_path)
    run_trials(moons(["frequencies"]), store)
    split = paper_split("moons", 0, N_CAL)
    share = split.y_cal.mean()
    found = by_method(store).loc["frequencies", "brier"]
    assert found == pytest.approx(2 * np.mean((split.y_test - share) ** 2))


def test_the_published_moons_value(tmp_path):
    store = Store(tmp_path)
    run_trials(make_trials("moons", ["SWC", "hh"], classifiers=["DT"], seeds=[0]), store)
    assert round(by_method(store).loc["SWC", "brier"], 3) == 0.129
    assert round(by_method(store).loc["hh", "hh"], 4) == 0.0921


def test_nothing_is_run_twice(tmp_path, monkeypatch):
    store = Store(tmp_path)
    assert run_trials(moons(FAST[:2]), store) == 2
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert run_trials(moons(FAST), store) == 1
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    assert missing(moons(FAST), store) == []

    def never(*_):
        raise RuntimeError("this was run already")

    monkeypatch.setattr(Workbench, "run", never)
    assert run_trials(moons(FAST), store) == 0
    store.export(tmp_path / "csv")
    assert run_trials(moons(FAST), Store(tmp_path / "csv")) == 0


def test_a_trial_that_another_run_has_finished_is_left_alone(tmp_path, monkeypatch):
    """The other run finishes it after this one has made its list."""
    store = Store(tmp_path)
    original = Workbench.run

    def meanwhile(bench, trial):
        for other in moons(FAST):
            store.write(other, {"brier": 7.0, "seconds": 0.0, "n_test": 1})
        return original(bench, trial)

    monkeypatch.setattr(Workbench, "run", meanwhile)
    run_trials(moons(FAST), store)
    found = by_method(store)["brier"]
    assert found["Uncal."] < 2  # in flight: done twice, kept once
    assert (found[["Platt", "Iso Reg"]] == 7.0).all()
    assert len(found) == 3


def test_processes_give_what_one_process_gives(tmp_path):
    trials = moons(["Uncal.", "SWC"], classifiers=("DT", "NB"), seeds=(0, 1))
    run_trials(trials, Store(tmp_path / "one"))
    run_trials(trials, Store(tmp_path / "two"), jobs=2)
    one, two = (load_results(tmp_path / name).drop(columns="seconds") for name in ("one", "two"))
    assert one.equals(two)


def test_a_model_of_the_features_alone_is_trained_once(tmp_path):
    store = Store(tmp_path)
    run_trials(moons(["forest-x", "forest-xp"], classifiers=("DT", "NB")), store)
    table = store.frame().set_index(["method", "classifier"])
    assert table.loc[("forest-x", "DT"), "seconds"] == table.loc[("forest-x", "NB"), "seconds"]
    assert table.loc[("forest-x", "DT"), "brier"] == table.loc[("forest-x", "NB"), "brier"]
    assert table.loc[("forest-xp", "DT"), "brier"] != table.loc[("forest-xp", "NB"), "brier"]


def test_smaller_calibration_sets_are_the_first_items_of_larger_ones(tmp_path):
    small = trial_data("moons", "DT", 100, 0, Store(tmp_path))
    large = trial_data("moons", "DT", 300, 0, Store(tmp_path))
    assert np.array_equal(small.X_cal, large.X_cal[:100])
    assert np.array_equal(small.P_cal, large.P_cal[:100])
    # Kept and trained anew is the same.
    assert np.array_equal(small.P_test, trial_data("moons", "DT", 100, 0).P_test)


def test_scores_of_rows_that_do_not_sum_to_one():
    """Published histogram binning: Brier takes the rows as they are, log loss normalises them."""
    y, Q = np.array([0, 1]), np.array([[0.4, 0.4], [0.0, 0.0]])
    found = scores_of(y, Q)
    assert found["brier"] == pytest.approx((0.6**2 + 0.4**2 + 1) / 2)
    assert found["log_loss"] == pytest.approx(np.log(2))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcgrad", None)  # also where it is installed
    with pytest.raises(ImportError, match="pip install mcgrad"):
        run_trials(moons(["mcgrad"]), Store(tmp_path))


def test_reports_come_per_group(tmp_path):
    reports = []
    run_trials(moons(FAST, classifiers=("DT", "NB")), Store(tmp_path), report=reports.append)
    assert [len(done.trials) for done in reports] == [3, 3]
    assert all(done.seconds > 0 for done in reports)


def test_expected_seconds_come_from_the_nearest_trials(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for n_cal, seconds in [(100, 1.0), (200, 3.0)]:
        store.write(Trial("moons", "DT", n_cal, 0, "SWC"), {"seconds": seconds, "n_test": 1})
    wanted = {
        Trial("moons", "DT", 200, 1, "SWC"): 3.0,  # same cell
        Trial("moons", "NB", 100, 1, "SWC"): 1.0,  # same size
        Trial("moons", "NB", 500, 1, "SWC"): 2.0,  # same data set
        Trial("letter", "NB", 500, 1, "SWC"): 2.0,  # same method
        Trial("letter", "NB", 500, 1, "hybrid"): 1.0,  # unknown
        Trial("letter", "NB", 500, 1, "SWC-HH"): 1.0,
        Trial("letter", "NB", 500, 1, "hh"): 0.0,  # computed with SWC-HH
    }
    # Black boxes are kept already.
    monkeypatch.setattr(Store, "has_arrays", lambda *_: True)
    assert expected_seconds(list(wanted), store) == wanted


def test_a_black_box_is_expected_once_per_group(tmp_path):
    store = Store(tmp_path)
    trials = moons(FAST)
    before = sum(expected_seconds(trials, store).values())
    trial_data(*trials[0].group, store=store)
    assert before - sum(expected_seconds(trials, store).values()) == 2.0


def test_everything_covers_the_published_table():
    from hetcal.paper.published import published_table

    cells = {(t.dataset, t.n_cal, t.classifier, t.method, t.seed) for t in everything()}
    table = published_table()[["dataset", "n_cal", "classifier", "method"]]
    wanted = {(*row, seed) for row in table.itertuples(index=False) for seed in range(10)}
    assert wanted <= cells
    assert len(everything()) == len(set(everything()))


def test_everything_covers_the_figures():
    from hetcal.paper.figures import figure_names, figure_trials

    planned = set(everything())
    for name in figure_names():
        assert set(figure_trials(name, 10, [])) <= planned, name
