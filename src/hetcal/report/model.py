"""The report as plain data: numbers, texts and lists. Views read it and compute nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hetcal.persistence.atomic_file import write_atomic
from hetcal.report import codec

#: Version of the JSON form; raised when a field changes its meaning or goes away.
FORMAT = 1


@dataclass(frozen=True)
class Data:
    """What was looked at.

    ``event`` says what a probability is about, ``positive`` is the class that two-class pictures
    show (None for more classes), ``order`` how honest predictions were made.
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
class Verdict:
    """What to do, why, and the call and command to copy."""

    verdict: str
    meaning: str
    reasons: list[str]
    call: str
    command: str | None = None
    recommended: str = "uncalibrated"
    best_map: str | None = None
    n_needed: int | None = None
    evidence: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Score:
    """One metric of one method; ``difference`` is paired, to the best method."""

    value: float
    standard_error: float | None
    difference: float
    difference_se: float | None
    best: bool
    within_one_se: bool


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
    """A reliability diagram: bins, and how many items fall into twenty equal steps."""

    name: str
    bins: list[Bin]
    counts: list[int]
    ece: float


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
class Report:
    """What :func:`hetcal.diagnose` found; terminal, HTML and JSON are views of it.

    Attributes
    ----------
    data : Data
    verdict : Verdict
    comparison : list of MethodRow
        Lowest Brier score first.
    reliability : list of Reliability
        Before and after.
    hidden : Hidden or None
        None where there were too few items to measure it.
    subgroups : list of Subgroup
        Found in the data, largest gain first.
    by : list of Subgroup
        The groups that were asked for.
    support : Support or None
    weakest : list of WeakItem
    learning_curve : list of MethodCurve
        Empty unless asked for.
    cost : Cost or None
    test : list of MethodRow
        The same methods on the labels of the test table; empty where it has none.
    test_reliability : list of Reliability
    warnings, notes : list of str
        What may mislead, and what was assumed about the table.
    settings, versions, seconds : dict
        How it was made.
    command : str or None
        The command that made it.

    Examples
    --------
    >>> import hetcal
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(300, random_state=0)
    >>> report = hetcal.diagnose(data.X, data.y, y_proba=data.y_proba)
    >>> hetcal.Report.from_json(report.to_json()) == report
    True
    """

    title: str
    created: str
    data: Data
    verdict: Verdict
    comparison: list[MethodRow]
    reliability: list[Reliability]
    hidden: Hidden | None
    subgroups: list[Subgroup]
    by: list[Subgroup]
    support: Support | None
    weakest: list[WeakItem]
    learning_curve: list[MethodCurve]
    cost: Cost | None
    warnings: list[str]
    notes: list[str]
    settings: dict[str, str]
    versions: dict[str, str]
    seconds: dict[str, float]
    command: str | None = None
    test: list[MethodRow] = field(default_factory=list)
    test_reliability: list[Reliability] = field(default_factory=list)
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, numbers and texts."""
        return codec.to_plain(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON, and write it to ``path`` where one is given."""
        text = codec.to_json(self)
        if path is not None:
            write_atomic(path, text)
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Return the report from JSON text, or from a file (a :class:`~pathlib.Path`)."""
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        return codec.from_json(cls, text, format=FORMAT)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained HTML page, and write it to ``path`` where one is given."""
        from hetcal.report.html.page import page

        text = page(self)
        if path is not None:
            write_atomic(path, text)
        return text

    def text(self, *, width: int = 80) -> str:
        """Return the verdict, its reasons and the main tables as plain text."""
        from hetcal.report.text import text

        return text(self, width=width)

    def method(self, name: str) -> MethodRow:
        """Return the row of one method."""
        return next(row for row in self.comparison if row.method == name)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from hetcal.report.html.page import notebook

        return notebook(self)
