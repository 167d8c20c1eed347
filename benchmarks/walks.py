"""Walks through hetcal: which modules are entered, and what is checked and encoded how often.

Walked are ``hetcal diagnose`` on a table, ``HybridCalibrator.fit``, ``hetcal apply``, ``hetcal
monitor``, and an update with labels and an extension of a monitor that watches a distance too.
Printed per walk:

- the packages in the order in which modules of theirs are entered for the first time, without those
  that everybody calls (``kernels`` and what stands below it in the import order);
- steps back: how often that order goes up the import order, to a package above the one before;
- validations: how often the classifier's output on the rows of the table is checked;
- encodings: how often their features become numbers, by the way of treating missing values.

    python benchmarks/walks.py
"""

from __future__ import annotations

import pkgutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import CO_OPTIMIZED
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import hetcal
from hetcal import HybridCalibrator, SimilarityCalibrator, SupportMonitor
from hetcal._validation import check_logits, check_proba
from hetcal._validation.features import FeatureEncoder
from hetcal.cli import main
from hetcal.datasets import make_hidden_heterogeneity

_CHECKS = {check_proba.__code__, check_logits.__code__}
_ENCODING = FeatureEncoder.transform.__code__


@dataclass
class Walk:
    """What happens to the rows of a table while something runs; only whole tables are counted."""

    n_rows: int
    modules: dict[str, None] = field(default_factory=dict)  # in order, each once
    validations: int = 0
    encodings: Counter[str] = field(default_factory=Counter)

    def run(self, action: Callable[[], object]) -> Walk:
        """Run something and watch it."""
        sys.setprofile(self._watch)
        try:
            action()
        finally:
            sys.setprofile(None)
        return self

    def _watch(self, frame: FrameType, event: str, _: Any) -> None:
        name, code = frame.f_globals.get("__name__", ""), frame.f_code
        # Bodies of modules and classes run when they are imported, and are not optimised.
        if event != "call" or not name.startswith("hetcal.") or not code.co_flags & CO_OPTIMIZED:
            return
        self.modules.setdefault(name)
        if code in _CHECKS:
            self.validations += self._is_whole(frame.f_locals[code.co_varnames[0]])
        elif code is _ENCODING and self._is_whole(frame.f_locals["X"]):
            self.encodings[frame.f_locals["self"].missing] += 1

    def _is_whole(self, rows: Any) -> bool:
        return np.shape(rows)[0] == self.n_rows

    @property
    def packages(self) -> list[str]:
        """Packages in the order in which modules of theirs were entered first."""
        order = [name.split(".")[1] for name in self.modules]
        return [name for name, _ in groupby(name for name in order if not _is_tool(name))]

    def steps_back(self) -> int:
        """Return how often a package comes after one that stands below it."""
        places = [_layers()[package] for package in self.packages]
        return sum(after < before for before, after in pairwise(places))


@cache
def _layers() -> dict[str, int]:
    """Return the place of each package in the import order, the highest first."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name: place for place, layer in enumerate(layers) for name in layer.split(" | ")}


def _is_tool(package: str) -> bool:
    return _layers()[package] >= _layers()["kernels"]


def import_everything() -> None:
    """Import all modules, so that what they do then is no part of a walk."""
    for module in pkgutil.walk_packages(hetcal.__path__, "hetcal."):
        if not module.name.startswith(("hetcal.dask", "hetcal.paper", "hetcal.__main__")):
            import_module(module.name)


def prepare(folder: Path, n_rows: int) -> dict[str, Callable[[], object]]:
    """Write a table and a calibrator into a folder; return what is walked, by name."""
    data = make_hidden_heterogeneity(n_rows, heterogeneity=1.0, random_state=0)
    no, yes = data.y_proba.T
    labels = np.array(["no", "yes"])[data.y]
    table, new, model = folder / "table.csv", folder / "later.csv", folder / "model.hetcal"
    frame = data.frame().assign(p_no=no, p_yes=yes, outcome=labels)
    frame.to_csv(table, index=False)
    frame.assign(**{frame.columns[0]: frame.iloc[::-1, 0].to_numpy()}).to_csv(new, index=False)
    columns = ("--label", "outcome", "--proba", "p_*")
    command("fit", table, *columns, "-o", model, "-q")
    given = {"y_proba": data.y_proba}
    hybrid, swc = HybridCalibrator(), SimilarityCalibrator().fit(data.X, data.y, **given)
    watcher = SupportMonitor(swc).fit(data.X, **given)
    return {
        "hetcal diagnose": lambda: command(
            "diagnose", table, *columns, "-q", "-o", folder / "report.html"
        ),
        "HybridCalibrator.fit": lambda: hybrid.fit(data.X, data.y, **given),
        "hetcal apply": lambda: command("apply", model, table, "-q", "-o", folder / "new.csv"),
        "hetcal monitor": lambda: command("monitor", model, new, "-q"),
        "SupportMonitor.update": lambda: watcher.update(data.X, y=data.y, **given),
        "SupportMonitor.extend": lambda: watcher.extend(data.X, data.y, **given),
    }


def command(*arguments: object) -> None:
    """Run a command, which must succeed."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        if ended.code:
            raise


def tell(name: str, walk: Walk) -> str:
    """Return a walk in words."""
    encodings = ", ".join(f"{n} ({missing})" for missing, n in walk.encodings.items())
    return (
        f"{name}: {len(walk.modules)} modules, {walk.steps_back()} steps back, validations "
        f"{walk.validations}, encodings {encodings or 0}\n    {' -> '.join(walk.packages)}"
    )


if __name__ == "__main__":
    import_everything()
    with tempfile.TemporaryDirectory() as name:
        walks = {what: Walk(200).run(action) for what, action in prepare(Path(name), 200).items()}
    for what, walk in walks.items():
        print(tell(what, walk))
