"""The paper's figures by name, and one that it leaves open.

:func:`draw_figure` computes and draws one; :func:`figure_names` lists them. What a figure shows
comes with it as a small table (``facts``), which is what the claims are checked against.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from hetcal.paper.settings import Trial
from hetcal.persistence.atomic_file import AtomicFile, write_atomic
from hetcal.plotting.style import require_pyplot


@dataclass(frozen=True, eq=False)
class DrawnFigure:
    """A figure and the numbers in it.

    Attributes
    ----------
    figure : matplotlib Figure
    facts : DataFrame
        What the figure shows, small enough to keep beside the results.
    """

    figure: Any
    facts: pd.DataFrame

    def save(self, target: Path, *, dpi: int) -> None:
        """Write the picture, in the format that the name asks for, and let go of it."""
        plt = require_pyplot("DrawnFigure.save")
        with AtomicFile(target) as stream:
            picture = target.suffix[1:].lower() or "png"
            self.figure.savefig(stream, format=picture, dpi=dpi)
        plt.close(self.figure)

    def keep_facts(self, results: str | Path, name: str) -> None:
        """Write the facts to ``figures/<name>.csv`` in the results folder."""
        target = facts_file(results, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = self.facts.to_csv(index=False, lineterminator="\n", float_format="%.8g")
        write_atomic(target, text)


def facts_file(results: str | Path, name: str) -> Path:
    """Return where the facts of a figure are kept."""
    return Path(results) / "figures" / f"{name}.csv"


# Name: module, and what the figure is called. In the order of the paper.
_FIGURES = {
    "learning-curves": ("learning_curves", "Figure 1: Brier score and calibration set size"),
    "improvement": ("improvement", "Figure 2: improvement and hidden heterogeneity"),
    "moons": ("moons", "Figure 3: the moons, before and after"),
    "cifar": ("cifar", "Figure 4: three networks on CIFAR-10 and CIFAR-100"),
    "support-low": ("support_low", "Figure 5: the items of least support"),
    "rotation": ("rotation", "Figure 6: support under rotation"),
    "appendix-binary": ("appendix", "Figure 7: the four binary data sets"),
    "appendix-multiclass": ("appendix", "Figure 8: the three multi-class data sets"),
    "shift": ("shift", "A biased training sample, calibrated on the target"),
}


def figure_names() -> list[str]:
    """Return the names that :func:`draw_figure` knows, in the paper's order.

    Examples
    --------
    >>> figure_names()[:3]
    ['learning-curves', 'improvement', 'moons']
    """
    return list(_FIGURES)


def figure_title(name: str) -> str:
    """Return what a figure shows, in a line.

    Examples
    --------
    >>> figure_title("rotation")
    'Figure 6: support under rotation'
    """
    return _entry(name)[1]


def figure_trials(name: str, trials: int = 10, own: Sequence[str] = ()) -> list[Trial]:
    """Return the trials that a figure draws; none for a figure that computes what it shows.

    Parameters
    ----------
    name : str
        See :func:`figure_names`.
    trials : int, default=10
        Seeds 0, 1, ...
    own : sequence of str
        Methods beside the paper's.

    Examples
    --------
    >>> len(figure_trials("learning-curves", trials=1))
    216
    """
    module = _module(name)
    return module.trials_needed(name, trials, own) if hasattr(module, "trials_needed") else []


def draw_figure(
    name: str,
    *,
    results: str | Path = "experiments/results",
    trials: int = 10,
    progress: Callable[[str], object] | None = None,
) -> DrawnFigure:
    """Draw one figure.

    Parameters
    ----------
    name : str
        See :func:`figure_names`.
    results : path, default="experiments/results"
        Folder with the results of trials. Figures 1, 2, 4, 7 and 8 draw what is there; the others
        compute what they show and need no results.
    trials : int, default=10
        Trials (seeds 0, 1, ...) that a figure may average.
    progress : callable, optional
        Called with a line of text at each step of a long computation.
    """
    module = _module(name)
    require_pyplot(f"The figure {name!r}")
    return module.draw(name, Path(results), trials, progress or (lambda _: None))


def _module(name: str) -> Any:
    return import_module(f"hetcal.paper.figures.{_entry(name)[0]}")


def _entry(name: str) -> tuple[str, str]:
    if name not in _FIGURES:
        raise ValueError(f"There is no figure {name!r}; choose one of {', '.join(_FIGURES)}.")
    return _FIGURES[name]
