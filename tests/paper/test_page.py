"""The page of results: written from the results alone, and up to date."""

import re
from pathlib import Path

import pytest
from tests.paper.made_up import results_like_the_paper, write

from hetcal.cli import main
from hetcal.paper.page import page_text
from hetcal.paper.page.deviations import (
    DETERMINISTIC,
    explain,
    explain_inexact,
    is_off,
)
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
    assert "| development, Brier score | 18 | 0.800 | 0 | 0.800" in text
    assert "| confirmation, Brier score | 24 | 0.800 | 0 | 0.800" in text


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


def test_deviations_follow_from_the_black_box_where_it_is_off(folder):
    changed = load_results(folder, "mnist-4v9")
    changed.loc[changed["classifier"] == "GBT", "brier"] += 0.1
    changed.loc[(changed["classifier"] == "NB") & (changed["method"] == "Hist bin"), "brier"] += 0.1
    cells = summary_table(changed)
    found = explain(cells)
    assert len(found) == is_off(cells).sum() == 9
    boxes = found["cause"].str.startswith("The black box itself differs")
    assert set(found[boxes]["classifier"]) == {"GBT"}
    [histogram] = found[~boxes].itertuples()
    assert histogram.method == "Hist bin"
    assert "bins" in histogram.cause


def test_deterministic_scores_that_are_not_the_published_ones_are_listed(folder):
    changed = load_results(folder, "mnist-4v9")
    changed.loc[(changed["classifier"] == "GBT"), "brier"] += 0.001
    changed.loc[(changed["classifier"] == "NB") & (changed["method"] == "SWC"), "brier"] += 0.001
    found = explain_inexact(summary_table(changed))
    assert set(found[found["classifier"] == "GBT"]["method"]) == set(DETERMINISTIC) - {"TS"}
    assert found[found["classifier"] == "GBT"]["cause"].str.contains("black box").all()
    assert found[found["classifier"] == "NB"]["method"].tolist() == ["SWC"]
    assert not found[found["classifier"] == "NB"]["cause"].str.contains("black box").any()


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
    pytest.importorskip("matplotlib")
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
