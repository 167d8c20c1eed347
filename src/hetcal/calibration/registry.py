"""Calibrators by short name, and their published variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hetcal._validation.text import closest
from hetcal.calibration import presets
from hetcal.calibration.atoms import AtomCalibration
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.blend import GlobalBlend
from hetcal.calibration.ensemble import EnsembleTemperatureScaling
from hetcal.calibration.histogram import HistogramBinning
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.calibration.isotonic import IsotonicCalibration
from hetcal.calibration.matrix import MatrixScaling
from hetcal.calibration.platt import PlattScaling
from hetcal.calibration.preserving import LabelPreserving
from hetcal.calibration.spline import SplineCalibration
from hetcal.calibration.temperature import BiasCorrectedTemperatureScaling, TemperatureScaling
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.calibration.vector import VectorScaling
from hetcal.calibration.venn_abers import VennAbersCalibration


@dataclass(frozen=True)
class CalibratorEntry:
    """What a short name stands for.

    Attributes
    ----------
    factory : callable
        The estimator class, or any function that returns an estimator.
    paper : mapping
        Parameters of the published variant; empty where there is only one variant.
    """

    factory: Callable[..., BaseCalibrator]
    paper: Mapping[str, Any] = field(default_factory=dict)


_ENTRIES: dict[str, CalibratorEntry] = {}
# What other libraries call it.
_ELSEWHERE = {"sigmoid": "platt", "logistic": "platt", "temp-scaling": "temperature"}


def register_calibrator(
    name: str, factory: Callable[..., BaseCalibrator], *, paper: Mapping[str, Any] | None = None
) -> None:
    """Make a calibrator available to :func:`get_calibrator`.

    Parameters
    ----------
    name : str
        The short name; must be new.
    factory : callable
        Called with the parameters that are passed to :func:`get_calibrator`.
    paper : mapping, optional
        Parameters that ``preset="paper"`` adds.
    """
    if name in _ENTRIES:
        raise ValueError(f"A calibrator named {name!r} is registered already. Choose another name.")
    _ENTRIES[name] = CalibratorEntry(factory, dict(paper or {}))


def list_calibrators() -> list[str]:
    """Return the short names that :func:`get_calibrator` knows.

    Examples
    --------
    >>> "temperature" in list_calibrators()
    True
    """
    return list(_ENTRIES)


def get_calibrator(
    name: str, *, preset: str | None = None, preserve: str | None = None, **params: Any
) -> BaseCalibrator:
    """Return an unfitted calibrator by its short name.

    Parameters
    ----------
    name : str
        ``"uncalibrated"``, ``"platt"``, ``"temperature"``, ``"bcts"``, ``"vector"``, ``"matrix"``,
        ``"ets"``, ``"beta"``, ``"quadratic"``, ``"spline"``, ``"isotonic"``, ``"histogram"``,
        ``"venn-abers"``, ``"atoms"``, ``"swc"``, ``"swc-hh"``, ``"sba"``, ``"sbaw"``,
        ``"hybrid"``; see :func:`list_calibrators`.
    preset : {None, "paper"}, optional
        "paper" gives the variant of the published experiments; every name takes it, also where
        there is only one variant.
    preserve : {None, "label"}, optional
        "label": no predicted class changes, at the smallest change of the probabilities; see
        :class:`~hetcal.calibration.preserving.LabelPreserving`.
    **params
        Parameters of the estimator; they win over the preset.

    Returns
    -------
    calibrator : BaseCalibrator
        An unfitted estimator.

    Examples
    --------
    >>> get_calibrator("platt", preset="paper")
    PlattScaling(monotone=False, prior_mass=0.0, score='proba', targets='platt')
    >>> get_calibrator("temprature")
    Traceback (most recent call last):
    ...
    ValueError: Unknown calibrator 'temprature'. Did you mean 'temperature'? Known names: ...
    """
    if name not in _ENTRIES:
        close = closest(_ELSEWHERE.get(name, str(name).lower()), _ENTRIES)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"Unknown calibrator {name!r}.{hint} Known names: {', '.join(_ENTRIES)}.")
    if preset not in (None, "paper"):
        raise ValueError(f"Unknown preset {preset!r}. Pass preset='paper', or leave it out.")
    entry = _ENTRIES[name]
    # A preset may hold estimators; every calibrator gets its own.
    published = deepcopy(dict(entry.paper)) if preset == "paper" else {}
    return preserving(entry.factory(**(published | params)), preserve)


def preserving(calibrator: BaseCalibrator, preserve: str | None) -> BaseCalibrator:
    """Return the calibrator, kept from changing what ``preserve`` names."""
    if preserve not in (None, "label"):
        raise ValueError(f"Unknown preserve={preserve!r}. Pass preserve='label', or leave it out.")
    if preserve is None:
        return calibrator
    return LabelPreserving(calibrator, classes=getattr(calibrator, "classes", None))


register_calibrator("uncalibrated", Uncalibrated)
register_calibrator(
    "platt",
    PlattScaling,
    paper={"score": "proba", "targets": "platt", "monotone": False, "prior_mass": 0.0},
)
register_calibrator(
    "temperature",
    TemperatureScaling,
    paper={"score": "log_odds", "smoothing": False, "bounds": (0.05, 5.0)},
)
register_calibrator("bcts", BiasCorrectedTemperatureScaling)
register_calibrator("vector", VectorScaling)
register_calibrator("matrix", MatrixScaling)
register_calibrator("ets", EnsembleTemperatureScaling)
register_calibrator("beta", BetaCalibration)
register_calibrator("quadratic", presets.quadratic)
register_calibrator("spline", SplineCalibration)
register_calibrator("isotonic", IsotonicCalibration, paper={"score": "proba", "pseudo_errors": 0.0})
register_calibrator(
    "histogram",
    HistogramBinning,
    paper={"n_bins": 100, "score": "proba", "cut": "runs", "normalize": False},
)
register_calibrator("venn-abers", VennAbersCalibration)
register_calibrator("atoms", AtomCalibration)
register_calibrator("global", GlobalBlend)
register_calibrator("swc", presets.swc, paper=presets.PAPER_SWC)
register_calibrator("swc-hh", presets.swc_hh, paper=presets.PAPER_SWC_HH)
register_calibrator("sba", presets.sba, paper=presets.PAPER_SBA)
register_calibrator("sbaw", presets.sbaw, paper=presets.PAPER_SBA)
register_calibrator("hybrid", HybridCalibrator)
