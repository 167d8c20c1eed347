"""A global map of two classes as the source of a Python function."""

from __future__ import annotations

import unicodedata
from collections import Counter
from keyword import iskeyword
from typing import Any

from hetcal._validation.proba import LARGEST_LOGIT
from hetcal._version import __version__
from hetcal.export.expressions import Expression, second_class
from hetcal.export.source import two_class_map

# Helpers that the source defines where it uses them.
_HELPERS = {
    "sigmoid": """
def _sigmoid(z):
    small = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else small) / (1.0 + small)
""",
    "log_sigmoid": """
def _log_sigmoid(z):
    return min(z, 0.0) - math.log1p(math.exp(-abs(z)))
""",
    "interpolate": """
def _interpolate(x, places, levels):
    i = min(max(bisect_right(places, x), 1), len(places) - 1)
    position = (x - places[i - 1]) / (places[i] - places[i - 1])
    return levels[i - 1] + min(max(position, 0.0), 1.0) * (levels[i] - levels[i - 1])
""",
}
_IMPORTS = {"steps": "bisect_left", "interpolate": "bisect_right"}
# What the function or a helper looks up in the module that the source becomes.
_OWN_NAMES = {"math", "abs", "len", "max", "min", *_IMPORTS.values(), *(f"_{n}" for n in _HELPERS)}


def to_python(calibrator: Any, *, name: str = "calibrate") -> str:
    """Return the source of a Python function that needs nothing but the standard library.

    The function takes the classifier's probability of the second class (the log-odds of that class
    where the map was fitted with logits) and returns the calibrated one. What is no probability
    (NaN, below 0, above 1; log-odds beyond 1e100) gives NaN.

    Parameters
    ----------
    calibrator : calibrator or LocallyCalibratedClassifier
        Fitted, of two classes, and a global map.
    name : str, default="calibrate"
        Name of the function; none that the source itself uses, such as ``math`` or ``min``.

    Examples
    --------
    >>> from hetcal import PlattScaling
    >>> fitted = PlattScaling().fit(None, [0, 0, 1, 0, 1], y_proba=[0.1, 0.2, 0.7, 0.6, 0.9])
    >>> space = {}
    >>> exec(to_python(fitted), space)
    >>> round(space["calibrate"](0.5), 2)
    0.47
    """
    _check_name(name)
    map_ = two_class_map(calibrator, "to_python")
    logits = map_.input_kind_ == "logits"
    given = "log_odds" if logits else "p"
    writer = _Writer(given)
    result = writer.write(second_class(map_))
    first, second = (ascii(label) for label in map_.classes_.tolist())
    check = (
        f"{-LARGEST_LOGIT!r} <= {given} <= {LARGEST_LOGIT!r}"
        if logits
        else f"0.0 <= {given} <= 1.0"
    )
    body = [f"if not {check}:", "    return math.nan", *writer.lines, f"return {result}"]
    parts = [
        f"# {type(map_).__name__} by hetcal {__version__}",
        *writer.head(),
        "",
        # Not in the first two lines, where Python would obey a label such as "coding: utf-7".
        f"# takes the {'log-odds' if logits else 'probability'} of {second} (against {first})",
        f"def {name}({given}):",
        f'    """Return the calibrated probability of the second class; NaN unless {check}."""',
        *(f"    {line}" for line in body),
    ]
    return "\n".join(parts) + "\n"


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise ValueError(
            f"to_python: name must be a name that a Python function can have; got {name!r}. "
            "Use letters, digits and underscores, a letter first."
        )
    # Python reads an identifier in its normal form: other letters may spell the same name.
    read_as = unicodedata.normalize("NFKC", name)
    if read_as in _OWN_NAMES or iskeyword(read_as) or read_as.startswith("_TABLE_"):
        raise ValueError(
            f"to_python: name must not be one that the source itself uses; got {name!r}. Choose "
            "another, e.g. 'calibrate'."
        )


class _Writer:
    """Lines that give a name to everything that is used more than once."""

    def __init__(self, given: str):
        self.given = given
        self.lines: list[str] = []
        self.tables: dict[tuple[float, ...], str] = {}
        self.used: set[str] = set()
        self._texts: dict[int, str] = {}
        self._uses: Counter[int] = Counter()

    def write(self, result: Expression) -> str:
        """Return the text of the result; what it needs stands in ``lines``."""
        self._count(result)
        return self._text(result)

    def head(self) -> list[str]:
        """Return imports, tables and helpers."""
        bisect = sorted(_IMPORTS[name] for name in self.used & _IMPORTS.keys())
        lines = ["import math"] + [f"from bisect import {', '.join(bisect)}"] * bool(bisect)
        lines += [f"{name} = {table!r}" for table, name in self.tables.items()]
        return lines + [text.rstrip("\n") for name, text in _HELPERS.items() if name in self.used]

    def _count(self, expression: Expression) -> None:
        self._uses[id(expression)] += 1
        if self._uses[id(expression)] == 1:
            for argument in expression.arguments:
                self._count(argument)

    def _text(self, expression: Expression) -> str:
        if id(expression) not in self._texts:
            text = self._written(expression)
            if expression.arguments and self._uses[id(expression)] > 1:
                self.lines.append(f"t{len(self.lines)} = {text}")
                text = f"t{len(self.lines) - 1}"
            self._texts[id(expression)] = text
        return self._texts[id(expression)]

    def _written(self, expression: Expression) -> str:
        operation, constants = expression.operation, expression.constants
        self.used.add(operation)
        if operation == "number":
            return repr(constants[0])
        if operation == "input":
            return self.given
        arguments = [self._text(argument) for argument in expression.arguments]
        x = arguments[0]
        if operation in ("sigmoid", "log_sigmoid"):
            return f"_{operation}({x})"
        if operation == "log":
            return f"math.log({x})"
        if operation == "clip":
            low, high = constants
            x = x if low is None else f"max({x}, {low!r})"
            return x if high is None else f"min({x}, {high!r})"
        if operation == "if_at_most":
            return f"({arguments[1]} if {x} <= {constants[0]!r} else {arguments[2]})"
        if operation == "steps":
            edges, levels = map(self._table, constants)
            return f"{levels}[bisect_left({edges}, {x})]"
        if operation == "interpolate":
            places, levels = map(self._table, constants)
            return f"_interpolate({x}, {places}, {levels})"
        return f"({x} {operation} {arguments[1]})"

    def _table(self, values: tuple[float, ...]) -> str:
        return self.tables.setdefault(values, f"_TABLE_{len(self.tables)}")
