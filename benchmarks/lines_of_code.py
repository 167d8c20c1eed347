"""Lines of code per package, without blank lines, comments and docstrings.

python benchmarks/lines_of_code.py
python benchmarks/lines_of_code.py /another/checkout/src/hetcal
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "hetcal"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def python_lines(text: str) -> int:
    """Return the number of lines with code of Python."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            said = node.body[0]
            code.difference_update(range(said.lineno, (said.end_lineno or said.lineno) + 1))
    return len(code)


def cpp_lines(text: str) -> int:
    """Return the number of lines with code of C++, whose comments here are all ``//``."""
    return sum(
        bool(line.strip()) and not line.strip().startswith("//") for line in text.split("\n")
    )


def count(package: Path) -> tuple[Counter[str], Counter[str]]:
    """Return lines of Python and of C++ by package or module at the top."""
    python: Counter[str] = Counter()
    cpp: Counter[str] = Counter()
    for path in package.rglob("*"):
        name = path.relative_to(package).parts[0].removesuffix(".py") if path.is_file() else ""
        if path.suffix == ".py":
            python[name] += python_lines(path.read_text(encoding="utf-8"))
        elif path.suffix in (".cpp", ".hpp"):
            cpp[name] += cpp_lines(path.read_text(encoding="utf-8"))
    return python, cpp


def main() -> None:
    """Print one row per package, the largest first."""
    python, cpp = count(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
    for name, lines in python.most_common():
        print(f"{name:16} {lines:6}")
    print(f"{'Python':16} {python.total():6}\n{'C++':16} {cpp.total():6}")


if __name__ == "__main__":
    main()
