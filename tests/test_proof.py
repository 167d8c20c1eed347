"""``python -m benchmarks``: one entry to all that is measured, and a page in step with it."""

import doctest
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import quick, running
from benchmarks.__main__ import main
from benchmarks.page import cost, diagnosis, forecasts, pictures, ranks, repair
from benchmarks.page.document import page_files
from benchmarks.parts import FOLDER, PARTS, RESULTS, Part
from benchmarks.quick import Check, run_checks
from benchmarks.sources import record, stored_sources

from hetcal.datasets import list_problems
from hetcal.metrics.levels import LEVELS

DOCS = FOLDER.parent / "docs"
SCRIPTS = {
    path.name
    for path in FOLDER.glob("*.py")
    if path.name != "__main__.py" and "__name__ ==" in path.read_text(encoding="utf-8")
}
# Not a benchmark: where other tests of heterogeneity run in a process of their own.
HELPERS = {"heterogeneity_rivals.py", "peer_cbpe.py"}


@pytest.fixture(scope="module")
def files():
    return page_files()


def test_page_and_results_agree(files):
    """Run ``python -m benchmarks page`` when this fails."""
    stale = [path.name for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    assert stale == []


def test_pictures_of_the_page_are_those_that_are_drawn(files):
    text = next(text for path, text in files.items() if path.name == "proof.md")
    shown = {Path(name).name for name in re.findall(r"\]\((_static/proof/[^)]+)\)", text)}
    assert shown == {path.name for path in files if path.suffix == ".svg"}


def test_the_protocol_stands_before_the_numbers(files):
    text = next(text for path, text in files.items() if path.name == "proof.md")
    assert text.index("## The protocol") < text.index("| ---")


def rejections(**columns):
    usual = {"test": "new", "n": 300, "draws": 100, "failed": 0, "rejects": 0.0, "seconds": 1.0}
    return diagnosis.answered(pd.DataFrame(usual | columns))


def cells_of(table):
    """Return the rows of a table in Markdown, by column."""
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in table.split("\n")]
    return pd.DataFrame(rows, columns=head)


def test_a_test_that_failed_is_not_shown_as_one_without_power():
    names = list_problems("alternative")[:2]
    found = rejections(problem=names, test="glest", n=[500, 2000], draws=2, failed=[1, 2])
    found["rejects"] = [1.0, np.nan]
    shown = cells_of(diagnosis.rejection_table(found, "alternative")).set_index("items")
    assert shown.loc["500", ["problems", "draws", "failed"]].tolist() == ["1", "1", "1"]
    assert shown.loc["2000", ["draws", "failed", "rejects at 5 %"]].tolist() == ["0", "2", "-"]
    both = pd.concat([found, rejections(problem=names, n=[500, 2000])])
    assert cells_of(diagnosis.shared_table(both))["problems"].tolist() == ["1"]


def test_both_tables_weigh_problems_alike_whatever_their_draws():
    names = list_problems("null")[:2]
    ours = rejections(problem=names, draws=[100, 700], rejects=[0.02, 0.06])
    found = pd.concat([ours, rejections(problem=names, test="boosting")])
    assert cells_of(diagnosis.rejection_table(ours, "null"))["rejects at 5 %"].tolist() == ["0.040"]
    assert cells_of(diagnosis.shared_table(found))["ours rejects"].tolist() == ["0.040"]


def test_every_claim_is_said_in_words():
    shown = cells_of(diagnosis.coverage_table())
    assert shown["claim"].tolist() == [LEVELS[key.strip("`")].claim for key in shown["key"]]


def scored(table, n, method, score, seed=0):
    names = dict.fromkeys(("brier", "log_loss", "ece", "worst_group"), score)
    return {"table": table, "model": "m", "n_cal": n, "seed": seed, "method": method} | names


def test_the_best_other_method_may_be_to_leave_forecasts_as_they_are():
    scores = {"uncalibrated": 0.1, "hetcal hybrid": 0.11, "hetcal global": 0.13, "a": 0.12}
    table = pd.DataFrame([scored("forecasts-games", 50, m, s) for m, s in scores.items()])
    assert cells_of(repair.losses(table)[2])["best other"].tolist() == ["uncalibrated"]
    shown = cells_of(forecasts.forecast_table(table))["best other"]
    assert shown.tolist() == ["0.1000 uncalibrated"]


def test_groups_that_calibration_harms_are_named():
    scores = {"uncalibrated": 0.1, "hetcal hybrid": 0.2, "hetcal global": 0.15}
    table = pd.DataFrame([scored("forecasts-games", 50, m, s) for m, s in scores.items()])
    said = "FiveThirtyEight, games, 50 items (smECE 0.100 to 0.200, with `global` 0.150)."
    assert forecasts.worse_groups(table).endswith(said)
    unharmed = table.assign(worst_group=0.1)
    assert forecasts.worse_groups(unharmed).endswith("in: none.")


def test_losses_where_the_truth_is_known_are_named():
    growth = pd.DataFrame(
        [("hetcal hybrid", 10, 0.2), ("a", 10, 0.1), ("hetcal hybrid", 20, 0.1), ("a", 20, 0.2)],
        columns=["method", "n_cal", "excess"],
    )
    assert "hybrid: a with 10 items (excess 0.1000 against 0.2000)." in repair.growth_losses(growth)


def test_two_sizes_give_no_exponent():
    growth = pd.read_csv(RESULTS / "growth.csv").assign(seconds=1.0)
    two = growth[growth["n_cal"].isin(sorted(growth["n_cal"].unique())[:2])]
    assert "exponent" not in cost.growth_table(two)
    third = two[two["n_cal"] == two["n_cal"].max()].assign(n_cal=10**6)
    assert "exponent" in cost.growth_table(pd.concat([two, third]))


@pytest.mark.parametrize(
    "file", ["experiments/results/*.csv", "benchmarks/results/repair_tables.csv"]
)
def test_tables_say_which_hybrid_they_are_of(files, file):
    text = next(text for path, text in files.items() if path.name == "proof.md")
    [source] = stored_sources().query("file == @file").itertuples()
    said = text.index(f"**Computed at commit {source.commit} ({source.day})**: {source.note}")
    assert said < text.index("| ", said) < said + len(source.note) + 100


def test_one_trial_and_few_data_sets_are_called_so():
    once = pd.DataFrame([scored("bank-marketing", n, "hetcal hybrid", 0.1) for n in (50, 200)])
    said = repair.how_much_it_says(once)
    assert said.startswith("The 2 confirming cells are of 1 data sets (bank-marketing)")
    assert "One trial is one split" in said
    twice = pd.concat([once, once.assign(seed=1)])
    assert "One trial" not in repair.how_much_it_says(twice)


def test_power_is_told_beside_what_is_possible():
    hidden, nothing = list_problems("alternative")[:1], list_problems("null")[:1]
    found = pd.concat(
        rejections(problem=problem, test=test, rejects=share)
        for problem, test, share in [
            *((hidden, "new", 0.2), (nothing, "new", 0.04)),
            *((hidden, "likelihood-ratio", 0.3), (nothing, "likelihood-ratio", 0.1)),
        ]
    )
    said = diagnosis.power_in_words(found)
    assert re.findall(r"0\.\d+", said) == ["0.20", "0.95", "0.30", "0.10", "0.04"]


def test_alarms_for_nothing_are_a_warning():
    streams = pd.DataFrame(
        {"phi": [0.5, 0.9], "dependence": "1", "streams": 200, "all_items": [10, 199]}
    )
    said = diagnosis.alarms_in_words(streams)
    assert "assumes exchangeable items" in said
    assert "in 5.0% of the streams at φ = 0.5 and in 99.5% at φ = 0.9" in said


def test_every_script_is_a_part_and_has_a_row_in_the_documentation():
    assert {part.script.name for part in PARTS} == SCRIPTS - HELPERS
    listed = (DOCS / "appendix" / "benchmarks.md").read_text(encoding="utf-8")
    assert [name for name in sorted(SCRIPTS - HELPERS) if f"`{name}`" not in listed] == []


def test_parts_ask_questions_of_their_own():
    assert len({part.question for part in PARTS}) == len(PARTS)


def test_parts_have_names_of_their_own():
    names = [(part.topic, part.name) for part in PARTS]
    assert len(set(names)) == len(names)


def test_every_stored_result_says_where_it_comes_from():
    sources = stored_sources()
    stored = {path.name for path in RESULTS.glob("*.csv")} - {"sources.csv"}
    assert stored <= {Path(name).name for name in sources["file"]}
    assert (sources[["command", "commit", "day"]] != "").all(axis=None)


def test_recording_replaces_the_row_of_the_file(tmp_path):
    path = tmp_path / "sources.csv"
    for command in ("first", "second"):
        record("a.csv", command, path)
    record("b.csv", "third", path)
    found = stored_sources(path)
    assert found["command"].tolist() == ["second", "third"]
    assert found["versions"].str.contains("numpy").all()


@pytest.mark.parametrize(("value", "status"), [(1.0, 0), (2.0, 1), (float("nan"), 1)])
def test_quick_fails_where_a_result_is_out_of_its_limits(monkeypatch, value, status):
    monkeypatch.setattr(quick, "TOPICS", {"repair": lambda: iter([Check("x", value, 0, 1)])})
    assert run_checks() == status


def test_quick_has_every_topic_that_computes():
    assert set(quick.TOPICS) == {part.topic for part in PARTS} - {"mutations", "structure"}


@pytest.fixture
def ran(monkeypatch):
    """Names of the parts that were run; "bad" fails."""
    names = []

    def run(part, more=(), *, log):
        names.append(part.name)
        log.parent.mkdir(exist_ok=True)
        log.write_text("output", encoding="utf-8")
        return int(part.name == "bad")

    monkeypatch.setattr(running, "run", run)
    return names


def test_a_full_run_goes_on_where_it_stopped(ran, tmp_path, capsys):
    parts = [Part("cost", name, "lines_of_code", 1) for name in ("good", "bad", "last")]
    assert running.run_all(parts, tmp_path) == 1
    assert running.run_all(parts, tmp_path) == 1
    assert ran == ["good", "bad", "last", "bad"]
    assert "about 1 minutes" in capsys.readouterr().out


def test_a_part_without_its_data_is_left_out_and_says_why(ran, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("HETCAL_DATA", raising=False)
    assert running.run_all([Part("repair", "x", "hybrid paper", 1, "data")], tmp_path) == 0
    assert ran == []
    assert "HETCAL_DATA" in capsys.readouterr().out


def test_a_part_is_run_with_what_follows_its_name(capfd):
    assert main(["structure", "lines", str(FOLDER / "page")]) == 0
    assert "Python" in capfd.readouterr().out


def test_an_unknown_part_is_named_with_those_there_are(capsys):
    assert main(["structure", "roof"]) == 2
    assert "walks, lines" in capsys.readouterr().err


def test_methods_that_differ_are_not_joined():
    svg = pictures.critical_difference_plot(pd.Series({"a": 1.0, "hybrid": 3.0}), 0.5, "t")
    assert 'stroke-width="3"' not in svg
    svg = pictures.critical_difference_plot(pd.Series({"a": 1.0, "hybrid": 1.4}), 0.5, "t")
    assert svg.count('stroke-width="3"') == 1


@pytest.mark.parametrize("module", [ranks, cost, diagnosis])
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
