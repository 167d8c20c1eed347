"""What every test run shares."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# A slow machine, or an unlucky start of the search, says nothing about the code.
_NOT_OURS = [HealthCheck.too_slow, HealthCheck.filter_too_much]
_PATIENT = {"deadline": None, "suppress_health_check": _NOT_OURS}
# A person explores new examples with every run; a gate must not depend on the draw.
settings.register_profile("person", **_PATIENT)
settings.register_profile("gate", derandomize=True, **_PATIENT)
settings.load_profile("gate" if os.environ.get("CI") else "person")

# As the command does: on a busy machine threads that spin while they wait take minutes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Workers (`-n 2`) have the cores already: more threads in each would wait for those of the others.
# In the environment it would be too late here: plugins have loaded numpy.
if "PYTEST_XDIST_WORKER" in os.environ:
    threadpool_limits(1)

# Pictures are drawn to memory on machines without a screen.
os.environ.setdefault("MPLBACKEND", "Agg")


def _declare_commands() -> None:
    """Give a tree that is not installed (PYTHONPATH=src) the entry points of pyproject.toml.

    For this process and those that it starts; an installed package has them already.
    """
    if entry_points(group="hetcal.commands"):
        return
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    info = folder / "hetcal_commands-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hetcal-commands\nVersion: 0\n")
    lines = ["[hetcal.commands]"]
    lines += [f"{name} = {app}" for name, app in project["entry-points"]["hetcal.commands"].items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    sys.path.append(str(folder))
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(folder)])
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


_declare_commands()


def pytest_report_header() -> str:
    """Say which hetcal is tested: a run against the wrong copy or core should be seen at once."""
    import hetcal
    from hetcal.kernels import core_name

    data = os.environ.get("HETCAL_DATA") or "not set: tests on the paper's data are skipped"
    return f"hetcal: {core_name()} core, from {hetcal.__path__[0]}\nHETCAL_DATA: {data}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector of unused objects away from modules and tests, which stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the package only: there are none in the tests."""
    found = yield
    return [collector for collector in found if type(collector) is pytest.Module]


@pytest.fixture(scope="session")
def small_hybrids() -> Callable[[], AbstractContextManager[None]]:
    """Return a context in which hybrids have few experts and trees, unless others are asked for.

    For tests of what is made of a hybrid: its fit would take most of their time.
    """
    from hetcal import HybridCalibrator

    fit_set = HybridCalibrator.fit_set  # what `fit`, the advice and the comparison all come to

    def small_fit(self, items):
        if self.experts == "auto":
            self.set_params(experts=["forests", "proximity"], n_estimators=30)
        return fit_set(self, items)

    @contextmanager
    def context() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HybridCalibrator, "fit_set", small_fit)
            yield

    return context


@pytest.fixture(scope="module")
def with_small_hybrids(small_hybrids) -> Iterator[None]:
    """Let all hybrids of a module's tests be small: ``usefixtures`` of this asks for it."""
    with small_hybrids():
        yield


@pytest.fixture(scope="session")
def started(pytestconfig) -> Callable[..., Any]:
    """Return a function that runs a command in a process of its own, in milliseconds.

    The processes come from a server that has imported everything and has computed nothing.
    """
    from tests.faults import processes

    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("needs processes that are copies of one that is ready")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(processes.MODULES))
    paths = [str(pytestconfig.rootpath), *sys.path]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(sys, "path", paths)
        first = context.Process(target=processes.nothing)
        first.start()
        first.join()
        assert first.exitcode == 0

    def start(work, *arguments):
        process = context.Process(target=work, args=arguments)
        process.start()
        return process

    return start


# On the pure core a local forest takes a hundred times as long, and these grow thousands of them.
# What the two cores share is tested kernel by kernel (tests/kernels), on both.
_THOUSANDS_OF_FORESTS = (
    "tests/heterogeneity/test_estimator",
    "tests/heterogeneity/test_backends",
    "swc-hh",
    "test_subgroups",
    "test_diagnose",
    "tests/report",
)
# What these show is a matter of statistics, the same on either core, and takes many fits.
_SIMULATIONS = (
    "test_shuffled_labels_give_local_experts_no_weight",
    "test_out_of_sample_brier_equals_brier_on_fresh_items",
    "test_gains_where_there_is_something_to_gain",
    "test_the_level_is_kept_under_any_map",
    "test_the_rate_is_right_over_redrawn_sets",
    "test_a_stationary_stream",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what would take the pure core many minutes, and say so."""
    from hetcal.kernels import core_name

    if core_name() == "native":
        return
    reason = "many forests or fits, which take the pure core many minutes"
    for item in items:
        if any(part in item.nodeid for part in (*_THOUSANDS_OF_FORESTS, *_SIMULATIONS)):
            item.add_marker(pytest.mark.skip(reason=reason))
