"""Reports that the tests look at, made once."""

from __future__ import annotations

import pytest

import hetcal
from hetcal.datasets import make_hidden_heterogeneity

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
