"""How an object of an allowed class is taken apart for a file, and put together again.

Nothing in a file names code. A file says "ForestProximity", and only if that name is on hetcal's
own list is an object of that class made, without calling its constructor, from parts that were
checked one by one.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from hetcal._exceptions import FileFormatError

_MOST_THREADS = 4096
_MOST_TREES = 1_000_000


@dataclasses.dataclass(frozen=True)
class Spec:
    """One allowed class.

    Attributes
    ----------
    cls : type
    pack : callable
        From an object to its state, a dict of attribute names to values.
    unpack : callable
        From a state to an object. Raises :class:`FileFormatError` where the object could not have
        come from a fit; everything that compiled code uses as an index is looked at there.
    """

    cls: type
    pack: Callable[[Any], dict[str, Any]]
    unpack: Callable[[dict[str, Any]], Any]

    @property
    def name(self) -> str:
        """The name in files."""
        return self.cls.__name__


def plain(
    cls: type,
    *,
    names: Collection[str] = (),
    derived: Mapping[str, Any] | None = None,
    may_miss: Collection[str] = (),
    finish: Callable[[Any], None] | None = None,
    check: Callable[[Any], None] | None = None,
) -> Spec:
    """Return the spec of a class whose state is its attributes.

    An estimator that has nothing but its constructor's parameters is a setting (the similarity that
    a calibrator was made with); it is neither finished nor checked, and of no use where a fitted
    one is needed.

    Parameters
    ----------
    names : collection of str
        Attributes beside the constructor's parameters and the fitted ones (``name_``).
    derived : mapping, optional
        Attributes that are not stored, and what they are after loading.
    may_miss : collection of str
        Attributes that may hold NaN.
    finish : callable, optional
        Computes again what was not stored.
    check : callable, optional
        Of the finished object.
    """
    left_out = dict(derived or {})
    defaults = _defaults(cls)

    def allowed(name: str) -> bool:
        if dataclasses.is_dataclass(cls):
            return name in defaults
        own = inspect.getattr_static(cls, name, None)
        fitted = name.endswith("_") and not name.startswith("_") and own is None
        return name in defaults or name in names or fitted

    def pack(value: Any) -> dict[str, Any]:
        given = [name for name in vars(value) if name not in left_out]
        if dataclasses.is_dataclass(cls):
            given = [name for name in defaults if name not in left_out]
        unknown = [name for name in given if not allowed(name)]
        if unknown:
            raise TypeError(
                f"{cls.__name__} has attributes that hetcal.save does not know: {unknown}. Save "
                "the calibrator as it was fitted."
            )
        return {name: getattr(value, name) for name in given}

    def unpack(state: dict[str, Any]) -> Any:
        for name in state:
            expect(allowed(name) and name not in left_out, cls, f"has no part {name[:40]!r}")
        full = {k: v for k, v in defaults.items() if v is not inspect.Parameter.empty}
        fitted = dataclasses.is_dataclass(cls) or not set(state) <= set(defaults)
        full |= state | (left_out if fitted else {})
        missing = [name for name in defaults if name not in full]
        expect(not missing, cls, f"lacks {missing}")
        for name, value in full.items():
            if name not in may_miss:
                expect(not _has_nan(value), cls, f"holds NaN in {name}")
        _check_resources(cls, full)
        made: Any = object.__new__(cls)
        for name, value in full.items():
            object.__setattr__(made, name, value)
        if fitted:
            for step in (finish, check):
                if step is not None:
                    step(made)
        return made

    return Spec(cls, pack, unpack)


def expect(holds: Any, who: Any, what: str) -> None:
    """Raise unless a condition holds."""
    if not holds:
        name = who.__name__ if isinstance(who, type) else type(who).__name__
        raise FileFormatError(f"The file's {name} {what}.")


def is_whole(value: Any, low: float = -np.inf, high: float = np.inf) -> bool:
    """Tell whether a value is an integer, no bool, within bounds."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and low <= value <= high


def is_number(value: Any, low: float = -np.inf, high: float = np.inf) -> bool:
    """Tell whether a value is a finite number within bounds."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool):
        return False
    return bool(np.isfinite(value)) and low <= value <= high


def is_array(value: Any, kind: str, shape: tuple[int | None, ...]) -> bool:
    """Tell whether a value is an array of a kind (``"f"``, ``"iu"``) and shape (None: any)."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in kind
        and value.ndim == len(shape)
        and all(want is None or have == want for have, want in zip(value.shape, shape, strict=True))
    )


def in_range(values: np.ndarray, low: int, high: int) -> bool:
    """Tell whether all values lie in ``range(low, high)``."""
    return values.size == 0 or (int(values.min()) >= low and int(values.max()) < high)


def _defaults(cls: type) -> dict[str, Any]:
    """Return the constructor's parameters (of a dataclass: all fields) with their defaults."""
    empty = inspect.Parameter.empty
    if dataclasses.is_dataclass(cls):
        missing = dataclasses.MISSING
        return {
            field.name: empty if field.default is missing else field.default
            for field in dataclasses.fields(cls)
        }
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind in kinds
    }


def _has_nan(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, list | tuple):
        return any(_has_nan(item) for item in value)
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _check_resources(cls: type, state: dict[str, Any]) -> None:
    """Refuse settings that would make a later call take forever."""
    jobs = state.get("n_jobs")
    expect(jobs is None or is_whole(jobs, -_MOST_THREADS, _MOST_THREADS), cls, "asks for threads")
    trees = state.get("n_estimators")
    expect(trees is None or is_whole(trees, 1, _MOST_TREES), cls, "asks for too many trees")
