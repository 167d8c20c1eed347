"""Apply small bugs one at a time, and see whether the tests notice.

Each mutation names a function, a piece of its source and what is put in its place, and the tests
that should fail then; all by name, so that files may move. The package is copied, each mutation is
applied to the copy in turn, and its tests run.

    python benchmarks/mutations.py                 # all of them, with the score at the end
    python benchmarks/mutations.py --only weight   # those with "weight" in their name
    python benchmarks/mutations.py --list          # only check that each can still be applied

A mutation that cannot be applied any more, or a test that is gone, is an error: rewrite it.
``tests/test_mutation_list.py`` says so on the day.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from mutation_list import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
_SECONDS = 600  # a mutation that runs into a loop without end counts as killed
_FORK = get_context("fork")
# Imported once, before the forks: they take longer than most of the tests.
_LIBRARIES = ("pandas", "polars", "pyarrow", "scipy.stats", "sklearn.ensemble")
# The hook of an editable install would find the package before its copy; also in new processes.
_WITHOUT_HOOK = (
    "import sys\n"
    "sys.meta_path[:] = [f for f in sys.meta_path if 'Redirecting' not in type(f).__name__]\n"
)


def apply(mutation: Mutation, package: Path) -> tuple[Path, str]:
    """Return the file that the mutation changes, and its text after; the file stays as it is."""
    # Spaces and line breaks may differ, since formatting does.
    pattern = re.compile(r"\s*".join(map(re.escape, mutation.fragment.split())))
    places = [
        (path, text, start + match.start(), start + match.end())
        for path, text in _texts(package)
        if f"def {mutation.function}(" in text or not mutation.function
        if pattern.search(text)  # much faster than to parse every file
        for start, source in _functions(text, mutation.function)
        for match in pattern.finditer(source)
    ]
    if len(places) != 1:
        raise LookupError(
            f"{mutation.name}: expected {mutation.fragment!r} once in functions called "
            f"{mutation.function!r}; found it {len(places)} times. Rewrite the mutation."
        )
    path, text, start, end = places[0]
    after = text[:start] + mutation.instead + text[end:]
    ast.parse(after)
    return path, after


@cache
def _texts(folder: Path) -> list[tuple[Path, str]]:
    """Return all Python files in a folder, as they were when first asked for."""
    return [(path, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))]


def _functions(text: str, name: str) -> list[tuple[int, str]]:
    """Return where functions of this name begin, and their source; "" is the whole module."""
    if not name:
        return [(0, text)]
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name and node.end_lineno:
            begin = starts[node.lineno - 1]
            found.append((begin, text[begin : starts[node.end_lineno]]))
    return found


def find_tests(names: Iterable[str]) -> list[str]:
    """Return what pytest is told: whole files (``test_x.py``), or files and tests in them."""
    told = []
    for name in names:
        if name.endswith(".py"):
            found = [str(path) for path, _ in _texts(TESTS) if path.name == name]
        else:
            found = [f"{path}::{name}" for path, text in _texts(TESTS) if f"\ndef {name}(" in text]
        if not found:
            raise LookupError(f"There is no test {name!r}. Write it, or name another.")
        told += found
    return told


def first_failure(names: Iterable[str], folder: Path) -> str | None:
    """Run tests against the package in a folder; return which failed first, None if none did."""
    told = find_tests(names)
    receive, send = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_run_tests, args=(told, folder, send))
    process.start()
    send.close()
    try:
        if not receive.poll(_SECONDS):
            process.kill()
            return "no end"
        status, failed = receive.recv()
    except EOFError:
        process.join()
        if process.exitcode >= 0:  # pytest gave up itself, which says nothing about the mutation
            raise RuntimeError(f"pytest could not run {told}: its process ended early.") from None
        return "the end of the process"
    finally:
        process.join()
    if status != 0 and failed is None:
        raise RuntimeError(f"pytest could not run {told}: it ended with status {status}.")
    return failed


def _run_tests(told: list[str], folder: Path, send: Connection) -> None:
    """Run pytest in a fork of this process, which has not imported hetcal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(folder)  # for tests that start Python themselves
    sys.path.insert(0, str(folder))
    exec(_WITHOUT_HOOK)
    first = _FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not slow"]
    status = pytest.main([*options, *told], plugins=[first])
    send.send((int(status), first.name))


class _FirstFailure:
    """Remembers which test failed, or could not be collected."""

    name: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.name is None:
            self.name = report.nodeid.rpartition("::")[2]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.name is None:
            self.name = report.nodeid


def killer(mutation: Mutation, folder: Path) -> str | None:
    """Apply the mutation to the copy, run its tests, take it back; return which test failed."""
    path, after = apply(mutation, folder)
    before = path.read_text(encoding="utf-8")
    try:
        path.write_text(after, encoding="utf-8")
        return first_failure(mutation.tests, folder)
    finally:
        path.write_text(before, encoding="utf-8")


def main() -> int:
    """Try the mutations that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the names of those to try")
    parser.add_argument("--list", action="store_true", help="only check that they can be applied")
    options = parser.parse_args()
    for library in _LIBRARIES:
        import_module(library)
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ignored = shutil.ignore_patterns("__pycache__", "*.cpp", "*.hpp")
        shutil.copytree(ROOT / "src" / "hetcal", folder / "hetcal", ignore=ignored)
        (folder / "sitecustomize.py").write_text(_WITHOUT_HOOK, encoding="utf-8")
        for mutation in chosen:
            path, _ = apply(mutation, folder)
            find_tests(mutation.tests)
            if options.list:
                print(f"{mutation.name:50} {path.relative_to(folder)}")
        if options.list:
            return 0
        every = dict.fromkeys(name for mutation in chosen for name in mutation.tests)
        failed = first_failure(every, folder)
        if failed is not None:
            raise RuntimeError(f"{failed} fails without any mutation; mend that first.")
        n_killed = 0
        for mutation in chosen:
            found = killer(mutation, folder)
            n_killed += found is not None
            print(
                f"{'killed  ' if found else 'SURVIVED'}  {mutation.name}  {found or ''}", flush=True
            )
    print(f"{n_killed} of {len(chosen)} killed ({n_killed / max(len(chosen), 1):.0%})")
    return 0 if n_killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
