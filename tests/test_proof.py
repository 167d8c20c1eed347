"""``python -m benchmarks``: one entry to all that is measured, and a page in step with it."""

import doctest
import re
from pathlib import Path

import pandas as pd
import pytest
from benchmarks import quick, running
from benchmarks.__main__ import main
from benchmarks.page import cost, pictures, ranks
from benchmarks.page.document import page_files
from benchmarks.parts import FOLDER, PARTS, RESULTS, Part
from benchmarks.quick import Check, run_checks
from benchmarks.sources import record, stored_sources

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


def test_every_script_is_a_part_and_has_a_row_in_the_documentation():
    assert {part.script.name for part in PARTS} == SCRIPTS - HELPERS
    listed = (DOCS / "appendix" / "benchmarks.md").read_text(encoding="utf-8")
    assert [name for name in sorted(SCRIPTS - HELPERS) if f"`{name}`" not in listed] == []


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


@pytest.mark.parametrize("module", [ranks, cost])
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
