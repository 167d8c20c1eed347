"""What ``hetcal monitor --metrics`` prints for other programs."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

NASTY = 'a "b"\\c\u202e'


@pytest.fixture
def ask(folder, later_loans, tmp_path):
    table = later_loans.assign(branch=NASTY)
    table.to_csv(tmp_path / "new.csv", index=False)
    assert pd.read_csv(tmp_path / "new.csv")["branch"][0] == NASTY
    return "monitor", folder / "swc.hetcal", tmp_path / "new.csv", "--by", "branch", "--expected"


def test_json_lines_say_what_json_says(call, ask, capsys):
    assert call(*ask, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert call(*ask, "--metrics", "json-lines") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["seen"] == whole["seen"]
    assert rows[0]["expected"] == whole["expected"]
    groups = [row for row in rows if row.pop("record") == "group"]
    assert groups == whole["groups"]
    assert len(rows) == 1 + len(groups) + len(whole["alarms"])


def test_prometheus_reads_every_line(call, ask, capsys):
    assert call(*ask, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert call(*ask, "--metrics", "prometheus") == 0
    lines = capsys.readouterr().out.splitlines()
    sample = re.compile(r'^([a-z_0-9]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (\S+)$')
    found = {}
    for line in lines:
        if not re.match(r"^# (HELP|TYPE) hetcal_", line):
            name, labels, value = sample.match(line).groups()
            found[name, labels] = float(value)
    assert found["hetcal_items_total", 'kind="all",name="all items"'] == whole["seen"]
    nasty = r'kind="by",name="a \"b\"\\c\\u202e"'
    assert found["hetcal_labels_total", nasty] == whole["seen"]
    expected = whole["expected"]["brier"]["high"]
    assert found["hetcal_expected_score", 'score="brier",bound="high"'] == expected


def test_one_format_at_a_time(call, ask, capsys):
    assert call(*ask, "--json", "--metrics", "prometheus") == 2
    assert "--json or --metrics" in capsys.readouterr().err
