"""Warnings that a thread leaves out or collects are its own; the filters belong to all."""

from __future__ import annotations

import ast
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.patience import PATIENCE

import hetcal
from hetcal._exceptions import HetcalWarning, SupportWarning
from hetcal._quiet import collected, silenced


def overlapping(first, second):
    """Enter one context, then another in a second thread; leave the first one first."""
    entered, left = threading.Event(), threading.Event()

    def inner():
        with second:
            entered.set()
            assert left.wait(PATIENCE)

    thread = threading.Thread(target=inner, daemon=True)
    with first:
        thread.start()
        assert entered.wait(PATIENCE)
    left.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("make", [silenced, collected])
def test_threads_that_overlap_leave_filters_as_they_were(make):
    before, shown_by = list(warnings.filters), warnings.showwarning
    overlapping(make(), make())
    assert warnings.filters == before
    assert warnings.showwarning is shown_by
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", stacklevel=1)


def test_catch_warnings_would_leave_them_changed():
    """What the tests above look for does happen."""
    with warnings.catch_warnings():
        before = list(warnings.filters)

        class Ignoring(warnings.catch_warnings):
            def __enter__(self):
                super().__enter__()
                warnings.simplefilter("ignore")

        overlapping(Ignoring(), Ignoring())
        assert warnings.filters != before


def test_other_threads_are_heard():
    with silenced(), ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(warnings.warn, "elsewhere")
        warnings.warn("here", stacklevel=1)
        with pytest.raises(UserWarning, match="elsewhere"):  # the tests make errors of warnings
            elsewhere.result(PATIENCE)


def test_the_innermost_wish_holds_for_its_categories():
    with collected() as outer, silenced(HetcalWarning):
        warnings.warn("left out", SupportWarning, stacklevel=1)
        with collected() as inner:
            warnings.warn("inside", SupportWarning, stacklevel=1)
            warnings.warn("inside", SupportWarning, stacklevel=1)
        warnings.warn("another kind", RuntimeWarning, stacklevel=1)
    assert [str(warning.message) for warning in inner] == ["inside", "inside"]
    assert [str(warning.message) for warning in outer] == ["another kind"]


def test_errors_come_through():
    before = list(warnings.filters)
    with pytest.raises(ZeroDivisionError), collected():
        raise ZeroDivisionError
    assert warnings.filters == before


def test_filters_of_others_stay():
    """Those that are set inside stay, and those of a context that ends inside go."""
    with warnings.catch_warnings():
        with silenced(), warnings.catch_warnings():
            warnings.simplefilter("error", SupportWarning)
        with silenced():
            warnings.simplefilter("ignore", SupportWarning)
        assert warnings.filters[0][:3:2] == ("ignore", SupportWarning)
        warnings.warn("ignored", SupportWarning, stacklevel=1)


def test_no_other_module_changes_the_filters():
    """But for the command line, which shows warnings in its own way from its start to its end."""
    changing = {"catch_warnings", "simplefilter", "filterwarnings", "resetwarnings"}
    source = Path(hetcal.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in changing
    }
    assert found == {"_quiet.py", "cli/_console.py"}


def test_fits_side_by_side_leave_the_filters_as_they_were(eager):
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1], 40)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    before = list(warnings.filters)

    def fit(_):
        hetcal.get_calibrator("global").fit(X, y, y_proba=P)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fit, range(12)))
    assert warnings.filters == before
