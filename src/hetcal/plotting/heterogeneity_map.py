"""Maps over two features: what a classifier says, what it hides, what calibration makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.plotting.style import require_pyplot

_NAME = "HeterogeneityMapDisplay"
_MARGIN = 0.08  # of the range of the points, around them


@dataclass(frozen=True, eq=False)
class HeterogeneityMapDisplay:
    """Panels of values over a plane, in rows (classifiers) and columns (what is shown).

    Make one with :meth:`from_functions` or :meth:`from_estimator`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    x, y : ndarray of shape (n_x,), (n_y,)
        Axes of the grid.
    panels : dict of dict of ndarray of shape (n_y, n_x)
        Values by row name and column name.
    hh_panels : tuple of str
        Columns that show hidden heterogeneity instead of probabilities.
    points : DataFrame or None
        Columns ``x``, ``y``, ``label``: items drawn over the maps.
    feature_names : tuple of str
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    panels: dict[str, dict[str, Matrix]]
    hh_panels: tuple[str, ...] = ("HH",)
    points: pd.DataFrame | None = None
    feature_names: tuple[str, str] = ("x0", "x1")

    @classmethod
    def from_functions(
        cls,
        X: Any,
        rows: Mapping[str, Mapping[str, Callable[[Matrix], Any] | Any]],
        *,
        labels: Any = None,
        hh_panels: Sequence[str] = ("HH",),
        resolution: int = 100,
        feature_names: tuple[str, str] = ("x0", "x1"),
    ) -> Self:
        """Evaluate functions on a grid that spans the items.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Items; the grid covers them.
        rows : dict of dict
            By row name and panel name: a function from points, shape (m, 2), to one value each, or
            the values themselves, shape (m,), in the order of :meth:`grid`.
        labels : array-like of shape (n,), optional
            Labels of the items; they are drawn over the maps if given.
        hh_panels : sequence of str, default=("HH",)
            Panels that show hidden heterogeneity; the others show probabilities.
        resolution : int, default=100
            Points per axis.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> display = HeterogeneityMapDisplay.from_functions(
        ...     X, {"a model": {"p": lambda G: 1 / (1 + np.exp(-G[:, 0]))}}, resolution=5)
        >>> display.panels["a model"]["p"].shape, len(display.frame())
        ((5, 5), 25)
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(
                f"{_NAME} needs items with two features; got X of shape {X.shape}. "
                "Choose two columns."
            )
        x, y = (_axis(column, resolution) for column in X.T)
        grid = _points(x, y)
        panels = {
            row: {name: _values(what, grid, row, name, len(y)) for name, what in columns.items()}
            for row, columns in rows.items()
        }
        points = None
        if labels is not None:
            points = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "label": np.asarray(labels)})
        return cls(x, y, panels, tuple(hh_panels), points, feature_names)

    @classmethod
    def from_estimator(
        cls, classifier: Any, hidden: Any, X: Any, *, labels: Any = None, resolution: int = 100
    ) -> Self:
        """Map what a classifier of two classes says, and the hidden heterogeneity beneath it.

        Parameters
        ----------
        classifier : classifier
            Fitted on two features; has ``predict_proba``.
        hidden : HiddenHeterogeneity
            Fitted with the classifier's probabilities.
        X : array-like of shape (n, 2)
            Items; the grid covers them.
        labels : array-like of shape (n,), optional
            Labels of the items; they are drawn over the maps if given.
        resolution : int, default=100
            Points per axis.
        """
        panels = {
            "p": lambda points: classifier.predict_proba(points)[:, 1],
            "HH": lambda points: hidden.score_samples(classifier.predict_proba(points)),
        }
        name = type(classifier).__name__
        return cls.from_functions(X, {name: panels}, labels=labels, resolution=resolution)

    @property
    def grid(self) -> Matrix:
        """The points at which the panels hold values, shape (n_y * n_x, 2)."""
        return _points(self.x, self.y)

    def frame(self) -> pd.DataFrame:
        """Return what is drawn: columns ``row``, ``panel``, ``x``, ``y``, ``value``."""
        grid = self.grid
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "row": row,
                        "panel": name,
                        "x": grid[:, 0],
                        "y": grid[:, 1],
                        "value": values.ravel(),
                    }
                )
                for row, columns in self.panels.items()
                for name, values in columns.items()
            ],
            ignore_index=True,
        )

    def plot(
        self,
        *,
        size: float = 2.4,
        probability_map: str = "RdBu_r",
        hh_map: str = "viridis",
        points: bool = True,
    ) -> Any:
        """Draw all panels.

        Parameters
        ----------
        size : float, default=2.4
            Inches per panel.
        probability_map, hh_map : str
            Colour maps of the two kinds of panels.
        points : bool, default=True
            Draw the items over the panels of the first column.

        Returns
        -------
        matplotlib Figure
        """
        plt = require_pyplot(f"{_NAME}.plot")
        names = list(dict.fromkeys(name for row in self.panels.values() for name in row))
        figure, axes = plt.subplots(
            len(self.panels),
            len(names),
            figsize=(size * len(names) + 1.2, size * len(self.panels) + 0.4),
            layout="constrained",
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        top = self._largest_hh()
        shown: dict[bool, Any] = {}
        for i, (row, columns) in enumerate(self.panels.items()):
            for j, name in enumerate(names):
                ax = axes[i, j]
                if name not in columns:
                    ax.set_axis_off()
                    continue
                is_hh = name in self.hh_panels
                shown[is_hh] = ax.pcolormesh(
                    self.x,
                    self.y,
                    columns[name],
                    cmap=hh_map if is_hh else probability_map,
                    vmin=0,
                    vmax=top if is_hh else 1,
                    shading="nearest",
                    rasterized=True,
                )
                if points and j == 0 and self.points is not None:
                    _draw_points(ax, plt, self.points)
                ax.set(title=name if i == 0 else "", ylabel=row if j == 0 else "")
                if i == len(self.panels) - 1:
                    ax.set_xlabel(self.feature_names[0])
        for is_hh, mesh in sorted(shown.items()):
            label = "hidden heterogeneity" if is_hh else "probability"
            figure.colorbar(mesh, ax=axes, label=label, shrink=0.7, pad=0.02)
        return figure

    def _largest_hh(self) -> float:
        values = [
            np.nanmax(panel, initial=0.0)
            for row in self.panels.values()
            for name, panel in row.items()
            if name in self.hh_panels
        ]
        return max([*values, 1e-3])


def _draw_points(ax: Any, plt: Any, points: pd.DataFrame) -> None:
    labels = sorted(points["label"].unique())
    colors = plt.get_cmap("RdBu_r")(np.linspace(0.02, 0.98, len(labels)))
    for label, color in zip(labels, colors, strict=True):
        part = points[points["label"] == label]
        ax.scatter(part["x"], part["y"], s=7, color=color, edgecolor="white", linewidth=0.3)


def _axis(values: NDArray[np.float64], resolution: int) -> NDArray[np.float64]:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low or 1.0)
    return np.linspace(low - margin, high + margin, resolution)


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> Matrix:
    return np.column_stack([part.ravel() for part in np.meshgrid(x, y)])


def _values(what: Any, grid: Matrix, row: str, name: str, n_rows: int) -> Matrix:
    values = np.asarray(what(grid) if callable(what) else what, dtype=np.float64)
    if values.size != len(grid):
        raise ValueError(
            f"{_NAME}: panel {name!r} of {row!r} must give one value per grid point ({len(grid)}); "
            f"got shape {values.shape}."
        )
    return values.reshape(n_rows, -1)
