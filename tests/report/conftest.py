"""Reports that the tests look at, made once."""

from __future__ import annotations

import numpy as np
import pytest

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.report import MonitorReport
from hetcal.similarity import ForestProximity

HOSTILE = {
    "x0": "<script>window.hit = 1</script>",
    "x1": '"><img src=x onerror="window.hit = 1">',
    "x2": "</style></script><h1>",
    "x3": "\u202egnp.exe\u0000",
    "x4": "a'b`c${d}",
    "x5": "]]>&amp;<!--",
}
LABELS = ["no & 'no'", "<b onclick=alert(1)>yes</b>"]


@pytest.fixture(autouse=True)
def _small_hybrids(small_hybrids):
    with small_hybrids():
        yield


@pytest.fixture(scope="session")
def report(small_hybrids) -> hetcal.Report:
    """Two classes, every section, and names that would like to be code."""
    data = make_hidden_heterogeneity(
        500, heterogeneity=1.0, miscalibration=1.0, classes=LABELS, random_state=0
    )
    new = data.sample(60, random_state=1)
    with small_hybrids():
        return hetcal.diagnose(
            data.frame().rename(columns=HOSTILE),
            data.y,
            y_proba=data.y_proba,
            classes=LABELS,
            by=HOSTILE["x0"],
            X_test=new.frame().rename(columns=HOSTILE),
            y_proba_test=new.y_proba,
            y_test=[*new.y[:50], *[None] * 10],
            costs=[[0, 1], [5, 0]],
            name="</title><script>window.hit = 1</script>",
        )


@pytest.fixture(scope="session")
def many_classes(small_hybrids) -> hetcal.Report:
    """Three classes, an array without names."""
    data = make_hidden_heterogeneity(120, n_classes=3, heterogeneity=0.8, random_state=0)
    with small_hybrids():
        return hetcal.diagnose(data.X, data.y, y_proba=data.y_proba)


@pytest.fixture(scope="session")
def tiny() -> hetcal.Report:
    """Too few items to say anything."""
    data = make_hidden_heterogeneity(24, random_state=0)
    return hetcal.diagnose(data.X, data.y, y_proba=data.y_proba)


@pytest.fixture(scope="session")
def watched() -> MonitorReport:
    """A monitor that raises alarms of support and of labels, under hostile names."""
    data = make_hidden_heterogeneity(200, heterogeneity=1.0, classes=LABELS, random_state=0)
    items = data.frame().rename(columns=HOSTILE)
    swc = hetcal.SimilarityCalibrator(ForestProximity(20), classes=LABELS)
    monitor = hetcal.SupportMonitor(swc.fit(items, data.y, y_proba=data.y_proba))
    monitor.fit(items, y_proba=data.y_proba)
    new = data.sample(600, random_state=1)
    rows = new.frame().rename(columns=HOSTILE)
    wrong = np.where(new.y == LABELS[0], LABELS[1], LABELS[0])
    for start in range(0, 600, 60):
        part, late = slice(start, start + 60), start >= 300
        X = rows[part].assign(**{HOSTILE["x1"]: rows[HOSTILE["x1"]] + 5 * late})
        monitor.update(
            X[rows.columns],
            y_proba=new.y_proba[part],
            y=(wrong if late else new.y)[part] if start else None,
            by=[HOSTILE["x0"]] * 30 + [HOSTILE["x2"]] * 30,
        )
    last = X[rows.columns]
    return MonitorReport.of(
        monitor,
        name="</title><script>window.hit = 1</script>",
        expected=monitor.expected_performance(last, y_proba=new.y_proba[part]),
        changes=monitor.what_changed(last, items, y_proba=new.y_proba[part]),
        notes=[HOSTILE["x5"]],
        command=f"hetcal monitor {HOSTILE['x4']}",
    )
