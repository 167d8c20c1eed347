"""``python -m benchmarks``: list, run and report everything that hetcal claims."""

from __future__ import annotations

import argparse
import sys

from benchmarks.parts import PARTS, Part, parts_of, topics
from benchmarks.running import run, run_all, why_not

_HELP = """what to do:
  list               every part: its question, its time, what it needs
  quick              small versions of all topics; fails where a result is out of its limits
  full               every part, one after the other; goes on where it was interrupted
  page               write docs/proof.md from the stored results (--check: only compare)
  TOPIC              list the parts of a topic
  TOPIC PART [...]   run one part; what follows is given to its script
"""


def show(parts: list[Part]) -> None:
    """Print a line per part, and what all of them take together."""
    for part in parts:
        lacking = why_not(part)
        needs = f"; needs {part.needs.replace(' ', ' and ')}" if part.needs else ""
        print(f"{part.topic:10} {part.name:18} {part.minutes:5g} min{needs}")
        print(f"{'':10} {part.question}" + (f" [not here: {lacking}]" if lacking else ""))
    print(f"\n{sum(part.minutes for part in parts) / 60:.1f} hours of processor time in all, about")


def one_part(topic: str, rest: list[str]) -> int:
    """List a topic, or run one of its parts."""
    if not rest:
        show(parts_of(topic))
        return 0
    for part in parts_of(topic):
        if part.name == rest[0]:
            lacking = why_not(part)
            if lacking:
                print(f"{topic} {part.name} cannot be run: {lacking}.", file=sys.stderr)
                return 1
            return run(part, rest[1:])
    names = ", ".join(part.name for part in parts_of(topic))
    print(f"{topic} has no part {rest[0]!r}. It has: {names}.", file=sys.stderr)
    return 2


def main(arguments: list[str] | None = None) -> int:
    """Do what the first word says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["list", "quick", "full", "page", *topics()])
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...")
    options = parser.parse_args(arguments)
    if options.what in topics():
        return one_part(options.what, options.rest)
    more = argparse.ArgumentParser(prog=f"python -m benchmarks {options.what}")
    if options.what == "full":
        more.add_argument("--anew", action="store_true", help="also what has been finished")
        chosen = more.parse_args(options.rest)
        return int(run_all((p for p in PARTS if p.in_full), anew=chosen.anew) > 0)
    if options.what == "page":
        from benchmarks.page import write_page

        more.add_argument("--check", action="store_true", help="write nothing; 1 where they differ")
        return write_page(check=more.parse_args(options.rest).check)
    if options.what == "quick":
        from benchmarks.quick import run_checks

        more.add_argument("--only", nargs="+", help="topics")
        return run_checks(more.parse_args(options.rest).only)
    more.parse_args(options.rest)
    show(list(PARTS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
