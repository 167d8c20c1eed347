"""The page as a whole."""

from __future__ import annotations

from pathlib import Path

from benchmarks.page import cost, diagnosis, forecasts, repair
from benchmarks.parts import FOLDER, PARTS, RESULTS
from benchmarks.sources import stored_sources
from hetcal.paper.text import markdown_table

ROOT = FOLDER.parent
STORED = ROOT / "experiments" / "results"
PAGE, PICTURES = ROOT / "docs" / "proof.md", ROOT / "docs" / "_static" / "proof"

_HEAD = """# The proof

<!-- Written by `python -m benchmarks page` from stored results: change these, not this file. -->

What hetcal claims, beside what others do, with the losses. Everything here is computed by

```bash
python -m benchmarks list     # every part: its question, its time, what it needs
python -m benchmarks quick    # small versions of all, two minutes; fails where one is badly off
python -m benchmarks full     # all of it, about {hours:.0f} hours; may be stopped, and goes on
python -m benchmarks page     # this page, from the stored results
```

Other packages are measured in [an environment of their own](appendix/benchmarks.md#other-packages).
"""


def page_files() -> dict[Path, str]:
    """Return the text of the page and of its pictures, by file."""
    repaired, pictures = repair.section(STORED, RESULTS)
    costs, more = cost.section(STORED, RESULTS)
    sections = {
        "The protocol": [(FOLDER / "protocol.md").read_text(encoding="utf-8")],
        "Repair": repaired,
        "Diagnosis": diagnosis.section(RESULTS),
        "Forecasts that people stated": forecasts.section(RESULTS),
        "Cost": costs,
        "Where the numbers come from": _sources(),
    }
    lines = [_HEAD.format(hours=sum(part.minutes for part in PARTS) / 60)]
    for title, body in sections.items():
        lines += [f"## {title}", "", *body]
    text = "\n".join(lines).rstrip() + "\n"
    return {PAGE: text} | {PICTURES / name: svg for name, svg in (pictures | more).items()}


def _sources() -> list[str]:
    rows = [
        [f"`{s.file}`", f"`{s.command}`", s.commit, s.day, s.versions, s.note]
        for s in stored_sources().itertuples()
    ]
    head = ["file", "command", "commit", "day", "versions", "note"]
    words = (
        "Commands that are run by `python -m benchmarks` note their source here. Where versions "
        'are not recorded, the commit is the one that stored the results. "+" marks a commit with '
        "changes on top."
    )
    return [words, "", markdown_table(head, rows, left=6)]


def write_page(*, check: bool = False) -> int:
    """Write the page and its pictures; with `check` only tell whether they are as they should be.

    Returns
    -------
    int
        With `check`, 1 where a file differs from what the results give; else 0.
    """
    stale = {path: text for path, text in page_files().items() if not _same(path, text)}
    for path, text in stale.items():
        print(f"{path.relative_to(ROOT)} {'differs from the results' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    return int(check and bool(stale))


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text
