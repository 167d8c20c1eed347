"""What a class declares about its stored form.

Beside the fields that :func:`stored` takes, a class may have these methods. But for the last,
none of them is called for an estimator that is not fitted: that one is a setting, and of no use
where a fitted one is needed.

``_to_stored(self, state)``
    Returns the state that goes into the file.
``_from_stored(cls, state)``
    Class method. Returns the state that the attributes get.
``_restore(self)``
    Computes again what was not stored.
``_check_restored(self)``
    Raises (:func:`expect`) where the parts do not fit together. Everything that compiled code uses
    as an index is looked at before.
``_bytes_needed(state)``
    Static method. Returns the bytes that the object takes beyond its state, when it is made and
    when it predicts for the first time. Charged before either happens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hetcal._exceptions import FileFormatError
from hetcal._stored.fields import Field

C = TypeVar("C", bound=type)

#: Every class that has declared itself, by its name in files. No other class is ever made.
DECLARED: dict[str, type] = {}


@dataclass(frozen=True)
class Declaration:
    """What the attributes of a stored object may hold.

    Attributes
    ----------
    fields : mapping of str to callable
        From an attribute to its predicate (:mod:`hetcal._stored.fields`). The constructor's
        parameters need no mention as long as they are plain settings. Nothing else may stand in a
        file.
    may_lack : collection of str
        Fields that not every fitted object has.
    derived : mapping
        Attributes that are not stored, and what they are after loading.
    """

    fields: Mapping[str, Field] = field(default_factory=dict)
    may_lack: Collection[str] = ()
    derived: Mapping[str, Any] = field(default_factory=dict)


def stored(
    fields: Mapping[str, Field] | None = None,
    *,
    may_lack: Collection[str] = (),
    derived: Mapping[str, Any] | None = None,
    inline: bool = False,
) -> Callable[[C], C]:
    """Declare what of a class is stored; see :class:`Declaration`.

    A subclass has what its base class declares, and what it declares itself. One without a
    declaration of its own cannot be stored.

    Parameters
    ----------
    fields, may_lack, derived
        See :class:`Declaration`.
    inline : bool, default=False
        A file keeps the parts among those of their owner, which makes the object with
        :func:`~hetcal._stored.reader.restored`; by itself it cannot stand in a file.
    """

    def declare(cls: C) -> C:
        named = DECLARED.get(cls.__name__, cls)
        if named.__module__ != cls.__module__:
            raise TypeError(f"Two classes named {cls.__name__} cannot both be stored. Rename one.")
        base = getattr(cls, "_stored", Declaration())
        cls._stored = Declaration(  # type: ignore[attr-defined]
            {**base.fields, **(fields or {})},
            (*base.may_lack, *may_lack),
            {**base.derived, **(derived or {})},
        )
        if not inline:
            DECLARED[cls.__name__] = cls
        return cls

    return declare


def expect(holds: Any, who: Any, what: str) -> None:
    """Raise unless a condition holds."""
    if not holds:
        name = who.__name__ if isinstance(who, type) else type(who).__name__
        raise FileFormatError(f"The file's {name} {what}.")
