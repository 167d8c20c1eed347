"""A global map of two classes as an SQL expression."""

from __future__ import annotations

from typing import Any

from hetcal._validation.options import check_choice
from hetcal._validation.proba import LARGEST_LOGIT
from hetcal.export.expressions import Expression, second_class
from hetcal.export.source import two_class_map

_QUOTES = {"ansi": '"', "mysql": "`"}
# Exponentials beyond are an error in some databases; sigmoids are 0 or 1 there.
_FAR = "700e0"


def to_sql(calibrator: Any, *, column: str, dialect: str = "ansi") -> str:
    """Return an SQL expression for the calibrated probability of the second class.

    It uses ``CASE``, ``LN``, ``EXP`` and arithmetic, in double precision where the database has it.
    NULL, and what is no probability (NaN, below 0, above 1) or log-odds beyond 1e100, gives NULL.
    The second class is that of the second column of ``predict_proba``; a comment in the expression
    names it.

    Parameters
    ----------
    calibrator : calibrator or LocallyCalibratedClassifier
        Fitted, of two classes, and a global map.
    column : str
        The column with the classifier's probability of the second class (its log-odds where the
        map was fitted with logits). One name, quoted whatever it holds; not an expression.
    dialect : {"ansi", "mysql"}, default="ansi"
        How names are quoted: ``"name"``, or with backquotes as MySQL and SQLite take them.

    Examples
    --------
    >>> from hetcal import Uncalibrated
    >>> fitted = Uncalibrated().fit(None, [0, 1], y_proba=[0.1, 0.9])
    >>> to_sql(fitted, column="p_yes")
    '/* probability of class 1 (against 0), from its probability */ CASE WHEN "p_yes" >= ...'
    """
    name = _quoted(column, dialect)
    map_ = two_class_map(calibrator, "to_sql")
    ends = (-LARGEST_LOGIT, LARGEST_LOGIT) if map_.input_kind_ == "logits" else (0.0, 1.0)
    low, high = map(_literal, ends)
    result = _Writer(name).text(second_class(map_))
    return f"{_whose(map_)} CASE WHEN {name} >= {low} AND {name} <= {high} THEN {result} END"


def _whose(map_: Any) -> str:
    """Return a comment that says whose probability is taken and given, whatever the labels hold."""
    first, second = (_in_comment(label) for label in map_.classes_.tolist())
    given = "log-odds" if map_.input_kind_ == "logits" else "probability"
    return f"/* probability of class {second} (against {first}), from its {given} */"


def _in_comment(label: Any) -> str:
    # Without an asterisk no comment begins or ends; the others mark parameters and statements.
    return "".join(f"\\x{ord(c):02x}" if c in "*%:?;" else c for c in ascii(label))


def _quoted(column: str, dialect: str) -> str:
    check_choice(dialect, "dialect", _QUOTES, "to_sql")
    if not isinstance(column, str) or not column or not column.isprintable():
        raise ValueError(
            f"to_sql: column must be the name of a column, in printable characters; got "
            f"{column!r}. Pass the name without quotes."
        )
    quote = _QUOTES[dialect]
    return quote + column.replace(quote, 2 * quote) + quote


class _Writer:
    """Everything in one expression: SQL has no names for parts of it."""

    def __init__(self, column: str):
        self.column = column
        self._texts: dict[int, str] = {}

    def text(self, expression: Expression) -> str:
        """Return the text of an expression, which may stand anywhere."""
        if id(expression) not in self._texts:
            self._texts[id(expression)] = self._written(expression)
        return self._texts[id(expression)]

    def _written(self, expression: Expression) -> str:
        operation, constants = expression.operation, expression.constants
        if operation == "number":
            return _literal(constants[0])
        if operation == "input":
            return self.column
        arguments = [self.text(argument) for argument in expression.arguments]
        x = arguments[0]
        if operation == "log":
            return f"LN({x})"
        if operation == "sigmoid":
            return _far_apart(x, "0.0e0", "1.0e0", f"1.0e0 / (1.0e0 + EXP(-{x}))")
        if operation == "log_sigmoid":
            return _far_apart(x, x, "0.0e0", f"-LN(1.0e0 + EXP(-{x}))")
        if operation == "if_at_most":
            limit = _literal(constants[0])
            return f"CASE WHEN {x} <= {limit} THEN {arguments[1]} ELSE {arguments[2]} END"
        if operation == "clip":
            return _case(_clipped(x, *constants), x)
        if operation == "steps":
            edges, levels = constants
            pairs = zip(edges, levels[:-1], strict=True)
            cases = [f"{x} <= {_literal(edge)} THEN {_literal(level)}" for edge, level in pairs]
            return _case(cases, _literal(levels[-1]))
        if operation == "interpolate":
            return _case(_lines(x, *constants), _literal(constants[1][-1]))
        return f"({x} {operation} {arguments[1]})"


def _literal(value: float) -> str:
    """Return a number as a double; without an exponent it would be a decimal in some databases."""
    text = repr(value)
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text


def _case(cases: list[str], otherwise: str) -> str:
    return "CASE " + " ".join(f"WHEN {case}" for case in cases) + f" ELSE {otherwise} END"


def _far_apart(x: str, low: str, high: str, between: str) -> str:
    return _case([f"{x} < -{_FAR} THEN {low}", f"{x} > {_FAR} THEN {high}"], between)


def _clipped(x: str, low: float | None, high: float | None) -> list[str]:
    cases = [] if low is None else [f"{x} < {_literal(low)} THEN {_literal(low)}"]
    return cases + ([] if high is None else [f"{x} > {_literal(high)} THEN {_literal(high)}"])


def _lines(x: str, places: tuple[float, ...], levels: tuple[float, ...]) -> list[str]:
    """Return the cases of a broken line; flat parts are numbers."""
    cases = [f"{x} <= {_literal(places[0])} THEN {_literal(levels[0])}"]
    for i in range(1, len(places)):
        value, rise = _literal(levels[i - 1]), levels[i] - levels[i - 1]
        if rise:
            start, width = _literal(places[i - 1]), _literal(places[i] - places[i - 1])
            value = f"{value} + ({x} - {start}) / {width} * {_literal(rise)}"
        cases.append(f"{x} <= {_literal(places[i])} THEN {value}")
    return cases
