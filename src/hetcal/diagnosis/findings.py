"""What a diagnosis found, as plain data: numbers, texts and lists of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Data:
    """What was looked at.

    ``event`` says what a probability is about, ``positive`` is the class that two-class pictures
    show (None for more classes), ``order`` how out-of-sample predictions were made.
    """

    name: str
    n_items: int
    n_features: int
    features: list[str]
    classes: list[str]
    counts: list[int]
    event: str
    positive: str | None = None
    n_groups: int | None = None
    n_test: int | None = None
    n_test_scored: int = 0
    weighted: bool = False
    order: str = "shuffled"
    n_scored: int = 0


@dataclass(frozen=True)
class Figure:
    """A number with its interval and meaning; None where there is none."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    meaning: str


@dataclass(frozen=True)
class Certainty:
    """Whether something is hidden; see :class:`hetcal.diagnosis.Certainty`.

    ``detectable`` and its share of the Brier score are None where nothing would have been found.
    """

    state: str
    meaning: str
    p_value: float | None = None
    detectable: float | None = None
    detectable_share: float | None = None
    items_to_settle: int | None = None
    groups_to_settle: int | None = None


@dataclass(frozen=True)
class Verdict:
    """What to do now, how sure it is, the call and command to copy, and the numbers behind it.

    ``void`` where a warning must be settled first; ``headline`` is the verdict, or then what the
    warning asks for; ``belong_together`` names columns whose equal values belong together, where
    ``groups`` does not say so; ``command_title`` says what the command is for.
    """

    verdict: str
    meaning: str
    certainty: Certainty
    reasons: list[str]
    call: str
    headline: str = ""
    command: str | None = None
    command_title: str = "Do this"
    retraining_call: str | None = None
    recommended: str = "uncalibrated"
    best_map: str | None = None
    expected_gain: Figure | None = None
    void: bool = False
    belong_together: list[str] = field(default_factory=list)
    evidence: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Score:
    """One metric of one method, its 95 % interval; ``difference`` is paired, to the best."""

    value: float
    standard_error: float | None
    difference: float
    difference_se: float | None
    best: bool
    within_one_se: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MethodRow:
    """One method; ``scope`` is "uncalibrated", "global", "local" or "retrained"."""

    method: str
    label: str
    scope: str
    how: str
    scores: dict[str, Score]


@dataclass(frozen=True)
class Bin:
    """A bin of a reliability diagram: mean prediction, observed share, its band, items."""

    predicted: float
    observed: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: bins, and how many items fall into twenty equal steps.

    ``ece_debiased`` is the calibration error less what chance adds to it.
    """

    name: str
    bins: list[Bin]
    counts: list[int]
    ece: float
    ece_debiased: float | None = None


@dataclass(frozen=True)
class HiddenCell:
    """Hidden heterogeneity somewhere: at probability ``at``, or in a class and confidence range."""

    name: str
    at: float | None
    low: float | None
    high: float | None
    hh: float | None
    hh_global: float | None
    hh_local: float | None
    standard_error: float | None
    q_value: float | None
    count: int


@dataclass(frozen=True)
class Hidden:
    """Hidden heterogeneity: its mean, its two parts, the test, and where it is."""

    mean: float
    global_part: float
    local_part: float
    standard_error: float
    p_value: float
    radius: float
    covered: float
    n_items: int
    kind: str
    cells: list[HiddenCell]


@dataclass(frozen=True)
class Subgroup:
    """A sub-population in words: what was said, what happened, with a 95 % interval."""

    rule: str
    label: str
    count: int
    predicted: float
    observed: float
    low: float
    high: float
    gap: float
    gain: float
    p_value: float
    after_global_map: float
    global_map_repairs: bool


@dataclass(frozen=True)
class Histogram:
    """Counts between edges, which grow by a constant factor; what lies outside is in the ends."""

    name: str
    edges: list[float]
    counts: list[int]
    median: float
    share_low: float


@dataclass(frozen=True)
class Support:
    """How much calibration data stands behind each item.

    ``typical_low`` is the value that one in twenty calibration items stays below.
    """

    typical_low: float
    histograms: list[Histogram]


@dataclass(frozen=True)
class WeakItem:
    """An item with little support: what stands beside it, and a few of its features."""

    table: str
    row: int
    support: float
    predicted: float
    calibrated: float
    label: str
    features: dict[str, str]


@dataclass(frozen=True)
class CurvePoint:
    """Brier score at a calibration size."""

    size: int
    value: float
    standard_error: float | None


@dataclass(frozen=True)
class MethodCurve:
    """The learning curve of one method, and what it says about more data."""

    method: str
    label: str
    points: list[CurvePoint]
    more_data: str


@dataclass(frozen=True)
class CostRow:
    """Mean cost per item of the decisions that a method's probabilities recommend."""

    method: str
    label: str
    cost: float
    low: float
    high: float


@dataclass(frozen=True)
class DecisionCurve:
    """Net benefit of acting above each threshold."""

    name: str
    net_benefit: list[float]


@dataclass(frozen=True)
class Cost:
    """Expected cost, and the decision curve of two classes (``thresholds`` empty for more)."""

    matrix: list[list[float]]
    rows: list[CostRow]
    thresholds: list[float]
    threshold: float | None
    curves: list[DecisionCurve]


@dataclass(frozen=True)
class Findings:
    """Everything that was measured and judged; reports show it and compute nothing.

    The attributes are those of :class:`hetcal.Report`.
    """

    data: Data
    verdict: Verdict
    comparison: list[MethodRow] = field(default_factory=list)
    reliability: list[Reliability] = field(default_factory=list)
    hidden: Hidden | None = None
    subgroups: list[Subgroup] = field(default_factory=list)
    by: list[Subgroup] = field(default_factory=list)
    support: Support | None = None
    weakest: list[WeakItem] = field(default_factory=list)
    learning_curve: list[MethodCurve] = field(default_factory=list)
    cost: Cost | None = None
    warnings: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    test: list[MethodRow] = field(default_factory=list)
    test_reliability: list[Reliability] = field(default_factory=list)


def number(value: Any) -> float | None:
    """Return a float, None where it is missing or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def read(kind: type[T], record: Mapping[Any, Any], **more: Any) -> T:
    """Return a dataclass from the entries of a record that have its names, and ``more``.

    Numbers that are missing or not finite become None.
    """
    known = {f.name: record[f.name] for f in fields(kind) if f.name in record}  # type: ignore[arg-type]
    plain = {
        name: number(value) if isinstance(value, float) else value for name, value in known.items()
    }
    return kind(**plain, **more)
