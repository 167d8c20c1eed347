"""The small bugs that ``benchmarks/mutations.py`` tries can still be made in the code as it is."""

import os
import signal
from pathlib import Path

import pytest

import hetcal

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_every_bug_has_its_place_and_its_tests(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import mutations

    package = Path(hetcal.__file__).parent
    for mutation in mutations.MUTATIONS:
        path, after = mutations.apply(mutation, package)
        assert after != path.read_text(encoding="utf-8"), mutation.name
        assert mutations.find_tests(mutation.tests)
    names = [mutation.name for mutation in mutations.MUTATIONS]
    assert len(set(names)) == len(names)


def test_a_bug_without_a_place_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import mutations

    gone = mutations.MUTATIONS[0]._replace(fragment="what nobody wrote")
    with pytest.raises(LookupError, match="found it 0 times"):
        mutations.apply(gone, Path(hetcal.__file__).parent)
    with pytest.raises(LookupError, match="no test 'test_nothing'"):
        mutations.find_tests(["test_nothing"])


def test_a_run_that_never_was_is_no_bug_found(monkeypatch):
    """A crash tells of the bug; that pytest gave up tells of the surroundings only."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import mutations

    names, folder = ["test_mutation_list.py"], BENCHMARKS
    monkeypatch.setattr(mutations, "_run_tests", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert mutations.first_failure(names, folder) == "the end of the process"
    monkeypatch.setattr(mutations, "_run_tests", lambda *_: os._exit(3))
    with pytest.raises(RuntimeError, match="pytest could not run"):
        mutations.first_failure(names, folder)
