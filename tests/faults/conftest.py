"""A small table with two calibrators, and one estimator of each kind."""

from __future__ import annotations

import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
from tests.cli.conftest import make_loans
from tests.faults.commands import TRIAL, mounted
from tests.faults.estimators import CASES

import hetcal
from hetcal.cli import main
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.paper.store import Store
from hetcal.similarity import ForestProximity

RESULT = {"brier": 0.2, "seconds": 1.0, "n_test": 10}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with tables, calibrators and a store that every command can work on."""
    place = tmp_path_factory.mktemp("made")
    make_loans(60).to_csv(place / "loans.csv", index=False)
    make_loans(60, seed=1).drop(columns=["outcome", "opened"]).to_csv(
        place / "new.csv", index=False
    )
    for name, method in (("swc", "swc"), ("global", "temperature")):
        arguments = "fit {t} --label outcome --proba p_* -q --method {m} -o {o}.hetcal"
        with pytest.raises(SystemExit) as ended:
            main(arguments.format(t=place / "loans.csv", m=method, o=place / name).split())
        assert not ended.value.code
    monitor = ["monitor", place / "swc.hetcal", place / "new.csv", "-q", "--history"]
    with pytest.raises(SystemExit):
        main([*map(str, monitor), str(place / "watch.hetcal")])
    Store(place / "store").write(TRIAL, RESULT)
    return place


@pytest.fixture(scope="session")
def can_mount(tmp_path_factory):
    """Tell whether we may mount file systems here."""
    place = tmp_path_factory.mktemp("mount")
    if mounted(place, "size=64k"):
        subprocess.run(["umount", str(place)], check=True)
        return True
    return False


@pytest.fixture(scope="session")
def data():
    """Return 300 calibration items and 400 new ones."""
    cal = make_hidden_heterogeneity(200, heterogeneity=1.0, random_state=0)
    return SimpleNamespace(cal=cal, new=cal.sample(400, random_state=1))


@pytest.fixture(scope="session")
def calibrators(data):
    """Return one calibrator of each kind."""
    made = {
        "platt": hetcal.PlattScaling(),
        "isotonic": hetcal.get_calibrator("isotonic"),
        "swc": hetcal.SimilarityCalibrator(ForestProximity(30)),
        "swc-hh": hetcal.get_calibrator("swc-hh"),
        "hybrid": hetcal.HybridCalibrator(("proximity", "neighbours", "boosting"), n_estimators=30),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for calibrator in made.values():
            calibrator.fit(data.cal.X, data.cal.y, y_proba=data.cal.y_proba)
    return made


@pytest.fixture
def eager():
    """Switch between threads as often as possible, so that what can go wrong does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def filters():
    """Give back the filters of warnings, which threads take from each other."""
    before = list(warnings.filters)
    yield
    warnings.filters[:] = before


@pytest.fixture
def reached_for_filters(filters, monkeypatch):
    """Return the names of those modules of hetcal that reach for the filters of warnings.

    The filters belong to all threads. pandas and scikit-learn reach for them too, and with many
    threads may leave them changed: only who reaches for them is a matter of ours.
    """
    names = set()

    def note():
        name = sys._getframe(2).f_globals["__name__"]
        if name.split(".")[0] == "hetcal":
            names.add(name)

    class Noted(warnings.catch_warnings):
        def __enter__(self):
            note()
            return super().__enter__()

    def noted(change):
        def changed(*arguments, **options):
            note()
            return change(*arguments, **options)

        return changed

    monkeypatch.setattr(warnings, "catch_warnings", Noted)
    for name in ("simplefilter", "filterwarnings", "resetwarnings"):
        monkeypatch.setattr(warnings, name, noted(getattr(warnings, name)))
    return names


@pytest.fixture(scope="session")
def answers():
    """Return what each estimator says after either fit; computed once."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = CASES[name].answers(0), CASES[name].answers(1)
        return known[name]

    return of
