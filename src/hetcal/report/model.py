"""The report as plain data: numbers, texts and lists. Views read it and compute nothing."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from hetcal._version import __version__
from hetcal.diagnosis.findings import (
    Findings,
    MethodRow,
)
from hetcal.kernels import core_name
from hetcal.persistence.atomic_file import write_atomic
from hetcal.report import codec

#: Version of the JSON form; raised when a field changes its meaning or goes away.
FORMAT = 2
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas")


def versions() -> dict[str, str]:
    """Return what a report says about what it was made with."""
    own = {"hetcal": __version__, "core": core_name(), "Python": platform.python_version()}
    return own | {library: metadata.version(library) for library in _LIBRARIES}


@dataclass(frozen=True, kw_only=True)
class Report(Findings):
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
    >>> data = make_hidden_heterogeneity(60, random_state=0)
    >>> report = hetcal.diagnose(data.X, data.y, y_proba=data.y_proba)
    >>> hetcal.Report.from_json(report.to_json()) == report
    True
    """

    title: str
    created: str
    notes: list[str]
    versions: dict[str, str]
    command: str | None = None
    format: int = FORMAT

    @classmethod
    def of(cls, found: Findings) -> Self:
        """Return the report of what a diagnosis found."""
        name = found.data.name
        return cls(
            **vars(found),
            title=f"Calibration report{f': {name}' if name else ''}",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            notes=[],
            versions=versions(),
        )

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
