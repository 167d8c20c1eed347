"""The page of results: written from the results alone, and up to date."""

import re
from pathlib import Path

import pandas as pd
import pytest
from tests.paper.made_up import results_like_the_paper, write

from hetcal.cli import main
from hetcal.paper.page import page_text
from hetcal.paper.page.deviations import DETERMINISTIC, deviations, is_off
from hetcal.paper.published import published_table
from hetcal.paper.store import load_results
from hetcal.paper.tables import summary_table

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "experiments" / "results", ROOT / "docs" / "paper.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(results_like_the_paper(), tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def text(folder):
    return page_text(folder)


@pytest.mark.skipif(not RESULTS.is_dir(), reason="experiments/results is not in this checkout")
def test_page_and_results_agree():
    """Run ``hetcal paper page`` when this fails."""
    assert PAGE.read_text(encoding="utf-8") == page_text(RESULTS)


@pytest.mark.skipif(not RESULTS.is_dir(), reason="experiments/results is not in this checkout")
def test_pictures_of_the_page_exist():
    pictures = re.findall(r"\]\((_static/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert [name for name in pictures if not (PAGE.parent / name).is_file()] == []


def test_an_empty_folder_gives_a_page_that_says_so(tmp_path):
    text = page_text(tmp_path)
    assert "None of the 672 published cells has ten trials yet." in text
    assert text.count("No results yet.") >= 7
    assert "![" not in text


def test_results_like_the_paper_agree_with_it(text):
    assert "**672 of 672 cells (100.0%) lie within two published standard errors.**" in text
    assert "210 of 210 of their Brier scores agree" in text
    assert "†" not in text.split("## Tables")[1].split("\n", 3)[3]
    assert "| development, Brier score | 24 | 0.800 | 0 | 0.800" in text
    assert "| confirmation, Brier score | 18 | 0.800 | 0 | 0.800" in text


def test_every_published_cell_is_on_the_page(text):
    cells = re.findall(r"\d\.\d{4}\*{0,2} / (\d\.\d{4})", text.split("## Tables")[1])
    expected = [f"{value:.4f}" for value in published_table()["mean"]]
    assert sorted(cells) == sorted(expected)


def test_a_changed_result_changes_the_page(folder, text, tmp_path):
    changed = load_results(folder)
    place = (changed["method"] == "SWC") & (changed["dataset"] == "letter")
    changed.loc[place, "brier"] += 0.05
    other = page_text(write(changed, tmp_path))
    assert other != text
    assert "**666 of 672 cells" in other
    assert other.count("†") > 6


def test_few_trials_are_not_counted(tmp_path):
    text = page_text(write(results_like_the_paper(["letter"], trials=2), tmp_path))
    assert "None of the 672 published cells has ten trials yet." in text
    assert "2 trials." in text


def test_deviations_stand_beside_what_the_classifier_is_off_by(folder):
    changed = load_results(folder, "mnist-4v9")
    changed.loc[changed["classifier"] == "GBT", "brier"] += 0.1
    changed.loc[(changed["classifier"] == "NB") & (changed["method"] == "Hist bin"), "brier"] += 0.1
    cells = summary_table(changed)
    text = deviations(cells)
    assert is_off(cells).sum() == 9
    assert text[0].startswith("9 cells")
    rows = _rows(text[2])
    assert {(row[1], row[-1]) for row in rows} == {("GBT", "+0.1000"), ("NB", "+0.0000")}
    assert [row[2] for row in rows if row[1] == "NB"] == ["Hist bin"]


def test_deterministic_scores_that_are_not_the_published_ones_are_listed(folder):
    changed = load_results(folder, "mnist-4v9")
    changed.loc[(changed["classifier"] == "GBT"), "brier"] += 0.001
    changed.loc[(changed["classifier"] == "NB") & (changed["method"] == "SWC"), "brier"] += 0.001
    text = deviations(summary_table(changed))
    assert text[0].startswith("No complete cell")
    rows = _rows(text[4])
    assert {row[2] for row in rows if row[1] == "GBT"} == set(DETERMINISTIC) - {"TS"}
    assert [(row[2], row[-1]) for row in rows if row[1] == "NB"] == [("SWC", "+0.0000")]


def test_no_cause_is_named_that_was_not_measured(folder):
    """Whatever differs, the page says by how much, not why."""
    changed = load_results(folder)
    changed.loc[changed["method"] == "Hist bin", "brier"] += 0.1
    section = "\n".join(deviations(summary_table(changed)))
    prose = [line for line in section.splitlines() if line and not line.startswith("|")]
    assert len(prose) == 2
    assert "42 cells (marked †)" in prose[0]
    assert "uncalibrated score" in prose[1]


def _rows(table: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_the_time_of_the_published_algorithms_is_what_benchmarks_measured(folder, tmp_path):
    written = write(load_results(folder, "mnist-4v9"), tmp_path)
    assert "published algorithms would have taken" not in page_text(written)
    (tmp_path / "speed").mkdir()
    cases = pd.DataFrame({"plain_s": [100.0, 500.0], "exact_s": [1.0, 2.0]})
    cases.to_csv(tmp_path / "speed" / "hh.csv")
    pd.DataFrame({"seconds_per_pair": [2e-6, 6e-6]}).to_csv(tmp_path / "speed" / "similarity.csv")
    # 60 trials of HH took 2 s each; 4 methods look at 3000 x 500 pairs in each of 60 trials.
    seconds = 60 * 2 * 200 + 60 * 4 * 3000 * 500 * 4e-6
    text = page_text(written)
    assert f"would have taken about {seconds / 3600:.1f} hours" in text
    assert "times 200 (the 2 cases" in text
    assert "4.0 microseconds per pair" in text


def test_the_command_writes_checks_and_refuses(tmp_path, capsys):
    folder = write(results_like_the_paper(["mnist-4v9"], trials=1), tmp_path / "results")
    docs = tmp_path / "docs"
    docs.mkdir()
    arguments = ["paper", "page", "--results", str(folder), "--docs", str(docs)]
    assert call([*arguments, "--check"]) == 1
    assert "Run: hetcal paper page" in capsys.readouterr().err
    assert call(arguments) == 0
    assert (docs / "paper.md").read_text(encoding="utf-8") == page_text(folder)
    assert call([*arguments, "--check"]) == 0


def test_the_command_draws_what_is_there(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["paper", "figure", "appendix-multiclass", "--results", str(folder), "--no-run"]
    assert call(arguments) == 0
    assert (tmp_path / "appendix-multiclass.png").stat().st_size > 10_000
    assert "Figure 8" in capsys.readouterr().out
    assert call(["paper", "figure"]) == 0
    assert "rotation" in capsys.readouterr().out
    assert call(["paper", "figure", "nonsense"]) == 1
    assert "choose one of" in capsys.readouterr().err


def call(arguments) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code or 0
