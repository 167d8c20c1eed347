"""Dataclasses to JSON and back, checked on the way in."""

from __future__ import annotations

import dataclasses
import json
import types
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return dictionaries, lists, numbers and texts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    return value


def to_json(value: Any) -> str:
    """Return JSON; a number that is not finite is an error, since JSON has no word for it."""
    return json.dumps(to_plain(value), ensure_ascii=False, allow_nan=False, indent=1)


def from_json(cls: type[T], text: str, *, format: int) -> T:
    """Return the dataclass that :func:`to_json` wrote.

    Raises
    ------
    ValueError
        When the text is no such report, or one of another version.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"This is not a report: not JSON ({error}).") from error
    found = data.get("format") if isinstance(data, dict) else None
    if found != format:
        raise ValueError(
            f"This is not a report of format {format}: its 'format' is {found!r}. Make the report "
            "again, or read it with the version of hetcal that wrote it."
        )
    return _read(cls, data, cls.__name__)


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = next(a for a in arguments if a is not type(None))
        return None if value is None else _read(inner, value, where)
    if origin is list:
        return [_read(arguments[0], item, where) for item in _checked(value, list, where)]
    if origin is dict:
        entries = _checked(value, dict, where).items()
        return {str(key): _read(arguments[1], item, f"{where}.{key}") for key, item in entries}
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, _checked(value, dict, where), where)
    if kind is float:
        return float(_checked(value, (int, float), where))
    return _checked(value, kind, where)


def _read_dataclass(kind: Any, data: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    unknown = sorted(set(data) - set(hints))
    missing = [
        f.name
        for f in dataclasses.fields(kind)
        if f.name not in data
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if unknown or missing:
        raise ValueError(f"{where}: unknown fields {unknown}, missing fields {missing}.")
    return kind(**{name: _read(hints[name], data[name], f"{where}.{name}") for name in data})


def _checked(value: Any, kind: Any, where: str) -> Any:
    wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    if wrong:
        raise ValueError(f"{where}: expected {kind}, got {type(value).__name__}.")
    return value
