"""README, documentation and examples keep their word: what they show runs."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from hetcal.calibration import registry

pytestmark = pytest.mark.usefixtures("with_small_hybrids")

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(
        page
        for kind in ("tutorials", "how-to", "explanation", "reference", "appendix")
        for page in sorted((ROOT / "docs" / kind).glob("*.md"))
    ),
]
# The build of the documentation runs those of the gallery, plot_*.py.
EXAMPLES = [
    path for path in sorted((ROOT / "examples").glob("*.py")) if not path.name.startswith("plot_")
]

# A fenced block, and whether the line before it marks it as planned.
BLOCK = re.compile(r"(?P<planned><!-- planned -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)
BLOCKS = [
    pytest.param(match["code"], id=f"{page.name}-{number}")
    for page in PAGES
    for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
    if not match["planned"]
]


def commands() -> list[str]:
    """Return the lines of the README's shell blocks."""
    shell = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    return [line for block in shell for line in block.splitlines() if line]


@pytest.mark.parametrize("code", BLOCKS)
def test_python_blocks_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))  # one block adds to it
    exec(compile(code, "block", "exec"), {"__name__": "block"})
    close_figures()


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "picture.png")])
    runpy.run_path(str(script))


def close_figures() -> None:
    """Forget figures that a block has opened; many open ones are a warning, and so an error."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_there_is_python_to_run():
    assert len(BLOCKS) > 3


def test_the_test_command_is_the_one_of_ci():
    [command] = [line for line in commands() if "pytest" in line and "pip install" in line]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_pictures_and_links_exist():
    targets = re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", README)
    local = [a or b for a, b in targets if not (a or b).startswith("http")]
    assert local
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_links_to_the_gallery_name_the_script_for_readers_of_the_source():
    links = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"/gallery/(\w+)\)", page.read_text(encoding="utf-8"))
    }
    assert links
    unnamed = [
        (page.name, name)
        for page, name in links
        if f"examples/{name}.py" not in page.read_text(encoding="utf-8")
    ]
    assert unnamed == []


def test_tutorials_show_whether_a_global_map_repairs_a_sub_population():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES if "tutorials" in page.parts)
    shown = re.findall(r'\[\["rule".*?\]\]', text)
    assert shown
    assert all("global_map_repairs" in columns for columns in shown)


def test_files_that_the_pages_name_exist():
    path = re.compile(r"\b(?:tests|benchmarks|examples|src)/[\w./-]+\.(?:py|csv|md)")
    named = {
        (page.name, found)
        for page in PAGES
        for found in path.findall(page.read_text(encoding="utf-8"))
        if "NAME" not in found  # a placeholder
    }
    assert len(named) > 20
    assert sorted(name for name in named if not (ROOT / name[1]).exists()) == []
