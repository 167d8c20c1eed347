"""The package without the folder of the paper's experiments: everything else runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.patience import PATIENCE

import hetcal

pytestmark = pytest.mark.processes

REST = """
import sys
from importlib import import_module
from pkgutil import walk_packages

import hetcal
from hetcal.datasets import make_hidden_heterogeneity

for found in walk_packages(hetcal.__path__, "hetcal."):
    if not found.name.endswith(("__main__", "_native")):
        import_module(found.name)
assert not [name for name in sys.modules if name.startswith("hetcal.paper")]
data = make_hidden_heterogeneity(60, heterogeneity=0.3, random_state=0)
calibrator = hetcal.get_calibrator("swc").fit(data.X, data.y, y_proba=data.y_proba)
assert calibrator.predict_proba(data.X, y_proba=data.y_proba).shape == (60, 2)
report = hetcal.diagnose(data.X, data.y, y_proba=data.y_proba)
assert report.to_dict()
print(hetcal.__path__[0])
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """A copy of the package without the folder ``paper``."""
    folder = tmp_path_factory.mktemp("without")
    ignore = shutil.ignore_patterns("paper")  # what is compiled already need not be again
    shutil.copytree(Path(hetcal.__file__).parent, folder / "hetcal", ignore=ignore)
    assert not (folder / "hetcal" / "paper").exists()
    return folder


def python(
    folder: Path, *arguments: str, package: Path, beside: str = ""
) -> subprocess.CompletedProcess[str]:
    # -S: without the hook of an editable install, which would find the package before its copy.
    paths = [str(package), beside, *sys.path]
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        timeout=PATIENCE,
        check=False,
    )


def test_everything_else_is_imported_and_runs(without):
    done = python(without, "-c", REST, package=without)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(without / "hetcal")


def test_other_commands_run(without, tmp_path):
    rows = [f"{i % 7},{(i * 5) % 11 / 10:.1f},{'yes' if i % 3 else 'no'}" for i in range(60)]
    (tmp_path / "items.csv").write_text("\n".join(["x,p,label", *rows]))
    table = ["items.csv", "--label", "label", "--proba", "p", "--positive", "yes"]
    options = ["--method", "platt", "-o", "model.hetcal", "--quiet"]
    done = python(tmp_path, "-m", "hetcal", "fit", *table, *options, package=without)
    assert done.returncode == 0, done.stderr
    done = python(tmp_path, "-m", "hetcal", "inspect", "model.hetcal", package=without)
    assert "platt" in done.stdout.lower(), done.stderr


@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
def test_the_missing_commands_say_how_to_get_them(without, tmp_path, declared):
    """Whether an entry point still names them or not."""
    if declared:
        info = tmp_path / "other-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 0\n")
        points = "[hetcal.commands]\npaper = hetcal.paper.commands:app\n"
        (info / "entry_points.txt").write_text(points)
    call = partial(python, tmp_path, "-m", "hetcal", package=without, beside=str(tmp_path))
    done = call("paper", "table", "moons", "--trials", "1")
    assert done.returncode == 1
    assert "'hetcal paper' are not installed here" in done.stderr
    assert "pip install 'hetcal[paper]'" in done.stderr
    done = call("paper", "--help")
    assert done.returncode == 0
    assert "hetcal[paper]" in done.stdout
