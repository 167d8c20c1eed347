"""The package as a whole: it imports quickly, quietly and with its required dependencies only."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from tests.patience import PATIENCE

import hetcal
from hetcal.kernels import core_name

ROOT = Path(__file__).parents[1]
# Every optional library; a plain install has none of them.
EXTRAS = ("matplotlib", "polars", "pyarrow", "skops", "torch", "dask")
EXTRAS += ("onnx", "onnxruntime", "duckdb")

# Makes the named modules as good as not installed, in a fresh interpreter.
BLOCK = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
"""


def in_fresh_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=PATIENCE,
        check=False,
    )


def test_version_is_that_of_the_metadata():
    with contextlib.suppress(metadata.PackageNotFoundError):  # run from the source folder
        assert metadata.version("hetcal") == hetcal.__version__
    assert re.match(r"\d+\.\d+\.\d+", hetcal.__version__)


def test_changelog_and_citation_have_the_version():
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[1]
    assert heading == ("Unreleased" if ".dev" in hetcal.__version__ else hetcal.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {hetcal.__version__}\n" in citation


def test_the_declared_pythons_are_tested_and_get_wheels():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = re.findall(r"Python :: (3\.\d+)", str(project["project"]["classifiers"]))
    tests = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert re.findall(r"3\.\d+", re.search(r"python: \[(.*)\]", tests)[1]) == declared
    wheels = [f"cp{version.replace('.', '')}-*" for version in declared]
    assert project["tool"]["cibuildwheel"]["build"] == wheels
    assert project["project"]["requires-python"] == f">={declared[0]}"


@pytest.mark.parametrize("name", hetcal.__all__)
def test_public_names_resolve(name):
    assert getattr(hetcal, name) is not None
    assert name in dir(hetcal)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hetcal.nonsense


def test_import_is_quiet_and_changes_nothing():
    code = """
import os, sys, threading, warnings
before = dict(os.environ), warnings.filters[:], threading.active_count(), os.getcwd()
import hetcal
assert before == (dict(os.environ), warnings.filters[:], threading.active_count(), os.getcwd())
# What takes long to import comes with the first name that needs it.
heavy = {"numpy", "scipy", "sklearn", "pandas", "matplotlib", "typer", "rich"} & set(sys.modules)
assert not heavy, heavy
loaded = {name for name in sys.modules if name.startswith("hetcal.")}
assert loaded == {"hetcal._version"}, loaded
"""
    done = in_fresh_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.processes
def test_plain_install_is_enough_and_packages_are_reached_by_attribute():
    code = (
        BLOCK.format(blocked=EXTRAS)
        + """
import numpy as np
import hetcal
for name in hetcal._PACKAGES:
    assert getattr(hetcal, name).__name__ == f"hetcal.{name}" and name in dir(hetcal)
assert callable(hetcal.tables.read_table) and callable(hetcal.persistence.describe)
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.metrics import evaluate
for name in hetcal.__all__:
    getattr(hetcal, name)
data = make_hidden_heterogeneity(200, random_state=0)
calibrator = hetcal.get_calibrator("temperature").fit(None, data.y, y_proba=data.y_proba)
Q = calibrator.predict_proba(y_proba=data.y_proba)
assert np.allclose(Q.sum(axis=1), 1)
assert len(evaluate(data.y, Q, n_bootstrap=5))
from hetcal.plotting import ReliabilityDisplay
display = ReliabilityDisplay.from_predictions(data.y, Q)
try:
    display.plot()
except ImportError as error:
    assert "pip install 'hetcal[plot]'" in str(error), error
else:
    raise AssertionError("plotting without matplotlib must say how to get it")
"""
    )
    done = in_fresh_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_architecture_page_lists_the_packages_in_their_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [set(layer.split(" | ")) for layer in contracts["contracts"][0]["layers"]]
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("|---|---|---:|")[2].partition("\n\n")[0].strip().splitlines()
    listed = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table]
    assert listed == [layer - {"__main__"} for layer in layers]


def test_only_declared_dependencies_are_required():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[\w-]+", requirement).group() for requirement in declared}
    assert names == {
        "numpy", "scipy", "scikit-learn", "joblib", "pandas", "narwhals", "typer", "rich", "jinja2",
        "filelock",
    }  # fmt: skip
    assert not [requirement for requirement in declared if "<" in requirement], "no upper caps"


def test_wrong_core_is_an_error_with_a_remedy():
    code = "from hetcal.kernels import core_name; core_name()"
    done = in_fresh_python(code, HETCAL_CORE="fast")
    assert done.returncode == 1
    assert "HETCAL_CORE must be one of auto, pure, native; got 'fast'. Unset it" in done.stderr


def test_pure_core_can_be_chosen():
    code = "from hetcal.kernels import core_name; print(core_name())"
    assert in_fresh_python(code, HETCAL_CORE="pure").stdout.strip() == "pure"


def test_native_core_is_used_or_its_absence_is_an_error():
    code = "from hetcal.kernels import core_name; print(core_name())"
    done = in_fresh_python(code, HETCAL_CORE="native")
    built = in_fresh_python(code, HETCAL_CORE="auto").stdout.strip() == "native"
    if built:
        assert done.stdout.strip() == "native"
    else:
        assert "without its compiled core" in done.stderr


def test_the_core_in_use_is_the_one_that_was_chosen():
    chosen = os.environ.get("HETCAL_CORE") or "auto"
    built = importlib.util.find_spec("hetcal._core._native") is not None
    assert core_name() == ({True: "native", False: "pure"}[built] if chosen == "auto" else chosen)


def test_typed():
    assert (Path(hetcal.__file__).parent / "py.typed").is_file()
