"""MLflow: diagnoses, calibrators and monitors as metrics, parameters and artifacts of a run.

Needs ``pip install 'hetcal[mlflow]'``. Everything goes to the active run of MLflow, or to a new one
where there is none, as MLflow's own functions do. Names of metrics and parameters begin with
``name``, so that a run can hold several of a kind.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hetcal.persistence import describe, load, save

if TYPE_CHECKING:
    import pandas as pd

    from hetcal.monitor import ExpectedPerformance, SupportMonitor
    from hetcal.report import Report

_FILE = "model.hetcal"
_LONGEST = 500  # of a parameter; what is longer stands in the artifacts


def log_diagnosis(report: Report, *, name: str = "diagnosis") -> None:
    """Log what a diagnosis found.

    Metrics: scores before and after, the numbers behind the verdict, hidden heterogeneity.
    Parameters: verdict, recommended method, items. Artifacts: ``report.html`` and ``report.json``.

    Parameters
    ----------
    report : Report
        From :func:`hetcal.diagnose`.
    name : str, default="diagnosis"
        Before the names of metrics and parameters, and the folder of the artifacts.
    """
    mlflow = _mlflow()
    verdict, hidden = report.verdict, report.hidden
    numbers: dict[str, Any] = {figure.name: figure.value for figure in verdict.evidence}
    if report.comparison:
        for when, method in (("before", "uncalibrated"), ("after", verdict.recommended)):
            scores = report.method(method).scores.items()
            numbers |= {f"{metric}_{when}": score.value for metric, score in scores}
    if hidden is not None:
        numbers |= {"hh_local": hidden.local_part, "hh_global": hidden.global_part}
    _log_metrics(mlflow, name, numbers)
    facts = {"verdict": verdict.verdict, "recommended": verdict.recommended}
    _log_params(mlflow, name, facts | {"items": report.data.n_items})
    mlflow.log_text(report.to_html(), f"{name}/report.html")
    mlflow.log_text(report.to_json(), f"{name}/report.json")


def log_calibrator(
    calibrator: Any,
    *,
    name: str = "calibrator",
    forget_features: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """Log a fitted calibrator in hetcal's own file format, which holds no code.

    Parameters: kind, method, items, classes and the settings. Artifact: ``model.hetcal``.

    Parameters
    ----------
    calibrator : fitted calibrator
        Whatever :func:`hetcal.save` takes.
    name : str, default="calibrator"
        Before the names of parameters, and the folder of the artifact.
    forget_features, metadata
        As in :func:`hetcal.save`.

    Returns
    -------
    str
        The artifact's address, for :func:`load_calibrator`.
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _FILE
        save(calibrator, path, forget_features=forget_features, metadata=metadata)
        facts = describe(path)["calibrator"]
        mlflow.log_artifact(str(path), name)
    settings = facts.pop("settings")
    told = {key: facts[key] for key in ("kind", "method", "n_items", "classes", "n_features")}
    _log_params(mlflow, name, told | settings)
    return f"runs:/{mlflow.active_run().info.run_id}/{name}/{_FILE}"


def load_calibrator(address: str) -> Any:
    """Return a calibrator (or monitor) that was logged; nothing in the file is executed.

    Parameters
    ----------
    address : str
        From :func:`log_calibrator`, such as ``"runs:/0123abc/calibrator/model.hetcal"``; or any
        other address of an artifact that MLflow understands.
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        return load(mlflow.artifacts.download_artifacts(artifact_uri=address, dst_path=folder))


def log_monitor(
    monitor: SupportMonitor,
    *,
    name: str = "monitor",
    expected: ExpectedPerformance | None = None,
    changes: pd.DataFrame | None = None,
) -> str:
    """Log what a monitor has counted and said so far.

    Metrics at the step of the items seen, so that calls after every update make a curve: items,
    flagged share, evidence of a shift and in labels, alarms, scores to expect. Parameters: its
    rates and tests. Artifacts: ``report.html``, ``summary.json``, and ``model.hetcal``, the monitor
    itself; the next call replaces them.

    Parameters
    ----------
    monitor : SupportMonitor
    name : str, default="monitor"
        Before the names of metrics and parameters, and the folder of the artifacts.
    expected, changes : optional
        As in :meth:`hetcal.report.MonitorReport.of`.

    Returns
    -------
    str
        The monitor's address, for :func:`load_calibrator`.
    """
    from hetcal.report import MonitorReport

    mlflow = _mlflow()
    report = MonitorReport.of(monitor, name=name, expected=expected, changes=changes)
    numbers: dict[str, Any] = {
        "seen": report.seen,
        "labels": report.n_labels,
        "alarms": len(report.alarms),
        "flag_share": report.flag_share,
        "log10_evidence": report.log10_evidence,
    }
    if report.n_labels:
        numbers["log10_label_evidence"] = report.log10_label_evidence
    if report.expected is not None:
        for score in ("accuracy", "brier", "log_loss"):
            numbers[f"expected_{score}"] = report.expected[score]["value"]
    _log_metrics(mlflow, name, numbers, step=report.seen)
    _log_params(mlflow, name, report.settings)
    mlflow.log_text(report.to_html(), f"{name}/report.html")
    mlflow.log_text(json.dumps(report.to_dict(), indent=2), f"{name}/summary.json")
    with tempfile.TemporaryDirectory() as folder:
        save(monitor, Path(folder) / _FILE)
        mlflow.log_artifact(str(Path(folder) / _FILE), name)
    return f"runs:/{mlflow.active_run().info.run_id}/{name}/{_FILE}"


def _log_metrics(
    mlflow: ModuleType, name: str, numbers: Mapping[str, Any], step: int | None = None
) -> None:
    known = {f"{name}.{key}": float(n) for key, n in numbers.items() if n is not None}
    mlflow.log_metrics({key: n for key, n in known.items() if n == n}, step=step)


def _log_params(mlflow: ModuleType, name: str, values: Mapping[str, Any]) -> None:
    """Log parameters; again and the same is nothing new to MLflow, and another value an error."""
    mlflow.log_params({f"{name}.{key}": str(value)[:_LONGEST] for key, value in values.items()})


def _mlflow() -> ModuleType:
    try:
        import mlflow
    except ImportError as error:
        raise ImportError(
            "hetcal.integrations.mlflow needs MLflow. Install with: pip install 'hetcal[mlflow]'."
        ) from error
    return mlflow
