"""The report as JSON: everything comes back, and what is no report is refused with a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetcal import Report
from hetcal.diagnosis import findings
from hetcal.report import codec


@pytest.mark.parametrize("which", ["report", "many_classes", "tiny"])
def test_round_trip(which, request, tmp_path):
    report = request.getfixturevalue(which)
    path = tmp_path / "report.json"
    assert Report.from_json(report.to_json(path)) == report
    assert Report.from_json(path) == report
    assert json.loads(path.read_text(encoding="utf-8")) == report.to_dict()


def test_another_format_is_refused(tiny):
    data = tiny.to_dict() | {"format": 99}
    with pytest.raises(ValueError, match="format 2: its 'format' is 99"):
        Report.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[1, 2]", "nonsense", "{}"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ValueError, match="not a report"):
        Report.from_json(text)


def test_unknown_and_missing_fields_are_named(tiny):
    data = tiny.to_dict()
    data["verdict"]["surprise"] = 1
    del data["verdict"]["call"]
    with pytest.raises(ValueError, match=r"Report.verdict.*surprise.*call"):
        Report.from_json(json.dumps(data))


def test_wrong_types_are_named(tiny):
    data = tiny.to_dict()
    data["data"]["n_items"] = "many"
    with pytest.raises(ValueError, match=r"Report.data.n_items"):
        Report.from_json(json.dumps(data))


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.builds(findings.CostRow, st.text(), st.text(), numbers, numbers, numbers))
def test_any_text_and_number_comes_back(row):
    assert codec._read(findings.CostRow, json.loads(codec.to_json(row)), "row") == row


@pytest.mark.parametrize(("given", "kept"), [(1, 1.0), (float("nan"), None), (None, None)])
def test_number(given, kept):
    assert findings.number(given) == kept
