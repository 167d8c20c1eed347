"""Cost of the kernels of two versions of hetcal, side by side, in time or in instructions.

Shows what a change of the compiled core costs, for example its checks of what it is given. Both
versions do the same work, each in a process of its own. The least processor time of each counts;
or, where a machine is too busy for differences of a percent, the instructions that Valgrind sees,
which are the same in every run.

    python benchmarks/border_checks.py --before ../older/src --after src
    python benchmarks/border_checks.py --before ../older/src --after src --instructions
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def tasks() -> dict[str, Callable[[], object]]:
    """Return the work by name, all of it ready to be timed."""
    from hetcal.kernels import forest as kernel
    from hetcal.kernels.boosting import Boosting
    from hetcal.kernels.isotonic import pool_adjacent_violators
    from hetcal.kernels.local_forests import local_forest_scores
    from hetcal.kernels.neighbourhoods import hellinger_balls

    rng = np.random.default_rng(0)
    n, d = 10_000, 20
    X, new = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    two, ten = rng.integers(0, 2, n), (X[:, 0] * 3).astype(int) % 10
    forest, many = (kernel.fit_forest(X, y, k) for y, k in ((two, 2), (ten, 10)))
    leaves, their = kernel.apply(forest, X), kernel.apply(many, X)
    dense = kernel.leaf_class_mass(forest.n_leaves, leaves, two, 2)
    sparse = kernel.leaf_class_mass(many.n_leaves, their, ten, 10)
    index = kernel.build_index(forest.n_leaves, leaves)
    rows = kernel.queries_from_leaves(kernel.apply(forest, new[:1000]))
    one_row = kernel.queries_from_leaves(rows.leaves[:1])
    sorted_up = np.sort(rng.random(n)) + rng.normal(size=n) / 10
    P = rng.dirichlet([2, 2], 500)
    balls = hellinger_balls(P, P[:40])
    boosting = Boosting(n_rounds=20)
    boosted = Boosting(n_rounds=100).fit(X[:2000], ten[:2000])
    return {
        "fit, 2 classes": lambda: kernel.fit_forest(X, two, 2, n_estimators=5),
        "fit, 10 classes": lambda: kernel.fit_forest(X, ten, 10, n_estimators=5),
        "leaves of 10 000 rows": lambda: kernel.apply(forest, new),
        "leaves of 1 row": lambda: kernel.apply(forest, new[:1]),
        "votes, 2 classes": lambda: kernel.vote(forest, new, dense),
        "votes, 10 classes": lambda: kernel.vote(many, new, sparse),
        "votes, 2 classes, 1 row": lambda: kernel.vote(forest, new[:1], dense),
        "votes, 10 classes, 1 row": lambda: kernel.vote(many, new[:1], sparse),
        "leaf sums, 2 classes": lambda: kernel.leaf_class_mass(forest.n_leaves, leaves, two, 2),
        "leaf sums, 10 classes": lambda: kernel.leaf_class_mass(many.n_leaves, their, ten, 10),
        "index": lambda: kernel.pairwise(kernel.build_index(forest.n_leaves, leaves), one_row),
        "votes of similar items": lambda: kernel.neighbour_vote(index, rows, two, 2, power=2.0),
        "votes of similar items, 1 row": lambda: kernel.neighbour_vote(
            index, one_row, two, 2, power=2.0
        ),
        "votes of 50 nearest": lambda: kernel.neighbour_vote(index, rows, two, 2, n_neighbors=50),
        "nearest items": lambda: kernel.top_items(index, rows, 10),
        "isotonic": lambda: pool_adjacent_violators(sorted_up, np.ones(n)),
        "boosting, fit": lambda: boosting.fit(X[:2000], ten[:2000]),
        "boosting, 2000 rows": lambda: boosted.predict_proba(new[:2000]),
        "boosting, 1 row": lambda: boosted.predict_proba(new[:1]),
        "local forests": lambda: local_forest_scores(
            X[:500], two[:500], 2, P, *balls, n_estimators=20
        ),
    }


def seconds(work: Callable[[], object], at_least: float = 0.02) -> float:
    """Return the processor time of one call, from as many as take some time."""
    calls, started = 0, time.process_time()
    while (taken := time.process_time() - started) < at_least:
        work()
        calls += 1
    return taken / calls


def repeated(work: Callable[[], object], calls: int) -> None:
    """Do the work that often, for somebody else to count."""
    for _ in range(calls):
        work()


def serve() -> None:
    """Do the task that each line of the input names: time it, or do it as often as it says."""
    ready = tasks()
    print("ready", flush=True)
    for line in sys.stdin:
        name, calls = json.loads(line)
        answer = repeated(ready[name], calls) if calls else seconds(ready[name])
        print(json.dumps(answer), flush=True)


class Version:
    """A version of hetcal in a process of its own."""

    def __init__(self, source: Path, *under: str) -> None:
        fixed = {"HETCAL_CORE": "native", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            [*under, sys.executable, __file__, "--serve"],
            env={**os.environ, "PYTHONPATH": str(source.resolve()), **fixed},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process.stdout.readline()

    def do(self, name: str, calls: int = 0) -> float:
        """Have the task done there, or timed."""
        self.process.stdin.write(json.dumps([name, calls]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def cost(self, name: str) -> float:
        """Return the processor time of a call in microseconds."""
        return 1e6 * self.do(name)

    def close(self) -> None:
        """Let the process end."""
        self.process.communicate()


class CountedVersion(Version):
    """A version of hetcal whose instructions Valgrind counts, once everything is prepared."""

    def __init__(self, source: Path) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.counts = Path(self.folder.name) / "counts"
        options = ["--quiet", "--instr-atstart=no", f"--callgrind-out-file={self.counts}"]
        super().__init__(source, "valgrind", "--tool=callgrind", *options)
        self.control("--instr=on")

    def control(self, order: str) -> None:
        """Tell Valgrind what to do."""
        subprocess.run(
            ["callgrind_control", order, str(self.process.pid)], check=True, capture_output=True
        )

    def counted(self, name: str, calls: int) -> int:
        """Return the instructions of so many calls, and of reading the order for them."""
        self.do(name, calls)
        self.control("--dump")
        newest = max(self.counts.parent.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        return int(re.search(r"^(?:totals|summary): (\d+)", newest.read_text(), re.M)[1])

    def cost(self, name: str) -> float:
        """Return the instructions of a call in thousands."""
        first = self.counted(name, 1)  # which does what is done once
        calls = 1 if first > 10_000_000 else 30
        return (self.counted(name, 2 * calls) - self.counted(name, calls)) / calls / 1000


def compare(before: Version, after: Version, only: str, rounds: int) -> None:
    """Print the least cost of each task."""
    print(f"{'':32s}{'before':>10s}{'after':>10s}{'change':>9s}")
    for name in filter(lambda name: only in name, tasks()):
        costs = [(before.cost(name), after.cost(name)) for _ in range(rounds)]
        least = np.min(costs, axis=0)
        shown = "".join(f"{cost:9.0f} " for cost in least)
        print(f"{name:32s}{shown}{least[1] / least[0] - 1:+8.1%}", flush=True)
    before.close()
    after.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="source folder of one version, built in place")
    parser.add_argument("--after", type=Path, help="and of the other")
    parser.add_argument("--rounds", type=int, default=20, help="of which the least time counts")
    parser.add_argument(
        "--instructions", action="store_true", help="count thousands of instructions (Valgrind)"
    )
    parser.add_argument("--only", default="", help="only tasks whose name holds this")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    kind = CountedVersion if options.instructions else Version
    print("thousands of instructions" if options.instructions else "microseconds")
    rounds = 1 if options.instructions else options.rounds
    compare(kind(options.before), kind(options.after), options.only, rounds)


if __name__ == "__main__":
    main()
