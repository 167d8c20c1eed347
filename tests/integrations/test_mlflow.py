"""Against a real MLflow with its store in a folder."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.integrations import mlflow as logging

mlflow = pytest.importorskip("mlflow", reason="needs MLflow: pip install 'hetcal[mlflow]'")


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(120, heterogeneity=1.0, random_state=0)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that reads what the run of this test holds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.set_experiment("test")
    with mlflow.start_run() as active:
        yield lambda: mlflow.get_run(active.info.run_id).data


def artifact(name):
    run_id = mlflow.active_run().info.run_id
    return mlflow.artifacts.load_text(f"runs:/{run_id}/{name}")


def test_a_diagnosis(run, data, small_hybrids):
    with small_hybrids():
        report = hetcal.diagnose(data.X, data.y, y_proba=data.y_proba)
    logging.log_diagnosis(report)
    logging.log_diagnosis(report, name="again")
    found = run()
    assert found.params["diagnosis.verdict"] == report.verdict.verdict
    before = report.method("uncalibrated").scores["brier"].value
    assert found.metrics["diagnosis.brier_before"] == before == found.metrics["again.brier_before"]
    assert {f"diagnosis.{f.name}" for f in report.verdict.evidence} <= found.metrics.keys()
    assert hetcal.Report.from_json(artifact("diagnosis/report.json")) == report
    assert artifact("diagnosis/report.html").startswith("<!doctype html>")


def test_a_calibrator_comes_back_to_the_bit(run, data):
    swc = hetcal.SimilarityCalibrator().fit(data.X, data.y, y_proba=data.y_proba)
    address = logging.log_calibrator(swc, metadata={"made by": "Ann"})
    assert run().params["calibrator.method"] == "SimilarityCalibrator"
    assert run().params["calibrator.n_items"] == "120"
    assert run().params["calibrator.similarity"] == "forest"
    loaded = logging.load_calibrator(address)
    np.testing.assert_array_equal(
        loaded.predict_proba(data.X, y_proba=data.y_proba),
        swc.predict_proba(data.X, y_proba=data.y_proba),
    )


def test_a_monitor_makes_a_curve(run, data):
    swc = hetcal.SimilarityCalibrator().fit(data.X, data.y, y_proba=data.y_proba)
    monitor = hetcal.SupportMonitor(swc).fit(data.X, y_proba=data.y_proba)
    for shift in (0.0, 5.0):
        new = data.sample(60, random_state=1)
        monitor.update(new.X + shift, y_proba=new.y_proba, y=new.y)
        expected = monitor.expected_performance(new.X, y_proba=new.y_proba)
        address = logging.log_monitor(monitor, expected=expected)
    found, run_id = run(), mlflow.active_run().info.run_id
    history = mlflow.MlflowClient().get_metric_history(run_id, "monitor.log10_evidence")
    assert [entry.step for entry in history] == [60, 120]
    assert history[1].value == pytest.approx(monitor.summary()["log10_evidence"])
    assert found.metrics["monitor.alarms"] == len(monitor.alarms_) > 0
    assert found.metrics["monitor.expected_accuracy"] == expected.accuracy.value
    assert found.params["monitor.rate"] == "0.01"
    assert json.loads(artifact("monitor/summary.json"))["seen"] == 120
    assert "Alarm of support" in artifact("monitor/report.html")
    assert logging.load_calibrator(address).n_seen_ == 120


def test_without_mlflow_the_remedy_is_told(data):
    code = (
        "import sys; sys.modules['mlflow'] = None\n"
        "from hetcal.integrations.mlflow import load_calibrator\n"
        "try:\n    load_calibrator('runs:/1/a')\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'hetcal[mlflow]'" in done.stdout
