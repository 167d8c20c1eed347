"""``hetcal paper figure`` runs what is missing, draws, and keeps the numbers."""

from __future__ import annotations

import pandas as pd
import pytest

from hetcal.cli import main
from hetcal.paper.figures import appendix
from hetcal.paper.settings import make_trials
from hetcal.paper.store import load_results


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code or 0


@pytest.fixture
def _small(monkeypatch):
    """An appendix figure of moons: no data needed, and quick."""
    monkeypatch.setitem(appendix.DATASETS_OF, "appendix-binary", ("moons",))

    def few(name, trials, own=()):
        methods = ["Uncal.", "Platt", "SWC", *own]
        return make_trials("moons", methods, classifiers=["NB"], seeds=range(trials))

    monkeypatch.setattr(appendix, "trials_needed", few)


@pytest.mark.usefixtures("_small")
def test_it_runs_what_is_missing_and_keeps_the_facts(tmp_path, capsys):
    picture, folder = tmp_path / "picture.png", tmp_path / "results"
    options = ["--results", str(folder), "--trials", "2", "--jobs", "1", "-o", str(picture)]
    assert call("paper", "figure", "appendix-binary", *options) == 0
    assert str(picture) in capsys.readouterr().out.replace("\n", "")
    found = load_results(folder)
    assert len(found) == 6
    facts = pd.read_csv(folder / "figures" / "appendix-binary.csv")
    brier = facts[(facts["metric"] == "brier") & (facts["method"] == "SWC")]["mean"].item()
    assert brier == pytest.approx(found[found["method"] == "SWC"]["brier"].mean())
    options[3] = "3"
    assert call("paper", "figure", "appendix-binary", *options, "--with", "temperature") == 0
    assert len(load_results(folder)) == 12


@pytest.mark.usefixtures("_small")
def test_nothing_is_run_when_told_so(tmp_path, capsys):
    options = ["--results", str(tmp_path), "--no-run"]
    assert call("paper", "figure", "appendix-binary", *options) == 1
    assert "Run: hetcal paper figure appendix-binary" in capsys.readouterr().err


def test_a_wrong_choice_of_pictures_is_refused(tmp_path, capsys):
    assert call("paper", "page", "--figures", "some", "--docs", str(tmp_path)) == 1
    assert "none, results or all" in capsys.readouterr().err
