"""Nothing that comes from outside reaches a terminal as a command: names, labels, files, errors."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from hetcal._exceptions import HetcalWarning
from hetcal.cli import _console, _demo
from hetcal.persistence import container

EVIL = "\x1b]0;OWNED\x07\x1b[2J\x9b31m\x7f\u202eseitilibail\u2066\u200b\ufeff"
MARKUP = "[bold red]x[/bold red] [link=file:///etc/passwd]y[/link] [/nope] :bug:"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def assert_harmless(*shown: str) -> None:
    for text in shown:
        assert UNSEEN.search(text) is None, repr(text)


@pytest.mark.parametrize("terminal", [True, False])
def test_whatever_a_command_prints_passes_the_filter(terminal):
    """Strings, texts, cells and headers; only our own colours are left."""
    console = _console._VisibleConsole(
        file=io.StringIO(), width=200, color_system="standard" if terminal else None
    )
    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(EVIL, Text(EVIL))
    table.add_row(MARKUP)
    console.print(table)
    console.print(EVIL, style="bold")
    console.print(Text(EVIL, style="red"), EVIL)
    console.print(MARKUP)
    shown = console.file.getvalue()
    assert shown.count(r"\x1b]0;OWNED") == 7
    assert shown.count(MARKUP) == 2
    assert ("\x1b[1m" in shown) is terminal
    assert_harmless(re.sub(r"\x1b\[[0-9;]*m", "", shown))


def test_no_command_goes_around_the_filter():
    """Consoles are made, and streams written to, in one module."""
    around = re.compile(r"(?<![.\w])print\(|\becho\(|\bConsole\(|sys\.std(out|err)\.write")
    for path in Path(_console.__file__).parent.glob("*.py"):
        found = around.search(path.read_text(encoding="utf-8"))
        assert found is None or path.name == "_console.py", (path.name, found)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, loans):
    """Return a table whose names, labels and levels are hostile, and a file fitted on it."""
    folder = tmp_path_factory.mktemp("hostile")
    names = {"region": f"region {EVIL}", "loan_id": f"id {MARKUP} {EVIL}", "age": MARKUP}
    table = loans.rename(columns=names)
    table["outcome"] = table["outcome"].replace("default", f"default {EVIL} {MARKUP}")
    table.columns = [name.replace("default", f"default {EVIL} {MARKUP}") for name in table.columns]
    table.iloc[:, 3] = table.iloc[:, 3] + EVIL + "\nerror: all is lost"
    table.to_csv(folder / "table.csv", index=False)
    table.assign(**{MARKUP: table[MARKUP] + 1}).to_csv(folder / "new.csv", index=False)
    return folder


FIT = ["--label", "outcome", "--proba", "p_*", "--method", "swc"]


def test_commands_on_a_hostile_table(hostile, call, capsys):
    table, model = hostile / "table.csv", hostile / "m.hetcal"
    region = f"region {EVIL}"
    for command in (
        ["fit", table, *FIT, "-o", model],
        ["inspect", model],
        ["inspect", model, "--json"],
        ["apply", model, table, "-o", hostile / "out.csv"],
        ["monitor", model, hostile / "new.csv", "--calibration", table, "--by", region],
    ):
        assert call(*command) == 0
        shown = capsys.readouterr()
        assert_harmless(shown.out, shown.err)
        assert "1b]0;OWNED" in shown.out + shown.err
        assert not re.search("^error", shown.out, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", f"{EVIL}.hetcal"],
        [f"--{EVIL}"],
        [EVIL],
        ["demo", "--seed", EVIL],
        ["fit", "no.csv", "--label", EVIL, "-o", "x.hetcal", "--method", EVIL],
        ["diagnose", f"{EVIL}.csv", "--label", "y", "--proba", "p"],
    ],
)
def test_errors_about_arguments_and_file_names(arguments, call, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # a word that is a file's name here comes from whoever named it
    assert call(*arguments) == 2
    shown = capsys.readouterr()
    assert_harmless(shown.out, shown.err)
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("kind", [KeyError, ValueError])
def test_tracebacks_and_warnings(kind, call, monkeypatch, capsys):
    def fail(**_: object) -> None:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"beware {EVIL}", HetcalWarning, stacklevel=2)
        raise kind(EVIL)

    monkeypatch.setattr(_demo, "run_demo", fail)
    monkeypatch.setenv("HETCAL_DEBUG", "1")
    assert call("demo") == 1
    shown = capsys.readouterr().err
    assert_harmless(shown)
    assert "beware \\x1b]0" in shown
    assert "Traceback" in shown


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("metadata", MARKUP), "v"),
        (("metadata", EVIL), {EVIL: EVIL}),
        (("metadata", "fit"), [1, 2]),
        (("metadata", "fit"), {"items": "many"}),
        (("metadata", "fit", "brier_before"), None),
        (("metadata", "fit", "notes"), 5),
        (("metadata", "table"), "x"),
        (("metadata", "table", "output"), [1, None]),
        (("metadata", "table", "label"), [EVIL]),
        (("calibrator", "classes"), None),
        (("calibrator", "kind"), EVIL),
        (("calibrator", "settings"), [1]),
        (("calibrator", "features"), [None]),
        (("made", "date"), [EVIL]),
    ],
)
def test_inspect_of_a_crafted_description(place, value, folder, call, tmp_path, capsys):
    """It is shown, or said to be no description; never a traceback."""
    content, arrays = container.read(folder / "swc.hetcal")
    content = json.loads(json.dumps({k: v for k, v in content.items() if k != "arrays"}))
    below = content
    for name in place[:-1]:
        below = below[name]
    below[place[-1]] = value
    container.write(tmp_path / "crafted.hetcal", content, list(arrays))
    code = call("inspect", tmp_path / "crafted.hetcal")
    shown = capsys.readouterr()
    assert_harmless(shown.out, shown.err)
    assert code == 0 or (code == 1 and shown.err.startswith("error: crafted.hetcal: "))
    assert call("inspect", tmp_path / "crafted.hetcal", "--json") == 0
    assert_harmless(capsys.readouterr().out)


@pytest.mark.parametrize(("name", "value"), [("output", None), ("features", ["nope"])])
def test_apply_with_crafted_columns(name, value, folder, call, tmp_path, capsys):
    content, arrays = container.read(folder / "global.hetcal")
    content = json.loads(json.dumps({k: v for k, v in content.items() if k != "arrays"}))
    content["metadata"]["table"][name] = value
    container.write(tmp_path / "crafted.hetcal", content, list(arrays))
    assert call("apply", tmp_path / "crafted.hetcal", folder / "loans.csv", "-o", "-") == 1
    assert capsys.readouterr().err.startswith("error: crafted.hetcal: what it says about the col")
