"""How an object is taken apart for a file, and put together again, by what its class declares.

Nothing in a file names code. A file says "ForestProximity", and only if a class of that name has
declared itself is an object of it made, without calling its constructor, from parts that were
checked one by one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from hetcal._stored.declaration import Declaration, expect
from hetcal._stored.fields import Field, optional, setting, whole

T = TypeVar("T")

# Parameters that a later fit takes its time by.
_USUAL = {"n_estimators": optional(whole(1, 1_000_000))}


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
    needs : callable
        From a state to the bytes that the object takes beyond its state, when it is made and when
        it predicts for the first time. Charged before either happens.
    """

    cls: type
    pack: Callable[[Any], dict[str, Any]]
    unpack: Callable[[dict[str, Any]], Any]
    needs: Callable[[dict[str, Any]], int] = lambda state: 0

    @property
    def name(self) -> str:
        """The name in files."""
        return self.cls.__name__


def plain(
    cls: type,
    fields: Mapping[str, Field] | None = None,
    *,
    may_lack: Collection[str] = (),
    derived: Mapping[str, Any] | None = None,
    finish: Callable[[Any], None] | None = None,
    check: Callable[[Any], None] | None = None,
    needs: Callable[[dict[str, Any]], int] = lambda state: 0,
) -> Spec:
    """Return the spec of a class whose state is its attributes.

    For classes that cannot declare themselves, since they belong to another library; ours do
    (:func:`declared`). An estimator that has nothing but its constructor's parameters is a setting
    (the similarity that a calibrator was made with); it is neither finished nor checked, and of no
    use where a fitted one is needed.

    Parameters
    ----------
    fields, may_lack, derived
        See :class:`hetcal._stored.Declaration`.
    finish, check, needs : callable, optional
        What a class of ours has as ``_restore``, ``_check_restored`` and ``_bytes_needed``.
    """
    left_out = dict(derived or {})
    defaults = _defaults(cls)
    known = {name: _USUAL.get(name, setting) for name in defaults} | dict(fields or {})
    if "n_jobs" in defaults:  # a matter of the machine that loads, not of the file
        left_out["n_jobs"] = defaults["n_jobs"]

    def pack(value: Any) -> dict[str, Any]:
        given = defaults if dataclasses.is_dataclass(cls) else vars(value)
        stored = [name for name in given if name not in left_out]
        unknown = [name for name in stored if name not in known]
        if unknown:
            raise TypeError(
                f"{cls.__name__} has attributes that hetcal.save does not know: {unknown}. Save "
                "the calibrator as it was fitted."
            )
        return {name: getattr(value, name) for name in stored}

    def unpack(state: dict[str, Any]) -> Any:
        state = {name: part for name, part in state.items() if name != "n_jobs"}
        for name, part in state.items():
            expect(name in known and name not in left_out, cls, f"has no part {name[:40]!r}")
            expect(known[name](part), cls, f"has a wrong {name}")
        fitted = _is_fitted(cls, state)
        full = {k: v for k, v in defaults.items() if v is not inspect.Parameter.empty}
        full |= state | (left_out if fitted else {})
        wanted = known if fitted else defaults
        missing = [name for name in wanted if name not in full and name not in may_lack]
        expect(not missing, cls, f"lacks {missing}")
        made: Any = object.__new__(cls)
        for name, value in full.items():
            object.__setattr__(made, name, value)
        if fitted:
            for step in (finish, check):
                if step is not None:
                    step(made)
        return made

    return Spec(cls, pack, unpack, needs)


@functools.cache
def declared(cls: type) -> Spec:
    """Return the spec of a class that declares itself what is stored (:func:`stored`)."""
    declaration: Declaration = cls._stored  # type: ignore[attr-defined]
    spec = plain(
        cls,
        declaration.fields,
        may_lack=declaration.may_lack,
        derived=declaration.derived,
        finish=getattr(cls, "_restore", None),
        check=getattr(cls, "_check_restored", None),
        needs=getattr(cls, "_bytes_needed", lambda state: 0),
    )
    outwards, inwards = getattr(cls, "_to_stored", None), getattr(cls, "_from_stored", None)

    def pack(value: Any) -> dict[str, Any]:
        state = spec.pack(value)
        return outwards(value, state) if outwards and _is_fitted(cls, state) else state

    def unpack(state: dict[str, Any]) -> Any:
        return spec.unpack(inwards(state) if inwards and _is_fitted(cls, state) else state)

    return dataclasses.replace(spec, pack=pack, unpack=unpack)


def restored(cls: type[T], **state: Any) -> T:
    """Make an object of a declared class from parts, which are checked like those of a file."""
    spec: Spec = declared(cls)  # type: ignore[arg-type]
    return spec.unpack(state)


def _is_fitted(cls: type, state: Collection[str]) -> bool:
    """Tell whether there is more than the constructor's parameters."""
    return dataclasses.is_dataclass(cls) or not set(state) <= set(_defaults(cls))


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
